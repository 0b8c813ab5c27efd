//! What has happened.

/// How much of anything is remembered.
pub(super) const MOST: usize = 1_000;

/// What has happened, over all connections.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Report {
    /// How many clients were let in.
    pub connections: usize,
    /// What was written to the model, in order.
    pub read: Vec<String>,
    /// How often somebody was heard to speak.
    pub heard: usize,
    /// The calls that were made.
    pub calls: Vec<CallReport>,
    /// How many responses were cut off, by a voice or by the client.
    pub cancelled: usize,
    /// Where answers were cut, in milliseconds.
    pub truncated: Vec<u64>,
    /// What clients have done that they should not.
    pub faults: Vec<String>,
}

/// A call that was made.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CallReport {
    /// Its id.
    pub id: String,
    /// The tool.
    pub name: String,
    /// What it came to: one output, unless the client did something wrong.
    pub outputs: Vec<String>,
}
