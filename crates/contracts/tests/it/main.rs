//! The shapes on the wire: what is written is what is read.

mod artifact;
mod case;
mod definition;
mod response;
