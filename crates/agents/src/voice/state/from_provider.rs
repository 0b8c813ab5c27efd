//! The provider's side of the machine: its events, and its coming and going.

use quarterdeck_contracts::{LiveError, LiveEvent, Speaker, ToolError, TranscriptPiece, TranscriptStage};

use super::connection::{ReplayMark, Retry};
use super::interruption::InterruptedResponse;
use super::speech::Owes;
use super::{CallEnd, CallState, ClientOutput, Output, ProviderOutput};
use crate::voice::session::CallSession;
use crate::voice::unavailable;

impl<S: CallSession> CallState<S> {
    pub(super) fn on_provider_event(&mut self, event: LiveEvent<'static>) {
        match event {
            LiveEvent::Calls(calls) => self.run_calls(calls),
            LiveEvent::CallsCancelled(ids) => {
                self.pending.cancel(&ids);
                self.session.cancel(&ids);
            }
            LiveEvent::InputTranscript(piece) => self.on_input_transcript(piece),
            LiveEvent::OutputTranscript(piece) => self.on_output_transcript(piece),
            LiveEvent::SpeechStarted => {
                self.speech.on_user_speech();
                self.begin_turn();
            }
            LiveEvent::Interrupted { end_follows } => self.on_interrupted(end_follows),
            LiveEvent::HeardAnswer(text) => {
                self.journal.set_heard(&text);
                self.store_journal();
            }
            LiveEvent::GenerationComplete => self.journal.complete_answer(),
            LiveEvent::TurnComplete { more_follows: false } => self.complete_turn(),
            LiveEvent::TurnComplete { more_follows: true } => self.speech.pause(),
            LiveEvent::ResponseFailed => {
                let message = "The model could not answer that. Please say it again.";
                self.send_error(ToolError { retryable: true, ..unavailable(message) });
            }
            LiveEvent::GoingAway { left } => {
                self.connection.on_going_away(left, self.timing.now);
                self.tick_soon();
            }
            LiveEvent::ResumptionHandle(Some(handle)) => {
                self.journal.set_handle(&self.connection.model, handle);
                self.push(Output::SettleReceipts);
                self.store_journal();
            }
            // Without a handle the older one stays as good as it was; usage and warnings are the driver's.
            _ => {}
        }
    }

    fn on_input_transcript(&mut self, piece: TranscriptPiece<'static>) {
        self.on_words_of_answer(&piece);
        if piece.text.is_empty() {
            return;
        }
        let is_interim = piece.stage == TranscriptStage::Interim;
        let is_last = piece.stage == TranscriptStage::Final;
        if !self.speech.is_turn_open && self.speech.reports_speech {
            // The user has not begun to speak since the turn ended, so these are words of that turn.
            self.add_user_words(&piece);
            if !is_interim {
                self.journal.add_late_transcript(&piece.text);
                self.push(Output::AmendTurn(piece.text.clone().into_owned()));
                self.forget_input_audio();
            }
            return self.show_transcript(Speaker::User, piece, true);
        }
        self.begin_turn();
        self.add_user_words(&piece);
        self.journal.add_user_transcript(&piece.text, piece.stage);
        // The words stand for the audio now.
        if !is_interim {
            self.forget_input_audio();
        }
        self.show_transcript(Speaker::User, piece, false);
        if is_last {
            self.store_journal();
        }
    }

    /// What stands in the transcript of the user's own audio counts as their words; a guess does not.
    fn add_user_words(&mut self, piece: &TranscriptPiece<'static>) {
        match piece.stage {
            TranscriptStage::Interim => {}
            TranscriptStage::Segment => self.session.add_user_words(&piece.text),
            TranscriptStage::Final => self.session.add_user_words(&format!("{}\n", piece.text)),
        }
    }

    fn on_output_transcript(&mut self, piece: TranscriptPiece<'static>) {
        let owes_words = self.speech.owes_words();
        if self.speech.interruption.suppresses_words(owes_words, self.timing.now) {
            return;
        }
        self.speech.on_response();
        self.farewell.iter_mut().for_each(|farewell| farewell.add_transcript(&piece.text));
        self.journal.add_model_transcript(&piece.text);
        self.show_transcript(Speaker::Model, piece, false);
    }

