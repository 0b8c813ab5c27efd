//! The base as a whole, from its public side.

mod answers;
mod filters;
mod meaning;
mod odd;
mod quality;
mod sample;
mod world;
