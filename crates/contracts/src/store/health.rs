//! How a store that is reached over a network is doing, for probes and metrics.

/// What an engine knows of itself without asking its server.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct StoreHealth {
    /// The version of the schema that it found when it was opened.
    pub schema_version: u32,
    /// Its connections.
    pub pool: PoolUse,
    /// Commits that were tried again since the start, because of a lost connection or another transaction.
    pub retries: u64,
    /// Commits since the start whose outcome is not known.
    pub unknown_outcomes: u64,
}

/// How many connections there are.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct PoolUse {
    /// As many as there may be.
    pub max: usize,
    /// In use at present.
    pub in_use: usize,
    /// Requests that wait for one.
    pub waiting: usize,
}
