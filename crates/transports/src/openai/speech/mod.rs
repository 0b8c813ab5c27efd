//! `POST /audio/transcriptions` and `POST /audio/speech`: OpenAI's speech models, and every server that speaks the same.
//!
//! An engine takes so many requests at a time and refuses the next as busy: a queue would only make users wait for words
//! that come too late.

mod exchange;
mod multipart;
mod synthesis;
mod transcript_events;
mod transcription;

pub use synthesis::{AudioFormat, OpenAiTextToSpeech, OpenAiTextToSpeechConfig};
pub use transcript_events::TranscriptReader;
pub use transcription::{OpenAiSpeechToText, OpenAiSpeechToTextConfig, read_transcript};

/// Requests at a time, unless it is configured.
const DEFAULT_MAX_REQUESTS: usize = 32;
