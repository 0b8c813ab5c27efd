//! The client's side of the machine: its messages, and its coming and going.

use std::time::Duration;

use quarterdeck_contracts::{ConfirmationAnswer, ErrorType, Speaker, ToolError};
use quarterdeck_runtime::PendingEnd;

use super::{CallEnd, CallState, ClientOutput, IDLE_TICK, Output, ProviderOutput};
use crate::note::format_notes;
use crate::voice::link::ClientMessage;
use crate::voice::session::CallSession;

/// How soon a call ends whose farewell was interrupted.
const INTERRUPTED_FAREWELL_TIMEOUT: Duration = Duration::from_secs(1);
/// After how long of silence a client is pinged.
const PING_INTERVAL: Duration = Duration::from_secs(15);

impl<S: CallSession> CallState<S> {
    pub(super) fn on_client_message(&mut self, message: ClientMessage<'_>) {
        self.client.last_seen = self.timing.now;
        match message {
            ClientMessage::Text(text) => self.on_client_text(text),
            ClientMessage::Confirm { token, is_approved } => self.confirm(token, is_approved),
            ClientMessage::Played(time) => {
                self.speech.playback.report(time, self.timing.now);
                self.report_heard();
                self.on_playback_report();
            }
            ClientMessage::Drained => {
                self.speech.playback.drain();
                self.report_heard();
                self.on_playback_report();
                self.end_if_played();
            }
            ClientMessage::Interrupt => self.on_client_interrupt(),
            ClientMessage::Stop => self.end = Some(CallEnd::Ended(PendingEnd::with_reason("user_hung_up"))),
            // Audio does not come here: it goes from link to link.
            ClientMessage::KeepAlive | ClientMessage::Audio(_) => {}
        }
    }

    fn on_client_text(&mut self, text: &str) {
        if self.is_blocked() {
            let message = "You are blocked. The call ends after the farewell.";
            return self.send_error(ToolError::new(ErrorType::Blocked, message));
        }
        let (was_speaking, was_awaited) = (self.speech.is_speaking(), self.speech.owes_words());
        let heard = self.speech.playback.heard(self.timing.now);
        if self.speech.is_answering {
            self.send_provider(ProviderOutput::Interrupt { heard });
            self.interrupt();
        } else if !self.speech.playback.unplayed().is_zero() {
            // The model has said everything, and faster than it is played.
            self.send_provider(ProviderOutput::Interrupt { heard });
            self.silence();
        }
        self.speech.interruption.on_user_text(was_speaking, was_awaited, self.timing.now);
        self.hearing.latency.forget();
        self.begin_turn();
        self.session.add_user_words(&format!("\n{text}\n"));
        self.journal.add_user_text(text);
        let (by, shown) = (Speaker::User, text.to_owned());
        self.send_client(ClientOutput::Transcript { by, text: shown, is_final: true, is_late: false });
        // Without a connection it is in the journal, which the next one is told.
        let is_sent = self.send_provider(ProviderOutput::Text(text.to_owned()));
        self.speech.on_asked(is_sent);
        self.store_journal();
    }

    /// The user wants silence: what is queued is dropped, and the rest of the response is suppressed.
    fn on_client_interrupt(&mut self) {
        self.withdraw_question();
        let was_speaking = self.speech.is_speaking();
        let was_about_to =
            self.speech.owes_words() || (self.speech.is_turn_open && self.journal.awaits_answer());
        let heard = self.speech.playback.heard(self.timing.now);
        self.send_provider(ProviderOutput::Interrupt { heard });
        self.interrupt();
        if (was_speaking || was_about_to) && self.connection.is_connected {
            self.speech.interruption.suppress(was_speaking, self.timing.now);
        }
    }

    /// A response is interrupted, and the turn with it.
    pub(super) fn interrupt(&mut self) {
        let turn = self.spoken_turn();
        self.silence();
        self.record_turn(turn);
        self.session.interrupt();
        self.journal.end_turn();
        self.speech.end_turn();
        self.speech.follow(self.session.flags());
        self.store_journal();
        self.interrupt_farewell(INTERRUPTED_FAREWELL_TIMEOUT);
    }

