//! What a call looks at every now and then.

use std::pin::Pin;
use std::time::Duration;

use quarterdeck_contracts::LiveInput;
use quarterdeck_runtime::PendingEnd;
use tokio::time::{Instant, Sleep};

use super::call::Call;
use super::ending::Over;
use super::line::{Disconnect, ServerMessage};
use super::unavailable;

/// How often a call looks at the clock while something is under way, and while nothing is.
const SOON: Duration = Duration::from_millis(250);
const LATER: Duration = Duration::from_secs(1);
/// After how long of silence a line is asked whether it is still there.
const PING_EVERY: Duration = Duration::from_secs(15);

/// When things happened that something is to be done about.
pub(super) struct Clock {
    pub(super) alarm: Pin<Box<Sleep>>,
    pub(super) began: Instant,
    pub(super) parked: Option<Instant>,
    pub(super) line_seen: Instant,
    pub(super) pinged: Instant,
    pub(super) stalled: Option<(usize, Instant)>,
    pub(super) model_first: bool,
}

impl Clock {
    pub(super) fn new() -> Self {
        let now = Instant::now();
        Self {
            alarm: Box::pin(tokio::time::sleep(SOON)),
            began: now,
            parked: None,
            line_seen: now,
            pinged: now,
            stalled: None,
            model_first: false,
        }
    }
}

impl Call {
    /// Something is under way that the clock must be looked at for.
    pub(super) fn hurry(&mut self) {
        let soon = Instant::now() + SOON;
        if self.clock.alarm.deadline() > soon {
            self.clock.alarm.as_mut().reset(soon);
        }
    }

    pub(super) fn tell_leaving(&mut self) {
        let deadline = *self.leaving.borrow_and_update();
        if let Some(deadline) = deadline {
            let in_ms = deadline.saturating_duration_since(Instant::now()).as_millis() as u64;
            self.tell(ServerMessage::GoingAway { in_ms });
            self.hurry();
        }
    }

    pub(super) fn look_at_the_clock(&mut self) {
        let now = Instant::now();
        for call in self.flights.slow(now) {
            let text = format!("{} is taking a moment.", call.name);
            self.tell(ServerMessage::Progress { id: &call.shown, text: &text });
        }
        self.speech.cuts.look_at(now);
        self.look_at_the_line(now);
        self.look_at_the_model(now);
        self.look_for_the_end(now);
        let is_busy = !self.flights.is_empty()
            || self.clock.stalled.is_some()
            || self.clock.parked.is_some()
            || !self.upstream.is_connected()
            || self.upstream.leaves_at().is_some()
            || self.leaving.borrow().is_some()
            || self.awaits_farewell();
        self.clock.alarm.as_mut().reset(now + if is_busy { SOON } else { LATER });
    }

    fn look_at_the_line(&mut self, now: Instant) {
        if let Some(since) = self.clock.parked
            && now - since >= self.agent.settings.parked_for
        {
            self.over = Some(Over::Left);
        }
        let moved = std::mem::take(&mut self.speech.mic_moved);
        if self.speech.mic_is_on && !moved && self.clock.line_seen + LATER < now {
            // A provider that is away is told when it is back.
            self.speech.mic_is_on = !self.upstream.send(LiveInput::AudioEnded);
        }
        if moved {
            self.clock.line_seen = now;
        }
        let Some(line) = &mut self.line else { return };
        if now - self.clock.line_seen >= self.agent.settings.line_silence {
            return self.park(&Disconnect::Lost);
        }
        if now - self.clock.line_seen.max(self.clock.pinged) >= PING_EVERY {
            line.ping();
            self.clock.pinged = now;
        }
    }

    fn look_at_the_model(&mut self, now: Instant) {
        self.upstream.look_at(now);
        if self.upstream.is_due(now, self.is_idle()) {
            self.connect_model();
        }
    }

    /// Nobody says anything, and no call is under way.
    pub(super) fn is_idle(&self) -> bool {
        self.speech.is_quiet() && self.flights.is_empty()
    }

    fn look_for_the_end(&mut self, now: Instant) {
        let leaving = *self.leaving.borrow();
        if let Some(deadline) = leaving
            && ((self.is_idle() && self.errands.is_empty()) || deadline <= now + LATER)
        {
            self.over = Some(Over::Stopping);
        }
        if now - self.clock.began >= self.agent.settings.longest {
            self.tell(ServerMessage::Error(&unavailable(
                "This call has become too long. Please call again.",
            )));
            self.over = Some(Over::Ended(PendingEnd::with_reason("too_long")));
        }
        self.end_if_overdue(now);
    }
}
