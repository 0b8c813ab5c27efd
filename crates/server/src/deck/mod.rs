//! Data for the operators' deck: metrics over time, the live audit feed, and registry changes.

mod change;
mod feed;
mod series;

use std::sync::Arc;

use quarterdeck_runtime::VersionAdmin;

pub use change::{RegistryChange, ToolChange};
pub use feed::{AuditFeed, AuditLogHandle};

pub(crate) use feed::{FeedItem, next_item};
pub(crate) use series::{Columns, Range, RecentCalls, SAMPLE_INTERVAL, Series};

/// What only operators use.
#[derive(Default)]
pub struct Operations {
    /// The audit log, if one is kept.
    pub audit: Option<AuditLogHandle>,
    /// The changes since the previous registry, if there was one.
    pub change: Option<RegistryChange>,
    /// Changes the loaded versions of the registry; `None` for a server with one version.
    pub versions: Option<Arc<VersionAdmin>>,
}
