//! What hosts tell of themselves.

use crate::UpstreamEvent;

/// An event that operators must know of.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum HostEvent {
    /// Something happened with an MCP server elsewhere.
    Upstream {
        /// The server's name in the configuration.
        server: String,
        /// What.
        event: UpstreamEvent,
    },
}

/// Receives the events of a host. It is called on the host's own threads and must return at once.
pub trait HostObserver: Send + Sync {
    /// Handles one event.
    fn observe(&self, event: HostEvent);
}
