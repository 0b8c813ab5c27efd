//! Servers that stand in for the providers of live models, for tests, demonstrations and a product without a key.
//!
//! [`live`] speaks the provider's side of the Gemini Live protocol, [`realtime`] that of OpenAI Realtime, on any stream
//! that they are given. This crate opens no file and no connection, starts no program, and reads tokio's clock and no
//! other.

pub mod live;
pub mod realtime;
mod speech_detector;