    /// What the client has not played yet is not heard any more.
    pub(super) fn silence(&mut self) {
        if self.client.is_connected {
            self.push(Output::DropClientAudio);
        }
        self.send_client(ClientOutput::Interrupted);
        let (present, last) = self.speech.playback.heard_parts(self.timing.now);
        self.report_interrupted();
        self.journal.cut_answers(present, last);
        self.clear_playback();
    }

    /// The client has nothing to play.
    fn clear_playback(&mut self) {
        self.speech.playback.clear();
        self.hearing.clear_playback();
    }

    /// The first sign of input from the user begins a turn.
    pub(super) fn begin_turn(&mut self) {
        if self.speech.is_turn_open {
            return;
        }
        self.speech.is_turn_open = true;
        let notes = self.session.begin_turn();
        // They belong in front of what the user is about to say, and the model is silent now.
        if !notes.is_empty() {
            let text = format_notes(&notes);
            self.journal.add_note(&text);
            self.send_provider(ProviderOutput::Note { text, asks: false });
        }
    }

    /// A decision about a call, which only the client can bring.
    fn confirm(&mut self, token: &str, is_approved: bool) {
        self.leave_to_page();
        if self.pending.begin_confirmation() {
            let answer = if is_approved { ConfirmationAnswer::Approve } else { ConfirmationAnswer::Deny };
            return self.push(Output::ResolveConfirmation { token: token.to_owned(), answer, spoken: None });
        }
        let message = "Too many confirmations at a time. Try again in a moment.";
        self.send_error(ToolError::new(ErrorType::RateLimit, message));
    }

    /// A link of the client has taken over.
    pub(super) fn attach_client(&mut self) {
        self.withdraw_question();
        self.report_interrupted();
        self.client.attach(self.timing.now);
        // What the older page had not played yet, this one has not got.
        self.clear_playback();
        if self.client.is_ready {
            self.client.is_resumed = true;
            self.greet();
        }
    }

    /// The client is gone. The call waits for it to come back.
    pub(super) fn detach_client(&mut self) {
        self.withdraw_question();
        self.client.detach(self.timing.now);
        self.turn_off_mic();
        self.store_journal();
        self.tick_soon();
    }

    pub(super) fn greet_first(&mut self) {
        if !std::mem::replace(&mut self.client.is_ready, true) {
            self.greet();
        }
    }

    /// The first messages of a link.
    fn greet(&mut self) {
        if !self.client.is_connected {
            return;
        }
        self.push(Output::Client(ClientOutput::Ready { is_resumed: self.client.is_resumed }));
        for (id, request) in self.client.confirmations() {
            let (id, request) = (id.clone(), request.clone());
            self.outputs.push_back(Output::Client(ClientOutput::ConfirmationRequest { id, request }));
        }
        self.outputs.extend(self.client.missed.drain().map(Output::Client));
        // A client that comes back is in the same session.
        self.client.is_resumed = true;
    }

    pub(super) fn check_client(&mut self) {
        let now = self.timing.now;
        if let Some(since) = self.client.away_since
            && now.saturating_duration_since(since) >= self.settings.reconnect_timeout
        {
            self.end = Some(CallEnd::ClientGone);
        }
        let has_moved = std::mem::take(&mut self.speech.mic_moved);
        self.check_pause(has_moved);
        if !has_moved && self.client.last_seen + IDLE_TICK < now {
            self.turn_off_mic();
        }
        if has_moved {
            self.client.last_seen = now;
        }
        if !self.client.is_connected {
            return;
        }
        if now.saturating_duration_since(self.client.last_seen) >= self.settings.idle_timeout {
            self.push(Output::DetachClient);
            return self.detach_client();
        }
        let last_contact = self.client.last_seen.max(self.client.last_ping);
        if now.saturating_duration_since(last_contact) >= PING_INTERVAL {
            self.push(Output::PingClient);
            self.client.last_ping = now;
        }
    }

    pub(super) fn turn_off_mic(&mut self) {
        self.stop_listening();
        if self.speech.mic_is_on {
            // A provider that is away is told when it is back.
            self.speech.mic_is_on = !self.send_provider(ProviderOutput::AudioEnded);
        }
    }
}