    fn show_transcript(&mut self, by: Speaker, piece: TranscriptPiece<'static>, is_late: bool) {
        if self.speech.hides_transcript() || piece.text.is_empty() {
            return;
        }
        let is_final = piece.stage != TranscriptStage::Interim;
        self.send_client(ClientOutput::Transcript { by, text: piece.text.into_owned(), is_final, is_late });
    }

    fn on_interrupted(&mut self, end_follows: bool) {
        match self.speech.on_interrupted(end_follows, self.timing.now) {
            InterruptedResponse::Known => {}
            InterruptedResponse::Older if self.speech.is_answering => {
                self.silence();
                self.journal.discard_answer();
                self.speech.await_answer_again();
            }
            InterruptedResponse::Older => {}
            InterruptedResponse::Current => {
                let is_spoken_into = self.speech.interruption.take_spoken_into();
                self.interrupt();
                if is_spoken_into {
                    self.begin_turn();
                }
            }
        }
    }

    fn complete_turn(&mut self) {
        // An interrupted turn has ended already; by now the user may have begun another.
        if self.speech.ends_interrupted() {
            return;
        }
        self.connection.mark_stable();
        self.session.complete_turn();
        if self.journal.is_answered() {
            // The answer is replayed wherever the call goes on, so a model that asks for the same again means it.
            self.push(Output::SettleReceipts);
        }
        self.await_receipt();
        self.hearing.latency.forget();
        let turn = self.spoken_turn();
        self.record_turn(turn);
        self.journal.end_turn();
        self.forget_input_audio();
        self.speech.end_turn();
        self.send_client(ClientOutput::TurnComplete);
        self.store_journal();
        self.end_if_played();
    }

    /// Tells the model what it must know, in a pause: in the middle of a turn it would be interrupted by it.
    pub(super) fn send_notes(&mut self) {
        let can_listen = self.connection.is_connected && !self.connection.is_connecting;
        if self.notes.is_empty() || !can_listen || !self.is_idle() || self.question.is_active() {
            return;
        }
        let (_, last) = self.notes.texts();
        let Some((text, answers)) = self.notes.take_told(last) else { return };
        self.deliver(answers);
        self.journal.add_note(&text);
        if self.send_provider(ProviderOutput::Note { text, asks: true }) {
            self.speech.owes = Owes::Words;
        }
    }

    /// Opens a connection that knows what was said.
    pub(super) fn connect_provider(&mut self) {
        let (notes, last_note) = self.notes.texts();
        let replay = self.journal.replay(&self.connection.model, &notes, self.speech.owes_words());
        self.connection.begin_attempt(ReplayMark {
            last_note,
            revision: self.journal.revision(),
            turns: self.journal.added_turns(),
            user_text: self.journal.user_text().to_owned(),
            awaits_answer: self.journal.awaits_answer(),
            with_handle: replay.handle.is_some(),
            asks: replay.asks,
        });
        self.push(Output::Connect(replay));
        self.tick_soon();
    }

    pub(super) fn on_provider_opened(&mut self) {
        self.connection.is_connecting = false;
        let is_stale = self.journal.revision() != self.connection.replayed.revision;
        // The older connection has gone on meanwhile, and the new one would answer what was answered. Another one is
        // opened in the next pause.
        if is_stale && self.connection.is_connected {
            self.connection.reject();
            self.push(Output::RejectConnection);
            return self.tick_soon();
        }
        // The older one has said everything, and need not end its turn.
        if self.connection.is_connected && self.journal.is_answered() {
            self.complete_turn();
        }
        let missed = self.missed_turns();
        self.return_unsent();
        self.connection.accept(self.timing.now);
        self.push(Output::AcceptConnection);
        self.push(Output::ForgetReceipts);
        if let Some((text, answers)) = self.notes.take_told(self.connection.replayed.last_note) {
            self.deliver(answers);
            self.journal.add_note(&text);
        }
        self.pending.forget_cancelled();
        self.notes.on_connected();
        self.speech.on_provider_lost();
        self.speech.owes = match (self.connection.replayed.asks, self.journal.awaits_answer()) {
            (false, _) => Owes::Nothing,
            (true, false) => Owes::Words,
            (true, true) => Owes::Answer,
        };
        if !missed.is_empty() {
            self.send_provider(ProviderOutput::Note { text: missed.join("\n"), asks: false });
        }
        self.catch_up();
        self.replay_input_audio();
    }

