//! The voice agent between a model and a page that do what a test wants.

mod calling;
mod cutting;
mod ending;
mod losing;
mod odd;
pub(crate) mod simulated;
pub(crate) mod stage;
mod talking;
