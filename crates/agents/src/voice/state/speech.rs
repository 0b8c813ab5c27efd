//! Who is speaking, who owes an answer, and what of it goes through.

use tokio::time::Instant;

use super::interruption::{InterruptedResponse, Interruption};
use super::playback::Playback;
use super::receipts::Receipts;
use crate::voice::session::SessionFlags;

#[derive(Debug, Default)]
pub(super) struct Speech {
    /// A turn has begun and has not ended.
    pub(super) is_turn_open: bool,
    /// The model has begun to answer in this turn.
    pub(super) is_answering: bool,
    /// The model waits for the results of its calls, and says nothing meanwhile.
    is_paused: bool,
    pub(super) owes: Owes,
    pub(super) interruption: Interruption,
    /// The provider reports when the user speaks, so a transcript may come late and begins no turn.
    pub(super) reports_speech: bool,
    pub(super) playback: Playback,
    pub(super) receipts: Receipts,
    flags: SessionFlags,
    /// Audio has come from the client since the last tick.
    pub(super) mic_moved: bool,
    /// The provider takes the microphone to be on.
    pub(super) mic_is_on: bool,
}

/// What the model has been asked and has not begun to say.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) enum Owes {
    #[default]
    Nothing,
    /// Something about a result or a note.
    Words,
    /// The answer to something that the user wrote.
    Answer,
}

impl Speech {
    /// Takes over what tools have set in the session.
    pub(super) fn follow(&mut self, flags: SessionFlags) {
        self.flags = flags;
    }

    pub(super) fn hides_transcript(&self) -> bool {
        self.flags.hides_transcript
    }

    pub(super) fn drops_audio(&self) -> bool {
        self.flags.drops_audio
    }

    /// Model audio has come. Returns whether the client should get it.
    pub(super) fn admit_audio(&mut self, now: Instant) -> bool {
        if self.interruption.suppresses(now) {
            return false;
        }
        self.on_response();
        !self.flags.drops_audio
    }

    /// The model speaks.
    pub(super) fn on_response(&mut self) {
        self.is_answering = true;
        self.is_paused = false;
        self.owes = Owes::Nothing;
        self.interruption.on_response();
    }

    /// The model calls tools.
    pub(super) fn on_calls(&mut self) {
        self.owes = Owes::Nothing;
        self.interruption.on_response();
    }

    /// The model has every result that it waits for, and is about to speak.
    pub(super) fn on_results(&mut self) {
        if !self.is_speaking() && !self.owes_words() {
            self.owes = Owes::Words;
        }
        self.is_paused = false;
    }

    /// The model has been asked what the user wrote, if it could be reached.
    pub(super) fn on_asked(&mut self, is_sent: bool) {
        self.owes = if is_sent { Owes::Answer } else { Owes::Nothing };
    }

    /// What was being said answers something older than the user waits for.
    pub(super) fn await_answer_again(&mut self) {
        self.is_answering = false;
        self.is_paused = false;
        self.owes = Owes::Answer;
    }

    /// Whether the model was asked something, or given a result, and has not begun to speak about it.
    pub(super) fn owes_words(&self) -> bool {
        self.owes != Owes::Nothing
    }

    /// The model waits for the results of its calls, or goes on by itself; or an interrupted response has ended, and
    /// what was asked since is about to be answered.
    pub(super) fn pause(&mut self) {
        self.is_paused = !self.ends_interrupted();
    }

    /// Whether the model speaks, or is about to go on.
    pub(super) fn is_speaking(&self) -> bool {
        self.is_answering && !self.is_paused
    }

    /// The user has begun to speak, perhaps into a response, which the provider then reports as interrupted.
    pub(super) fn on_user_speech(&mut self) {
        self.reports_speech = true;
        self.interruption.on_user_speech(self.is_answering);
    }

    pub(super) fn end_turn(&mut self) {
        self.is_turn_open = false;
        self.is_answering = false;
        self.is_paused = false;
        self.owes = Owes::Nothing;
        self.playback.end_answer();
    }

    /// The connection is gone, and with it whatever it was about to say.
    pub(super) fn on_provider_lost(&mut self) {
        self.is_answering = false;
        self.is_paused = false;
        self.interruption = Interruption::default();
    }

    /// The provider reports an interruption.
    pub(super) fn on_interrupted(&mut self, end_follows: bool, now: Instant) -> InterruptedResponse {
        let awaits_answer = self.owes == Owes::Answer && !self.is_answering;
        self.interruption.on_interrupted(end_follows, awaits_answer, now)
    }

    /// The provider ends a turn. Returns whether it is an interrupted one, which has ended here already.
    pub(super) fn ends_interrupted(&mut self) -> bool {
        self.interruption.on_turn_end(self.owes_words())
    }

    /// Neither the user nor the model speaks.
    pub(super) fn is_silent(&self) -> bool {
        !self.is_turn_open && !self.is_answering
    }

    /// Neither speaks, nor is about to.
    pub(super) fn is_quiet(&self) -> bool {
        self.is_silent() && !self.owes_words()
    }
}
