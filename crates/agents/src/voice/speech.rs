//! Who speaks, and what of it goes through.

use std::time::Duration;

use quarterdeck_runtime::SessionState;

/// Bytes of model audio in a second: 24 kHz, 16 bits.
const BYTES_PER_SECOND: u64 = 48_000;

/// Who speaks, and what of it goes through.
#[derive(Debug, Default)]
pub(super) struct Speech {
    /// A turn has begun and is not over.
    pub(super) is_turn_open: bool,
    /// The model has begun to answer in this turn.
    pub(super) is_answering: bool,
    /// The person wants no more of the present answer.
    pub(super) is_hushed: bool,
    /// The turn that was cut will still be said to be complete.
    pub(super) awaits_cut_end: bool,
    /// Bytes of audio that the page has got and has not said to have played.
    unheard: u64,
    drops_audio: bool,
    pub(super) hides_transcript: bool,
    /// Audio has come from the person since the last look.
    pub(super) mic_moved: bool,
    /// The provider thinks that the microphone is on.
    pub(super) mic_is_on: bool,
}

impl Speech {
    /// Takes over what a tool has asked for.
    pub(super) fn follow(&mut self, state: &SessionState) {
        self.drops_audio = state.should_suppress_audio;
        self.hides_transcript = state.should_suppress_transcript;
    }

    /// Whether the model's audio reaches the person.
    pub(super) fn lets_audio_through(&self) -> bool {
        !self.drops_audio && !self.is_hushed
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

    /// The turn is over, one way or another.
    pub(super) fn turn_over(&mut self) {
        self.is_turn_open = false;
        self.is_answering = false;
        self.is_hushed = false;
    }

    /// Nobody says anything, and nobody is about to.
    pub(super) fn is_quiet(&self) -> bool {
        !self.is_turn_open && !self.is_answering
    }
}
