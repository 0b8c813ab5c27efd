//! Asks the user by voice whether a call may run, and takes the answer from their own audio.
//!
//! What the model says or does, texts, notes and results decide nothing here. They can only keep a question from being asked:
//! it needs a pause, and an answer counts only if it began after the client has reported that everything was played.

use std::sync::Arc;
use std::time::Duration;

use quarterdeck_contracts::{
    Audio, ConfirmationAnswer, ConfirmationRequest, Outcome, Transcript, TranscriptPiece, TranscriptStage,
};
use quarterdeck_runtime::{Listen, MIN_SPOKEN_CONFIDENCE, SpokenRefusal};
use tokio::time::Instant;

use super::output::SpokenReply;
use super::question::{HeardAnswer, Stage, Window};
use super::{CallState, Output, ProviderOutput};
use crate::voice::answers::ReceivedAnswer;
use crate::voice::session::CallSession;
use crate::voice::spoken_answer::{SpokenAnswer, spoken_answer};
use crate::voice::spoken_question::question_text;

/// How long the user has to begin an answer.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(15);
/// How long the engine has to speak a question, the client to report that it was played, and the recogniser to understand the
/// answer.
const SPEAK_TIMEOUT: Duration = Duration::from_secs(30);
const REPORT_TIMEOUT: Duration = Duration::from_secs(10);
const TRANSCRIPT_TIMEOUT: Duration = Duration::from_secs(5);
/// How much speech a question may be: a minute.
const MAX_QUESTION_BYTES: usize = 60 * 48_000;
const BYTES_PER_MS: u64 = 48;
/// How much of a provider's transcript is kept. No answer is longer.
const MAX_WORDS_BYTES: usize = 400;

impl<S: CallSession> CallState<S> {
    /// Looks where the question stands, after everything that may have changed it.
    pub(super) fn advance_question(&mut self) {
        if self.question.settings.is_none() || self.end.is_some() {
            return;
        }
        self.follow_confirmations();
        let now = self.timing.now;
        match self.question.stage() {
            Some(Stage::Waiting { not_before }) if *not_before <= now && self.can_ask() => self.ask(),
            Some(Stage::Speaking { deadline, .. }) if *deadline <= now => self.leave_to_page(),
            Some(Stage::Speaking { .. } | Stage::Playing { .. }) if !self.speech.is_quiet() => {
                self.withdraw_question();
            }
            Some(Stage::Playing { ends_at }) if *ends_at + REPORT_TIMEOUT <= now => self.leave_to_page(),
            Some(Stage::Listening(window)) => {
                let (is_begun, closes_at) = (window.utterance.is_some(), window.closes_at);
                if window.is_too_long() {
                    self.mark_unclear();
                } else if !is_begun && (self.speech.is_answering || self.speech.owes_words()) {
                    self.withdraw_question();
                } else if !is_begun && closes_at <= now {
                    self.leave_to_page();
                }
            }
            Some(Stage::Understanding { deadline, .. }) if *deadline <= now => self.mark_unclear(),
            _ => {}
        }
        if self.question.holds_too_much() {
            self.mark_unclear();
        }
    }

    /// A question is about the one confirmation that is open. With a second one, a yes could mean either.
    fn follow_confirmations(&mut self) {
        let Some(settings) = &self.question.settings else { return };
        let open = self.client.only_confirmation(self.timing.now, settings.lifetime);
        let asked = self.question.asked.as_ref().map(|asked| asked.token.as_str());
        if asked == open.as_ref().map(|(token, _)| token.as_str()) {
            return;
        }
        if asked.is_some() {
            self.stop_question();
            self.question.asked = None;
        }
        let Some((token, request)) = open else { return };
        self.begin_question(token, request);
    }

    fn begin_question(&mut self, token: String, request: Arc<ConfirmationRequest>) {
        let now = self.timing.now;
        self.question.begin(token, request, now);
        if self.question_text().is_none() || !self.hearing.has_ear() {
            self.question.set_stage(Stage::PageOnly);
        }
        self.tick_soon();
    }

    fn question_text(&self) -> Option<String> {
        let (asked, settings) = (self.question.asked.as_ref()?, self.question.settings.as_ref()?);
        question_text(&asked.request, &settings.language, asked.is_repeated())
    }

    /// Whether there is a pause in which nothing is said, played or about to be.
    fn can_ask(&self) -> bool {
        let is_provider = self.question.settings.as_ref().is_some_and(|own| own.listen == Listen::Provider);
        self.client.is_connected
            && self.client.is_ready
            && self.is_idle()
            && self.notes.is_empty()
            && self.speech.playback.unplayed().is_zero()
            && !self.speech.drops_audio()
            && !self.hearing.has_paused()
            && !self.pending.has_confirmations()
            && self.farewell.is_none()
            && self.timing.stop_deadline.is_none()
            // A transcript that is still to come would be taken for the answer.
            && !(is_provider && self.hearing.is_untranscribed())
    }

