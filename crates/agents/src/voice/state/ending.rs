//! How the machine ends a call: after what was to be heard has been played.

use std::time::Duration;

use quarterdeck_runtime::PendingEnd;
use tokio::time::Instant;

use super::farewell::{Farewell, MAX_FAREWELL};
use super::speech::Owes;
use super::{BUSY_TICK, CallEnd, CallState, ClientOutput, IDLE_TICK, ProviderOutput};
use crate::note::{farewell_note, format_notes};
use crate::voice::session::CallSession;
use crate::voice::unavailable;

impl<S: CallSession> CallState<S> {
    /// Takes over what tools have asked for.
    pub(super) fn follow_session(&mut self) {
        let flags = self.session.flags();
        self.speech.follow(flags);
        // A block takes over from an end that was asked for before.
        let has_farewell =
            self.farewell.as_ref().is_some_and(|farewell| farewell.is_block() || !flags.is_block);
        if flags.is_end_pending && !has_farewell {
            self.begin_farewell();
        }
    }

    /// Whether the client is blocked, and only hears the farewell any more.
    pub(super) fn is_blocked(&self) -> bool {
        self.farewell.as_ref().is_some_and(Farewell::is_block)
    }

    /// An end was asked for. It comes after the model's farewell, or without one when there is none.
    fn begin_farewell(&mut self) {
        let now = self.timing.now;
        let end = self.session.requested_end().unwrap_or_default();
        let wait = if self.speech.is_silent() || end.words.is_some() {
            self.speech.playback.unplayed() + self.settings.farewell_timeout
        } else {
            MAX_FAREWELL
        };
        self.farewell = Some(Farewell::new(end, self.journal.model_text(), wait, now));
        if self.is_blocked() {
            self.turn_off_mic();
        }
        self.tick_soon();
    }

    /// Ends the call if an end was asked for, its turn is over, everything before it has been played, and no call is
    /// running: its answer is still to come, and the user should see it.
    pub(super) fn end_if_played(&mut self) {
        if !self.pending.is_empty() || self.awaits_words() {
            return;
        }
        let unplayed = self.speech.playback.unplayed();
        if unplayed.is_zero() || !self.client.is_connected {
            self.end_if_asked();
        } else if self.speech.is_silent() {
            // The client says when it has played everything; if it never does, the time that it takes is known.
            self.end_within(unplayed + self.settings.farewell_timeout);
        }
    }

    /// Whether the words of the farewell are still to be heard. A client that is away hears nothing.
    fn awaits_words(&mut self) -> bool {
        let Some(farewell) = self.farewell.as_mut().filter(|farewell| !farewell.is_heard()) else {
            return false;
        };
        if !self.client.is_connected {
            return false;
        }
        if self.speech.is_silent() {
            farewell.expect_words(self.timing.now);
            self.tick_soon();
        }
        true
    }

    /// An end that was asked for comes at the latest after this time.
    pub(super) fn end_within(&mut self, time: Duration) {
        if let Some(farewell) = &mut self.farewell {
            farewell.end_within(time, self.timing.now);
            self.tick_soon();
        }
    }

    /// The model was interrupted. An end that was asked for is void now; one that cannot be undone comes all the same,
    /// after its farewell if that had not begun.
    pub(super) fn interrupt_farewell(&mut self, timeout: Duration) {
        if !self.session.flags().is_end_pending {
            self.farewell = None;
        } else if self.farewell.as_ref().is_some_and(Farewell::has_begun) || !self.awaits_words() {
            self.end_within(timeout);
        }
    }

    fn end_if_overdue(&mut self) {
        let now = self.timing.now;
        let Some(farewell) = self.farewell.as_ref().filter(|farewell| farewell.is_due(now)) else { return };
        let is_overdue = farewell.is_overdue(now);
        let unrequested = farewell.unrequested().filter(|_| self.client.is_connected).map(str::to_owned);
        let is_done = match unrequested {
            Some(words) if self.request_farewell(&words, is_overdue) => return,
            Some(_) => false,
            None => self.speech.is_silent() && self.pending.is_empty(),
        };
        if is_done || is_overdue {
            self.farewell = None;
            self.session.complete_turn();
            self.end_if_asked();
        }
    }

    /// Has the model say the farewell, which it has not done by itself, as soon as it is there and silent; in the end even
    /// if it speaks. Returns whether it was asked.
    fn request_farewell(&mut self, words: &str, is_overdue: bool) -> bool {
        let was_speaking = self.speech.is_speaking();
        let is_busy = was_speaking || !self.pending.is_empty();
        if self.connection.is_connecting || (is_busy && !is_overdue) {
            return false;
        }
        let text = format_notes(&[farewell_note(words)]);
        if !self.send_provider(ProviderOutput::Note { text: text.clone(), asks: true }) {
            return false;
        }
        self.journal.add_note(&text);
        let now = self.timing.now;
        // Like a message of the user, it takes the place of what the model may be about to say.
        self.speech.interruption.on_user_text(was_speaking, self.speech.owes_words(), now);
        self.speech.owes = Owes::Words;
        let timeout = self.settings.farewell_timeout;
        self.farewell.iter_mut().for_each(|farewell| farewell.on_requested(timeout, now));
        true
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
        let slow = self.pending.take_slow(now);
        self.fill_wait(&slow);
        for call in slow {
            let text = format!("{} is taking a moment.", call.name);
            self.send_client(ClientOutput::Progress { id: call.shown_id.clone(), text });
        }
        self.report_heard();
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
            || self.hearing.has_paused()
            || self.question.is_pending()
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
