//! Clients of model providers: one module for each, all behind [`quarterdeck_contracts::ChatModel`].
//!
//! A provider is three things. A pure function makes the body of a request; a state machine makes events of what comes
//! back, without I/O; and one shared path (within [`Limits`]) sends, waits, retries and gives up. A
//! client runs no tool, keeps nothing between two requests, and never shows its key.
//!
//! Image models are behind [`quarterdeck_contracts::ImageProvider`], and are asked once and never again (`images.rs`).
//!
//! Speech engines over HTTP are behind [`quarterdeck_contracts::SpeechToText`] and [`quarterdeck_contracts::TextToSpeech`]
//! (`openai/speech`).
//!
//! Live models are behind [`quarterdeck_contracts::LiveModel`]: the same division, with a [`live`] connection in the place
//! of the request.

pub mod anthropic;
mod arguments;
mod config;
mod conversation;
mod endpoint;
mod fault;
pub mod gemini;
mod http;
mod images;
pub mod live;
mod local_servers;
pub mod openai;
mod overflow;
mod reply;
mod retry;
mod secret;
pub mod sse;

pub use anthropic::{Anthropic, AnthropicConfig};
pub use config::{ConfigError, Limits};
pub use endpoint::is_loopback_url;
pub use fault::Fault;
pub use gemini::images::{GeminiImages, GeminiImagesConfig};
pub use gemini::live::{GeminiLive, GeminiLiveConfig};
pub use gemini::{Gemini, GeminiConfig};
pub use local_servers::{FoundServer, KnownServer, find_local_servers, find_servers, read_models};
pub use openai::images::{OpenAiImages, OpenAiImagesConfig};
pub use openai::realtime::{OpenAiRealtime, OpenAiRealtimeConfig};
pub use openai::speech::{
    AudioFormat, OpenAiSpeechToText, OpenAiSpeechToTextConfig, OpenAiTextToSpeech, OpenAiTextToSpeechConfig,
};
pub use openai::{OpenAi, OpenAiConfig};
pub use reply::{Accumulator, Progress, Reader};
pub use secret::Secret;