    fn ask(&mut self) {
        let Some(text) = self.question_text() else { return self.leave_to_page() };
        let language = self.question.settings.as_ref().map(|settings| settings.language.clone());
        let (number, now) = (self.question.next_number(), self.timing.now);
        let deadline = now + SPEAK_TIMEOUT;
        self.question.set_stage(Stage::Speaking { number, deadline, ends_at: now, sent_bytes: 0 });
        self.push(Output::SpeakQuestion { number, text, language: language.unwrap_or_default() });
        self.tick_soon();
    }

    /// Speech of a question. Returns whether the driver hands it on to the client.
    pub(in crate::voice) fn admit_question_audio(
        &mut self,
        number: u64,
        audio: &Audio<'_>,
        now: Instant,
    ) -> bool {
        self.timing.now = now;
        let length = audio.samples_len();
        let asked = self.question.asked.as_mut().map(|asked| &mut asked.stage);
        let Some(Stage::Speaking { number: own, ends_at, sent_bytes, .. }) = asked else { return false };
        if *own != number || self.end.is_some() || !self.client.is_connected {
            return false;
        }
        *sent_bytes += length;
        *ends_at = (*ends_at).max(now) + Duration::from_millis(length as u64 / BYTES_PER_MS);
        if *sent_bytes > MAX_QUESTION_BYTES {
            self.leave_to_page();
            return false;
        }
        self.speech.playback.add_question(length, now);
        self.hearing.add_playback(audio);
        self.question.sent.add(audio);
        true
    }

    pub(super) fn on_question_spoken(&mut self, number: u64) {
        match self.question.stage() {
            Some(Stage::Speaking { number: own, sent_bytes: 0, .. }) if *own == number => {
                self.leave_to_page()
            }
            Some(Stage::Speaking { number: own, ends_at, .. }) if *own == number => {
                let ends_at = *ends_at;
                self.question.set_stage(Stage::Playing { ends_at });
            }
            _ => {}
        }
    }

    pub(super) fn on_question_failed(&mut self, number: u64) {
        if matches!(self.question.stage(), Some(Stage::Speaking { number: own, .. }) if *own == number) {
            self.leave_to_page();
        }
    }

    /// The client has reported what it has played. A report that comes sooner than the question can have been played is about
    /// something else.
    pub(super) fn on_playback_report(&mut self) {
        let now = self.timing.now;
        if let Some(Stage::Playing { ends_at }) = self.question.stage()
            && *ends_at <= now
            && self.speech.playback.unplayed().is_zero()
            && !self.hearing.has_paused()
        {
            self.question.set_stage(Stage::Listening(Window::new(now, now + ANSWER_TIMEOUT)));
            self.tick_soon();
        }
    }

    /// The client gets audio of the model, of which an answer must have nothing. What the user has said before it is theirs.
    pub(super) fn on_audio_over_question(&mut self, audio: &Audio<'_>) {
        if self.question.settings.is_none() {
            return;
        }
        self.question.sent.add(audio);
        match self.question.stage() {
            Some(Stage::Listening(window)) if window.utterance.is_some() => self.end_answer(Duration::ZERO),
            Some(Stage::Speaking { .. } | Stage::Playing { .. } | Stage::Listening(_)) => {
                self.withdraw_question();
            }
            _ => {}
        }
    }

    /// The user has begun to speak, this long ago. Returns whether the model is not told, because it may be an answer.
    pub(super) fn begin_answer(&mut self, ago: Duration) -> bool {
        let now = self.timing.now;
        let holds = self.hearing.relies_on_ear()
            && self.question.settings.as_ref().is_some_and(|settings| settings.listen == Listen::Own);
        if let Some(window) = self.question.window() {
            let is_begun = window.utterance.is_none() && window.begin_utterance(ago, now);
            if is_begun && holds {
                self.question.hold();
            }
            return is_begun && holds;
        }
        match self.question.stage() {
            Some(Stage::Speaking { .. } | Stage::Playing { .. }) => {
                self.withdraw_question();
                false
            }
            // A yes that is followed by more is not clear.
            Some(Stage::Understanding { .. }) => {
                let was_held = self.question.is_holding();
                self.mark_unclear();
                was_held
            }
            _ => false,
        }
    }

    /// The user has stopped to speak, this long ago.
    pub(super) fn end_answer(&mut self, ago: Duration) {
        let number = self.question.next_number();
        let language = self.question.settings.as_ref().map(|settings| settings.language.clone());
        let listen = self.question.settings.as_ref().map(|settings| settings.listen);
        let Some(asked) = &mut self.question.asked else { return };
        let Stage::Listening(window) = &asked.stage else { return };
        if window.utterance.is_none() {
            return;
        }
        if window.is_too_long() || self.question.sent.resembles(window.voiced(ago)) {
            return self.mark_unclear();
        }
        let samples: Arc<[i16]> = window.recording().into();
        let (answer, deadline) = (window.answer.clone(), self.timing.now + TRANSCRIPT_TIMEOUT);
        asked.stage = Stage::Understanding { number, deadline, answer };
        self.tick_soon();
        match listen {
            Some(Listen::Own) => {
                self.push(Output::TranscribeAnswer {
                    number,
                    samples,
                    language: language.unwrap_or_default(),
                });
            }
            _ => self.judge_provider_words(),
        }
    }

