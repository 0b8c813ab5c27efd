//! Handlers that a host has taken out of service because their calls did not end.

use serde::Serialize;

use crate::UpstreamEvent;

/// A handler out of service.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Quarantine {
    /// The tool that it belongs to.
    pub tool_id: String,
    /// How often it has come to this; each time takes twice as long as the one before.
    pub strikes: u32,
    /// Threads that its calls hold past their deadline at this moment.
    pub stuck_threads: usize,
    /// Milliseconds until a single call is let through on trial.
    pub retry_after_ms: u64,
}

/// What a host has trouble with.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct HostHealth {
    /// Threads that calls hold past their deadline, of all handlers.
    pub stuck_threads: usize,
    /// Times that a handler was taken out of service, since the start.
    pub quarantines_total: u64,
    /// The handlers that are out of service.
    pub quarantines: Vec<Quarantine>,
}

/// An event that operators must know of.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum HostEvent {
    /// A handler was taken out of service.
    Quarantined {
        /// The handler.
        quarantine: Quarantine,
        /// The call that did not end. A handler's top level also runs outside of calls.
        call: Option<StuckCall>,
    },
    /// A call on trial ended in time; the handler is in service again.
    Released {
        /// The tool that it belongs to.
        tool_id: String,
    },
    /// Something happened with an MCP server elsewhere.
    Upstream {
        /// The server's name in the configuration.
        server: String,
        /// What.
        event: UpstreamEvent,
    },
}

/// A call that holds its thread past its deadline.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StuckCall {
    /// Its session.
    pub session_id: String,
    /// The turn of the session.
    pub turn: u64,
    /// The call.
    pub call_id: String,
}

/// Receives the events of a host. It is called on the host's own threads and must return at once.
pub trait HostObserver: Send + Sync {
    /// Handles one event.
    fn observe(&self, event: HostEvent);
}
