//! `POST /audio/transcriptions` and `POST /audio/speech`: OpenAI's speech models, and every server that speaks the same.
//!
//! An engine takes so many requests at a time and refuses the next as busy: a queue would only make users wait for words
//! that come too late.

mod exchange;
mod multipart;
mod pcm;
mod synthesis;
mod transcription;
mod wav;

pub use pcm::PcmReader;
pub use synthesis::{AudioFormat, OpenAiTextToSpeech, OpenAiTextToSpeechConfig};
pub use transcription::{OpenAiSpeechToText, OpenAiSpeechToTextConfig, read_transcript};
pub use wav::WavReader;

/// Requests at a time, unless it is configured.
const DEFAULT_MAX_REQUESTS: usize = 32;
