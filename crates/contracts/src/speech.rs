//! Engines that turn speech into words and words into speech, as the pipeline and the voice agent see every one of them.
//!
//! An engine is asked for one utterance or one sentence at a time. It has its own limits and time-outs: what it cannot do
//! now it refuses as [`SpeechErrorKind::Busy`], and it never keeps a queue of its own.

use std::pin::Pin;
use std::sync::Arc;

use futures_core::Stream;

use crate::handler::BoxFuture;

/// Samples each second of what a user says.
pub const HEARD_RATE: u32 = 16_000;
/// Samples each second of what is said to a user.
pub const SPOKEN_RATE: u32 = 24_000;

/// Turns what a user said into words.
pub trait SpeechToText: Send + Sync {
    /// Engine and model, `local/moonshine-base`: for display and logs.
    fn name(&self) -> &str;

    /// Transcribes one utterance. Dropping the future gives it up.
    fn transcribe(&self, utterance: Utterance) -> BoxFuture<Result<Transcript, SpeechError>>;
}

/// What a user said, from a pause to a pause.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Utterance {
    /// Mono, [`HEARD_RATE`].
    pub samples: Arc<[i16]>,
    /// The user's language, `en` or `de-AT`, if it is known.
    pub language: Option<String>,
}

/// The words of an utterance.
#[derive(Debug, Clone, PartialEq)]
pub struct Transcript {
    /// The words. Empty where nothing was understood.
    pub text: String,
    /// How sure the engine is of all of them, from 0 to 1, if it says.
    pub confidence: Option<f32>,
}

/// Turns words into speech.
pub trait TextToSpeech: Send + Sync {
    /// Engine and voice, `local/espeak-ng`: for display and logs.
    fn name(&self) -> &str;

    /// Speaks one sentence. Dropping the stream gives it up. It ends after the last sample or an error.
    fn speak(&self, sentence: Sentence) -> SpeechStream;
}

/// Speech as it is made: pieces of mono samples at [`SPOKEN_RATE`].
pub type SpeechStream = Pin<Box<dyn Stream<Item = Result<Vec<i16>, SpeechError>> + Send>>;

/// What is to be spoken at once.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Sentence {
    /// The words, as a person would say them: no markup, no links.
    pub text: String,
    /// Its language, `en` or `de-AT`, if it is known.
    pub language: Option<String>,
}

/// Why an engine has no words or no speech.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{engine}: {detail}")]
pub struct SpeechError {
    /// What kind of trouble.
    pub kind: SpeechErrorKind,
    /// Which engine ([`SpeechToText::name`], [`TextToSpeech::name`]).
    pub engine: String,
    /// What happened, for the operator. It holds no secret.
    pub detail: String,
}

/// What kind of trouble.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum SpeechErrorKind {
    /// The engine is not there, or was lost. Trying again may help.
    Unavailable,
    /// Nothing came in time. Trying again may help.
    TimedOut,
    /// It has as much to do as it takes. Trying again later may help.
    Busy,
    /// The key is missing or wrong.
    Auth,
    /// It does not take what it was sent: a model, a voice, a language, or too long a piece.
    Refused,
    /// What came cannot be understood.
    Malformed,
}

impl SpeechErrorKind {
    /// Whether another attempt may go better.
    pub fn is_retryable(self) -> bool {
        matches!(self, Self::Unavailable | Self::TimedOut | Self::Busy | Self::Malformed)
    }
}