    /// Gives a new connection what the user has said since the last transcript.
    fn replay_input_audio(&mut self) {
        let has_speech = self.hearing.has_unheard_speech();
        if has_speech {
            self.send_provider(ProviderOutput::SpeechStarted);
        }
        if !self.input_audio.is_empty() {
            self.push(Output::ReplayInputAudio);
            // This connection must be told as well when no more comes.
            self.speech.mic_is_on = true;
        }
        if has_speech && !self.hearing.hears_speech() {
            self.send_provider(ProviderOutput::SpeechEnded);
        }
    }

    /// Words stand for the user's audio now.
    fn forget_input_audio(&mut self) {
        self.input_audio.clear();
        self.hearing.on_transcribed();
    }

    /// Notes, and messages that the user withdrew by interrupting, since the connection's context was put together.
    fn missed_turns(&self) -> Vec<String> {
        let replayed = &self.connection.replayed;
        let mut known = replayed.user_text.as_str();
        let missed = self.journal.turns_since(replayed.turns).filter(|turn| turn.by == Speaker::User);
        let missed = missed.map(|turn| match turn.text.strip_prefix(known) {
            Some(new) => {
                known = "";
                new.trim_start().to_owned()
            }
            None => turn.text.clone(),
        });
        missed.filter(|text| !text.is_empty()).collect()
    }

    /// Tells a connection what the user waits for, or does not any more, since its context was put together.
    fn catch_up(&mut self) {
        let known = std::mem::take(&mut self.connection.replayed.user_text);
        let now = self.timing.now;
        if !self.journal.awaits_answer() {
            // The user does not want the answer any more.
            if self.connection.replayed.awaits_answer && !self.journal.is_answered() {
                self.send_provider(ProviderOutput::Interrupt { heard: None });
                self.speech.owes = Owes::Nothing;
                self.speech.interruption.suppress(false, now);
            }
            return;
        }
        let said = self.journal.user_text();
        let new = said.strip_prefix(&known).unwrap_or(said).trim_start().to_owned();
        if !new.is_empty() {
            self.speech.interruption.on_user_text(false, self.connection.replayed.asks, now);
            let is_sent = self.send_provider(ProviderOutput::Text(new));
            self.speech.on_asked(is_sent);
        }
    }

    pub(super) fn on_provider_lost(&mut self, error: LiveError) {
        self.connection.on_lost();
        self.return_unsent();
        // Everything was said; only the end of the turn is missing.
        if self.journal.is_answered() {
            self.complete_turn();
        }
        self.speech.on_provider_lost();
        self.store_journal();
        if !self.connection.is_connecting {
            let retry = self.connection.after_loss(&error, self.timing.now);
            self.reconnect(retry, error);
        } else if self.journal.revision() != self.connection.replayed.revision {
            // The one that is being opened does not know what this one has said since, and would say it again.
            self.connect_provider();
        }
    }

    pub(super) fn on_provider_unreachable(&mut self, error: LiveError) {
        self.connection.is_connecting = false;
        let retry = self.connection.after_failure(&error, self.timing.now);
        self.reconnect(retry, error);
    }

    fn reconnect(&mut self, retry: Retry, error: LiveError) {
        match retry {
            Retry::Now => self.connect_provider(),
            Retry::Later => self.tick_soon(),
            Retry::WithoutHandle => {
                self.journal.drop_handle();
                self.connect_provider();
            }
            Retry::GiveUp => self.end = Some(CallEnd::ProviderUnreachable(error)),
        }
    }

    /// Answers that may not have been sent on the older connection go back to the session.
    fn return_unsent(&mut self) {
        self.outputs.extend(self.connection.unsent.drain(..).map(Output::ReturnAnswer));
    }
}
