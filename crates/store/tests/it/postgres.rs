//! The store in PostgreSQL, against real servers of two versions.

mod backup;
mod conformance;
mod contention;
mod lost_answers;
mod opening;
mod outage;
mod pooler;
mod proxy;
pub(crate) mod support;

mod watching;
