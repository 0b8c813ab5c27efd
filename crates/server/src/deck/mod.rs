//! Data for the operators' deck: metrics over time, the live audit feed, and registry changes.

mod change;
mod feed;
mod remote_feed;
mod series;

use std::sync::Arc;

use quarterdeck_contracts::{UpstreamMonitor, UpstreamView};
use quarterdeck_runtime::VersionAdmin;

use crate::watch_feed::WatchFeed;

pub use change::{RegistryChange, ToolChange};
pub use feed::{AuditFeed, AuditLogHandle};

pub(crate) use feed::{FeedItem, next_item};
pub(crate) use remote_feed::RemoteFeed;
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
    /// Reports saved files; `None` for a server that does not follow its folders.
    pub watch: Option<WatchFeed>,
    /// Lists the MCP servers whose tools are imported; `None` if there are none.
    pub upstreams: Option<Arc<dyn UpstreamMonitor>>,
}

impl Operations {
    pub(crate) fn upstreams(&self) -> Vec<UpstreamView> {
        self.upstreams.as_ref().map(|monitor| monitor.list()).unwrap_or_default()
    }
}
