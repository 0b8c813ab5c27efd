//! When a handler whose calls did not end is called again.
//!
//! It is out of service until a back-off has passed, twice as long each time; then one call is let through on trial.
//! An operator may end it at any time. Nothing here reads a clock or knows threads.

use std::time::{Duration, Instant};

/// No quarantine is longer. A handler that was in service for as long has a clean record again.
const MAX_BACKOFF: Duration = Duration::from_secs(60 * 60);
/// The wait that a caller is given when the back-off is over and the trial is still in progress.
const TRIAL_WAIT: Duration = Duration::from_secs(5);

/// One handler's record.
#[derive(Debug)]
pub(crate) struct QuarantineRecord {
    /// How long the first quarantine lasts.
    first_backoff: Duration,
    strikes: u32,
    state: State,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    InService {
        /// When the last quarantine ended.
        since: Option<Instant>,
    },
    /// No call before that time, and then one.
    OutUntil(Instant),
    /// The same, after a call on trial that ran to its deadline and may still turn out to be stuck.
    UndecidedUntil(Instant),
    /// The one call is in progress.
    OnTrial,
}

impl Default for State {
    fn default() -> Self {
        Self::InService { since: None }
    }
}

/// Whether a call may begin.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Admission {
    Allowed,
    /// As the one call that decides what comes next.
    OnTrial,
    /// Not before so much time has passed.
    Refused(Duration),
}

/// Whether threads of the handler, or too many of all handlers, are still stuck. Then there is no trial.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Threads {
    Fine,
    Stuck,
}

impl QuarantineRecord {
    pub(crate) fn new(first_backoff: Duration) -> Self {
        Self { first_backoff, strikes: 0, state: State::default() }
    }

    /// Decides whether a call may begin.
    pub(crate) fn admit(&mut self, now: Instant, threads: Threads) -> Admission {
        match self.state {
            State::InService { since } => {
                if since.is_none_or(|since| now.saturating_duration_since(since) >= MAX_BACKOFF) {
                    self.strikes = 0;
                }
                Admission::Allowed
            }
            State::OutUntil(until) | State::UndecidedUntil(until)
                if now >= until && threads == Threads::Fine =>
            {
                self.state = State::OnTrial;
                Admission::OnTrial
            }
            State::OutUntil(_) | State::UndecidedUntil(_) | State::OnTrial => {
                Admission::Refused(self.wait(now))
            }
        }
    }

    pub(crate) fn is_out_of_service(&self) -> bool {
        !matches!(self.state, State::InService { .. })
    }

    pub(crate) fn strikes(&self) -> u32 {
        self.strikes
    }

    /// How long until a call may be let through.
    pub(crate) fn wait(&self, now: Instant) -> Duration {
        match self.state {
            State::InService { .. } => Duration::ZERO,
            State::OutUntil(until) | State::UndecidedUntil(until) if until > now => until - now,
            State::OutUntil(_) | State::UndecidedUntil(_) | State::OnTrial => TRIAL_WAIT,
        }
    }

    /// A call did not end. True if the handler goes out of service because of it: of a dozen calls that were under
    /// way at the same time, the first one counts.
    pub(crate) fn strike(&mut self, now: Instant) -> bool {
        if matches!(self.state, State::OutUntil(until) if now < until) {
            return false;
        }
        self.strikes = self.strikes.saturating_add(1);
        self.state = State::OutUntil(now + self.backoff());
        true
    }

    /// The call on trial ended in time.
    pub(crate) fn pass(&mut self, now: Instant) -> bool {
        let is_decided = self.state == State::OnTrial;
        if is_decided {
            self.state = State::InService { since: Some(now) };
        }
        is_decided
    }

    /// The call on trial was given up or ran to its deadline.
    pub(crate) fn postpone(&mut self, now: Instant) {
        if self.state == State::OnTrial {
            self.state = State::UndecidedUntil(now + self.backoff());
        }
    }

    /// An operator ends the quarantine. False if it is in service.
    pub(crate) fn lift(&mut self) -> bool {
        let was_out = self.is_out_of_service();
        if was_out {
            *self = Self::new(self.first_backoff);
        }
        was_out
    }

