//! What operators look at: figures over time, what happens as it happens, and what has changed.

mod change;
mod feed;
mod series;

pub use change::{Change, RegistryChange};
pub use feed::{AuditFeed, AuditLogHandle};

pub(crate) use feed::{Heard, next};
pub(crate) use series::{EVERY, Lately, Range, Series};

/// What the server is handed for its operators, beside what everybody uses.
#[derive(Default)]
pub struct Operations {
    /// The audit trail, if one is kept.
    pub audit: Option<AuditLogHandle>,
    /// How the tools differ from those of the registry before, if there was one.
    pub change: Option<RegistryChange>,
}
