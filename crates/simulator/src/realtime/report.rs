//! What the simulator has seen.

/// Of each kind.
pub(super) const MAX_ENTRIES: usize = 1_000;

/// What has happened, over all connections.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Report {
    /// Accepted connections.
    pub connections: usize,
    /// Texts of the client, in order.
    pub read: Vec<String>,
    /// How often speech was detected.
    pub heard: usize,
    /// The calls that were made.
    pub calls: Vec<CallReport>,
    /// Responses cancelled by speech or by the client.
    pub cancelled: usize,
    /// Where answers were truncated, in milliseconds.
    pub truncated: Vec<u64>,
    /// Faults of clients.
    pub faults: Vec<String>,
}

/// A call that was made.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CallReport {
    pub id: String,
    /// The tool.
    pub name: String,
    /// One, unless the client is at fault.
    pub outputs: Vec<String>,
}
