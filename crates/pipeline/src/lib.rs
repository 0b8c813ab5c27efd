//! Any chat model by voice: speech to text, the model, and its sentences as speech, behind the trait of live models.
//!
//! [`Pipeline`] is a `LiveModel` over a `ChatModel`, a `SpeechToText` and a `TextToSpeech`. One conversation is a connection
//! without a task of its own: `dialogue` decides, without I/O, what is asked and said and what the user has heard of it;
//! `connection` polls the engines. When the user speaks is the agent's ear's to say.

mod connection;
mod conversation;
mod dialogue;
mod hearing;
mod input_audio;
mod language;
mod latency;
mod model;
mod model_request;
mod playback;
mod sentences;
mod settings;
mod spoken;
mod voice;

pub use model::Pipeline;
pub use settings::PipelineSettings;