    fn backoff(&self) -> Duration {
        let doublings = self.strikes.saturating_sub(1).min(16);
        self.first_backoff.saturating_mul(1 << doublings).min(MAX_BACKOFF)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: Duration = Duration::from_secs(1);
    const FIRST_BACKOFF: Duration = Duration::from_secs(30);

    #[test]
    fn quarantine_lasts_twice_as_long_each_time_up_to_an_hour() {
        let mut record = QuarantineRecord::new(FIRST_BACKOFF);
        let mut now = Instant::now();
        let mut lasted = Vec::new();
        for _ in 0..12 {
            assert!(record.strike(now));
            let wait = record.wait(now);
            assert_eq!(record.admit(now + wait - SECOND, Threads::Fine), Admission::Refused(SECOND));
            now += wait;
            assert_eq!(record.admit(now, Threads::Fine), Admission::OnTrial);
            lasted.push(wait.as_secs());
        }
        assert_eq!(lasted[..4], [30, 60, 120, 240]);
        assert_eq!(lasted[8..], [3_600; 4]);
    }

    #[test]
    fn one_call_is_let_through_on_trial_and_decides() {
        let mut record = QuarantineRecord::new(FIRST_BACKOFF);
        let start = Instant::now();
        record.strike(start);
        assert!(!record.strike(start + SECOND), "calls of the same time are one strike");
        let later = start + FIRST_BACKOFF;
        assert_eq!(record.admit(later, Threads::Stuck), Admission::Refused(TRIAL_WAIT));
        assert_eq!(record.admit(later, Threads::Fine), Admission::OnTrial);
        assert_eq!(record.admit(later, Threads::Fine), Admission::Refused(TRIAL_WAIT));
        assert!(record.pass(later));
        assert_eq!(record.admit(later, Threads::Fine), Admission::Allowed);
        // It is remembered for a while, so that good calls in between do not shorten what follows.
        assert!(record.strike(later + SECOND));
        assert_eq!(record.wait(later + SECOND), 2 * FIRST_BACKOFF);
    }

    #[test]
    fn a_trial_that_decides_nothing_is_followed_by_another() {
        let mut record = QuarantineRecord::new(FIRST_BACKOFF);
        let start = Instant::now();
        record.strike(start);
        let trial = start + FIRST_BACKOFF;
        assert_eq!(record.admit(trial, Threads::Fine), Admission::OnTrial);
        record.postpone(trial);
        assert_eq!(record.admit(trial, Threads::Fine), Admission::Refused(FIRST_BACKOFF));
        assert_eq!(record.admit(trial + FIRST_BACKOFF, Threads::Fine), Admission::OnTrial);
    }

    #[test]
    fn a_trial_that_is_stuck_is_a_strike_of_its_own() {
        let mut record = QuarantineRecord::new(FIRST_BACKOFF);
        let start = Instant::now();
        record.strike(start);
        let trial = start + FIRST_BACKOFF;
        record.admit(trial, Threads::Fine);
        record.postpone(trial);
        assert!(
            record.strike(trial + SECOND),
            "its caller was answered at the deadline, and it was found stuck a second later"
        );
        assert_eq!((record.strikes(), record.wait(trial + SECOND)), (2, 2 * FIRST_BACKOFF));
        assert!(!record.strike(trial + SECOND));
    }

    #[test]
    fn an_operator_and_an_hour_of_service_clear_the_record() {
        let mut record = QuarantineRecord::new(FIRST_BACKOFF);
        let start = Instant::now();
        assert!(!record.lift(), "it is in service");
        record.strike(start);
        assert!(record.lift());
        assert_eq!((record.admit(start, Threads::Stuck), record.strikes()), (Admission::Allowed, 0));
        record.strike(start);
        let trial = start + FIRST_BACKOFF;
        record.admit(trial, Threads::Fine);
        record.pass(trial);
        assert_eq!(record.admit(trial + SECOND, Threads::Fine), Admission::Allowed);
        assert_eq!(record.strikes(), 1);
        record.admit(trial + MAX_BACKOFF, Threads::Fine);
        assert_eq!(record.strikes(), 0);
    }
}