    /// Our own speech to text has understood the answer, or not.
    pub(super) fn on_answer_transcribed(&mut self, number: u64, transcript: Option<Transcript>) {
        let Some(Stage::Understanding { number: own, answer, .. }) = self.question.stage() else { return };
        if *own != number {
            return;
        }
        let answer = answer.clone();
        match transcript {
            Some(transcript) => self.decide(&answer, transcript.text, transcript.confidence),
            None => self.mark_unclear(),
        }
    }

    /// The provider's transcript of the user's audio. Only what is final counts.
    pub(super) fn on_words_of_answer(&mut self, piece: &TranscriptPiece<'_>) {
        let is_provider = self.question.settings.as_ref().is_some_and(|own| own.listen == Listen::Provider);
        if !is_provider || piece.stage == TranscriptStage::Interim {
            return;
        }
        let Some(answer) = self.question.answer() else { return };
        let is_unclear = answer.is_final || answer.words.len() + piece.text.len() > MAX_WORDS_BYTES;
        answer.words.push_str(&piece.text);
        answer.is_final = piece.stage == TranscriptStage::Final;
        match is_unclear {
            true => self.mark_unclear(),
            false => self.judge_provider_words(),
        }
    }

    fn judge_provider_words(&mut self) {
        if let Some(Stage::Understanding { answer, .. }) = self.question.stage()
            && answer.is_final
        {
            let answer = answer.clone();
            self.decide(&answer, answer.words.clone(), None);
        }
    }

    /// Judges the words of an answer by the grammar, and resolves the confirmation by them.
    fn decide(&mut self, answer: &HeardAnswer, transcript: String, confidence: Option<f32>) {
        let Some((asked, settings)) = self.question.asked.as_ref().zip(self.question.settings.as_ref())
        else {
            return;
        };
        let token = asked.token.clone();
        let is_sure = confidence.is_none_or(|confidence| confidence >= MIN_SPOKEN_CONFIDENCE);
        let (decision, code) = match spoken_answer(&transcript, &settings.language, asked.expected()) {
            SpokenAnswer::Yes if is_sure => (ConfirmationAnswer::Approve, None),
            SpokenAnswer::Code(code) if is_sure => (ConfirmationAnswer::Approve, Some(code)),
            SpokenAnswer::No if is_sure => (ConfirmationAnswer::Deny, None),
            _ => return self.mark_unclear(),
        };
        if !self.pending.begin_confirmation() {
            return self.mark_unclear();
        }
        // It was for us, and no turn.
        if self.question.take_held().is_some() {
            self.input_audio.clear();
        }
        self.question.set_stage(Stage::Resolving);
        let spoken = Some(SpokenReply { transcript, confidence, code, began_at: answer.began_at });
        self.push(Output::ResolveConfirmation { token, answer: decision, spoken });
    }

    /// A spoken decision that did not count leaves its question open.
    pub(super) fn on_spoken_resolved(&mut self, token: &str, answer: Option<&ReceivedAnswer>) {
        let is_ours = self
            .question
            .asked
            .as_ref()
            .is_some_and(|asked| asked.token == token && matches!(asked.stage, Stage::Resolving));
        if !is_ours {
            return;
        }
        let refusal = answer.and_then(|answer| match &answer.response.outcome {
            Outcome::Failure(error) => SpokenRefusal::of(error),
            Outcome::Success(_) => None,
        });
        match refusal {
            Some(SpokenRefusal::WrongCode) => self.mark_unclear(),
            _ => self.leave_to_page(),
        }
    }

    /// The user decides in another way.
    pub(super) fn leave_to_page(&mut self) {
        if self.question.asked.is_some() {
            self.stop_question();
            self.question.set_stage(Stage::PageOnly);
        }
    }

    /// Something comes in between.
    pub(super) fn withdraw_question(&mut self) {
        if self.question.is_active() {
            self.stop_question();
            let now = self.timing.now;
            self.question.asked.iter_mut().for_each(|asked| asked.withdraw(now));
            self.tick_soon();
        }
    }

    fn mark_unclear(&mut self) {
        self.stop_question();
        let now = self.timing.now;
        self.question.asked.iter_mut().for_each(|asked| asked.mark_unclear(now));
        self.tick_soon();
    }

    /// Ends what is under way for the question. What was held back goes to the model: it was no answer.
    fn stop_question(&mut self) {
        if self.question.is_active() {
            self.push(Output::StopQuestion);
        }
        let Some(held) = self.question.take_held() else { return };
        self.hearing.mark_untranscribed();
        if self.send_provider(ProviderOutput::SpeechStarted) {
            self.push(Output::SendHeldAudio(held));
            if !self.hearing.hears_speech() {
                self.send_provider(ProviderOutput::SpeechEnded);
            }
        }
    }
}
