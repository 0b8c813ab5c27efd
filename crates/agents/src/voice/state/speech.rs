//! Who speaks, and what of it goes through.

use std::time::Duration;

use quarterdeck_runtime::SessionState;

use super::cuts::{Cut, Cuts};

/// Bytes of model audio in a second: 24 kHz, 16 bits.
const BYTES_PER_SECOND: u64 = 48_000;

/// Who speaks, and what of it goes through.
#[derive(Debug, Default)]
pub(super) struct Speech {
    /// A turn has begun and is not over.
    pub(super) is_turn_open: bool,
    /// The model has begun to answer in this turn.
    pub(super) is_answering: bool,
    /// It waits for the results of its calls, and says nothing meanwhile.
    is_paused: bool,
    pub(super) owes: Owes,
    /// What was cut off.
    pub(super) cuts: Cuts,
    /// The provider says when the person speaks, so a transcript may come late and begins no turn.
    pub(super) is_signalled: bool,
    /// Bytes of audio that the page has got and has not said to have played.
    unheard: u64,
    drops_audio: bool,
    pub(super) hides_transcript: bool,
    /// Audio has come from the person since the last look.
    pub(super) mic_moved: bool,
    /// The provider thinks that the microphone is on.
    pub(super) mic_is_on: bool,
}

/// What the model has not begun to say.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) enum Owes {
    #[default]
    Nothing,
    /// Something about a result or a note.
    Words,
    /// The answer to something that the person wrote.
    Answer,
}

impl Speech {
    /// Takes over what a tool has asked for.
    pub(super) fn follow(&mut self, state: &SessionState) {
        self.drops_audio = state.should_suppress_audio;
        self.hides_transcript = state.should_suppress_transcript;
    }

    /// Whether the model's audio reaches the person.
    pub(super) fn lets_audio_through(&self) -> bool {
        !self.drops_audio
    }

    /// That much audio is on its way to the page.
    pub(super) fn sent(&mut self, bytes: usize) {
        self.unheard += bytes as u64;
    }

    /// The page has nothing left to play.
    pub(super) fn drained(&mut self) {
        self.unheard = 0;
    }

    /// How long the page may take to play what it has.
    pub(super) fn unheard(&self) -> Duration {
        Duration::from_millis(self.unheard * 1_000 / BYTES_PER_SECOND)
    }

    /// The model speaks.
    pub(super) fn answering(&mut self) {
        self.is_answering = true;
        self.is_paused = false;
        self.owes = Owes::Nothing;
        self.cuts.answered();
    }

    /// The model calls.
    pub(super) fn called(&mut self) {
        self.owes = Owes::Nothing;
        self.cuts.answered();
    }

    /// The model has every result that it waits for, and is about to speak.
    pub(super) fn resulted(&mut self) {
        if !self.is_speaking() && !self.owes_words() {
            self.owes = Owes::Words;
        }
        self.is_paused = false;
    }

    /// The model has been asked what the person wrote, if it could be reached.
    pub(super) fn asked(&mut self, is_sent: bool) {
        self.owes = if is_sent { Owes::Answer } else { Owes::Nothing };
    }

    /// What was being said answers something older than the person waits for.
    pub(super) fn awaits_again(&mut self) {
        self.is_answering = false;
        self.is_paused = false;
        self.owes = Owes::Answer;
    }

    /// Whether the model was asked something, or given a result, and has not begun to speak about it.
    pub(super) fn owes_words(&self) -> bool {
        self.owes != Owes::Nothing
    }

    /// The model waits for the results of its calls, or goes on by itself; or what was cut off is over, and what was
    /// asked since is about to be answered.
    pub(super) fn pauses(&mut self) {
        self.is_paused = !self.is_cut_end();
    }

    /// Whether the model speaks, or is about to go on.
    pub(super) fn is_speaking(&self) -> bool {
        self.is_answering && !self.is_paused
    }

    /// The person has begun to speak, perhaps into an answer, which the provider then says to have cut off.
    pub(super) fn signalled(&mut self) {
        self.is_signalled = true;
        self.cuts.spoken(self.is_answering);
    }

    /// The turn is over, one way or another.
    pub(super) fn turn_over(&mut self) {
        self.is_turn_open = false;
        self.is_answering = false;
        self.is_paused = false;
        self.owes = Owes::Nothing;
    }

    /// The connection is gone, and with it whatever it was about to say.
    pub(super) fn model_gone(&mut self) {
        self.is_answering = false;
        self.is_paused = false;
        self.cuts = Cuts::default();
    }

    /// The provider says that an answer was cut off. Which one.
    pub(super) fn interrupted(&mut self, end_follows: bool) -> Cut {
        let awaits_answer = self.owes == Owes::Answer && !self.is_answering;
        self.cuts.interrupted(end_follows, awaits_answer)
    }

    /// The provider says that a turn is complete. Whether it is one that was cut off, and is over already.
    pub(super) fn is_cut_end(&mut self) -> bool {
        self.cuts.ended(self.owes_words())
    }

    /// Nobody says anything.
    pub(super) fn is_silent(&self) -> bool {
        !self.is_turn_open && !self.is_answering
    }

    /// Nobody says anything, and nobody is about to.
    pub(super) fn is_quiet(&self) -> bool {
        self.is_silent() && !self.owes_words()
    }
}
