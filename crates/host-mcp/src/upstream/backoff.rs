//! When a lost connection is made again.

use std::collections::VecDeque;
use std::time::{Duration, Instant};

/// A connection that held this long was a good one: the next loss begins with the shortest pause again.
const STEADY_AFTER: Duration = Duration::from_secs(60);
/// A minute may have no more attempts than pauses of this many times the shortest one: a server that connects well and is
/// lost after a minute each time begins with the shortest pause again and again.
const MIN_PAUSES_PER_ATTEMPT: u32 = 8;
const MINUTE: Duration = Duration::from_secs(60);

/// Pauses that double, spread by chance so that servers that went down together do not come back together.
#[derive(Debug)]
pub(crate) struct Backoff {
    min: Duration,
    max: Duration,
    failures: u32,
    max_attempts_per_minute: usize,
    attempts: VecDeque<Instant>,
}

impl Backoff {
    pub(crate) fn new(min: Duration, max: Duration) -> Self {
        let min = min.max(Duration::from_millis(1));
        let allowed = MINUTE.as_millis() / (min * MIN_PAUSES_PER_ATTEMPT).as_millis();
        let max_attempts_per_minute = usize::try_from(allowed).unwrap_or(usize::MAX).max(2);
        Self { min, max: max.max(min), failures: 0, max_attempts_per_minute, attempts: VecDeque::new() }
    }

    /// An attempt begins.
    pub(crate) fn note_attempt(&mut self, now: Instant) {
        self.attempts.push_back(now);
        while self.attempts.len() > self.max_attempts_per_minute {
            self.attempts.pop_front();
        }
    }

    /// How long to wait after a connection was lost that had held for `held`, or was never there. `chance` is from 0 to 1.
    pub(crate) fn pause(&mut self, held: Duration, chance: f64, now: Instant) -> Duration {
        if held >= STEADY_AFTER {
            self.failures = 0;
        }
        let ceiling = self.min.saturating_mul(1 << self.failures.min(16)).min(self.max);
        self.failures = self.failures.saturating_add(1);
        let pause = ceiling.mul_f64(0.5 + chance.clamp(0.0, 1.0) / 2.0);
        pause.max(self.until_allowed(now))
    }

    /// How long until the attempts of the last minute leave room for one more.
    fn until_allowed(&self, now: Instant) -> Duration {
        match self.attempts.front() {
            Some(oldest) if self.attempts.len() >= self.max_attempts_per_minute => {
                (*oldest + MINUTE).saturating_duration_since(now)
            }
            _ => Duration::ZERO,
        }
    }
}

/// A number from 0 to 1.
pub(crate) fn chance() -> f64 {
    let mut bytes = [0_u8; 4];
    match getrandom::fill(&mut bytes) {
        Ok(()) => f64::from(u32::from_le_bytes(bytes)) / f64::from(u32::MAX),
        Err(_) => 1.0,
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const MIN: Duration = Duration::from_millis(500);
    const MAX: Duration = Duration::from_secs(60);

    #[test]
    fn pauses_double_up_to_the_longest_and_begin_again_after_a_steady_connection() {
        let mut backoff = Backoff::new(MIN, MAX);
        let now = Instant::now();
        let pauses: Vec<_> = (0..9).map(|_| backoff.pause(Duration::ZERO, 1.0, now).as_millis()).collect();
        assert_eq!(pauses, [500, 1_000, 2_000, 4_000, 8_000, 16_000, 32_000, 60_000, 60_000]);
        assert_eq!(backoff.pause(STEADY_AFTER, 0.0, now), MIN / 2, "spread by up to a half");
    }

    #[test]
    fn a_minute_has_a_bounded_number_of_attempts() {
        let mut backoff = Backoff::new(MIN, MAX);
        let (start, mut now, mut attempts) = (Instant::now(), Instant::now(), 0);
        while now < start + Duration::from_secs(600) {
            backoff.note_attempt(now);
            attempts += 1;
            // Each one claims to have been steady.
            now += backoff.pause(STEADY_AFTER, 0.0, now);
        }
        assert!((100..=165).contains(&attempts), "{attempts}");
    }

    proptest! {
        #[test]
        fn a_pause_is_never_shorter_than_half_nor_longer_than_the_longest(
            failures in 0_usize..40, chance in 0.0_f64..1.0,
        ) {
            let mut backoff = Backoff::new(MIN, MAX);
            let now = Instant::now();
            for _ in 0..failures {
                backoff.pause(Duration::ZERO, chance, now);
            }
            let pause = backoff.pause(Duration::ZERO, chance, now);
            prop_assert!(pause >= MIN / 2 && pause <= MAX, "{pause:?}");
        }
    }
}
