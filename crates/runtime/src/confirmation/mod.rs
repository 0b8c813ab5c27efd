//! What a person is asked, and how their answer is recognised.

mod deadlines;
mod preview;
mod row;
mod token;

pub(crate) use deadlines::{Deadlines, REMEMBERED_MS};
pub(crate) use preview::preview;
pub(crate) use row::{ConfirmationRow, Status};
pub(crate) use token::{hash, new_token};
