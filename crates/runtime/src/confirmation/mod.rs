//! What a person is asked, and how their answer is recognised.

mod preview;
mod token;

pub(crate) use preview::preview;
pub(crate) use token::{hash, new_token};
