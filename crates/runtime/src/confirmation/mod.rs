//! Requests for the user's approval: `request` asks, `resolve` takes the decision, `spoken` judges one that was said, `expiry`
//! ends what was not decided in time.

mod by_id;
mod deadlines;
mod decision;
mod expiry;
mod lifetime;
mod outcome;
mod preview;
mod request;
mod resolve;
mod row;
mod spoken;
mod token;

pub use by_id::{ConfirmationId, OpenConfirmation, call_content};
pub use decision::{ConfirmationDecision, DecisionSource, SpokenWords};
pub use spoken::{MIN_SPOKEN_CONFIDENCE, SpokenRefusal};

pub(crate) use deadlines::Deadlines;
pub(crate) use expiry::expire_later;
pub(crate) use outcome::take_decision;
pub(crate) use request::request;
pub(crate) use row::{ConfirmationRow, Status, index_key};
pub(crate) use token::hash;

/// How long a resolved confirmation is remembered, so that a late click gets a true answer.
const REMEMBERED_MS: u64 = 3_600_000;
