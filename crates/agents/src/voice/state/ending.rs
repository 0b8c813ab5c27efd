//! How the machine ends a call: after what was to be heard has been played.

use std::time::Duration;

use quarterdeck_runtime::PendingEnd;
use tokio::time::Instant;

use super::{BUSY_TICK, CallEnd, CallState, ClientOutput, IDLE_TICK};
use crate::voice::session::CallSession;
use crate::voice::unavailable;

/// How long a model may take for its farewell.
const MAX_FAREWELL: Duration = Duration::from_secs(30);

/// When an end that was asked for comes.
#[derive(Debug, Clone, Copy)]
pub(super) struct Farewell {
    /// Then, unless the model is speaking.
    by: Instant,
    /// Then, whatever happens.
    latest: Instant,
}

impl<S: CallSession> CallState<S> {
    /// Takes over what tools have asked for.
    pub(super) fn follow_session(&mut self) {
        let flags = self.session.flags();
        self.speech.follow(flags);
        if flags.is_end_pending && self.farewell.is_none() {
            self.begin_farewell();
        }
    }

    /// An end was asked for. It comes after the model's farewell, or without one when there is none.
    fn begin_farewell(&mut self) {
        let now = self.timing.now;
        let wait = if self.speech.is_silent() {
            self.speech.unplayed() + self.settings.farewell_timeout
        } else {
            MAX_FAREWELL
        };
        self.farewell = Some(Farewell { by: now + wait, latest: now + MAX_FAREWELL });
        self.tick_soon();
    }

    /// Ends the call if an end was asked for, its turn is over, everything before it has been played, and no call is
    /// running: its answer is still to come, and the user should see it.
    pub(super) fn end_if_played(&mut self) {
        if !self.pending.is_empty() {
            return;
        }
        let unplayed = self.speech.unplayed();
        if unplayed.is_zero() || !self.client.is_connected {
            self.end_if_asked();
        } else if self.speech.is_silent() {
            // The client says when it has played everything; if it never does, the time that it takes is known.
            self.end_within(unplayed + self.settings.farewell_timeout);
        }
    }

    /// An end that was asked for comes at the latest after this time.
    pub(super) fn end_within(&mut self, time: Duration) {
        let by = self.timing.now + time;
        if let Some(farewell) = &mut self.farewell {
            *farewell = Farewell { by, latest: by };
            self.tick_soon();
        }
    }

    fn end_if_overdue(&mut self) {
        let Some(Farewell { by, latest }) = self.farewell else { return };
        let (now, is_done) = (self.timing.now, self.speech.is_silent() && self.pending.is_empty());
        if now >= by && (now >= latest || is_done) {
            self.farewell = None;
            self.session.complete_turn();
            self.end_if_asked();
        }
    }

    fn end_if_asked(&mut self) {
        if let Some(end) = self.session.take_end() {
            self.end = Some(CallEnd::Ended(end));
        }
        self.speech.follow(self.session.flags());
    }

    pub(super) fn on_server_stopping(&mut self, deadline: Instant) {
        self.timing.stop_deadline = Some(deadline);
        let in_ms = deadline.saturating_duration_since(self.timing.now).as_millis() as u64;
        self.send_client(ClientOutput::GoingAway { in_ms });
        self.tick_soon();
    }

    pub(super) fn on_tick(&mut self) {
        let now = self.timing.now;
        for call in self.pending.take_slow(now) {
            let text = format!("{} is taking a moment.", call.name);
            self.send_client(ClientOutput::Progress { id: call.shown_id.clone(), text });
        }
        self.speech.interruption.expire(now);
        self.check_client();
        self.connection.tick(now);
        if self.connection.is_due(self.is_idle(), now) {
            self.connect_provider();
        }
        self.check_end();
        let is_busy = !self.pending.is_empty()
            || self.client.away_since.is_some()
            || !self.connection.is_connected
            || self.connection.is_closing()
            || self.timing.stop_deadline.is_some()
            || self.farewell.is_some();
        self.timing.next_tick = now + if is_busy { BUSY_TICK } else { IDLE_TICK };
    }

    fn check_end(&mut self) {
        let now = self.timing.now;
        if let Some(deadline) = self.timing.stop_deadline
            && ((self.is_idle() && !self.pending.has_confirmations()) || deadline <= now + IDLE_TICK)
        {
            self.end = Some(CallEnd::ServerStopping);
        }
        if now.saturating_duration_since(self.timing.started_at) >= self.settings.max_duration {
            let error = unavailable("This call has become too long. Please call again.");
            self.send_error(error);
            self.end = Some(CallEnd::Ended(PendingEnd::with_reason("too_long")));
        }
        self.end_if_overdue();
    }
}
