//! The base as a whole, from its public side.
#![expect(clippy::unwrap_used, reason = "a test that cannot set up its world fails")]

mod answers;
mod elsewhere;
mod filters;
mod listing;
mod meaning;
mod odd;
mod quality;
mod renewal;
mod sample;
mod truth;
mod world;
