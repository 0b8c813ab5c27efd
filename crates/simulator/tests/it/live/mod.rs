//! Conversations with the Live simulator, on a stream in memory and a clock that waits for nobody.

mod client;
mod conversations;
