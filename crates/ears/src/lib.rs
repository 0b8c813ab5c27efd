//! Hears when a user speaks: voice activity, echo, the beginning and the end of an utterance.
//!
//! One [`Ear`] listens to one call. It is fed the user's audio and what is being played to them, and says when the user
//! begins and stops to speak. It keeps no audio, reads no clock, performs no I/O and allocates nothing per frame: the same
//! input gives the same events.

mod detector;
mod ear;
mod echo;
mod framing;
mod turn_end;
mod utterance;

pub use ear::Ear;
pub use turn_end::{AnyPause, TurnEnd};
pub use utterance::{EarEvent, EarSettings};
