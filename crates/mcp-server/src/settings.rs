//! Limits and times of the MCP server.

use std::time::Duration;

/// Limits and times of the MCP server.
#[derive(Debug, Clone)]
pub struct McpSettings {
    /// How many sessions one client may have open at a time.
    pub max_sessions_per_client: usize,
    /// How many sessions all clients may have open at a time.
    pub max_sessions: usize,
    /// How long a session is kept that nothing is asked of.
    pub idle_timeout: Duration,
    /// How long a client may take a list for fresh.
    pub list_ttl: Duration,
    /// How long a call of a client that does not know tasks waits for its tool, where that goes on in the background.
    /// Clients give up after a minute, and would take the call back.
    pub task_wait: Duration,
    /// Whether users of clients that cannot ask may approve calls on a page of the server.
    pub approval_pages: bool,
    /// How large the body of a request may be.
    pub max_body_bytes: usize,
}

impl Default for McpSettings {
    fn default() -> Self {
        Self {
            max_sessions_per_client: 32,
            max_sessions: 10_000,
            idle_timeout: Duration::from_secs(30 * 60),
            list_ttl: Duration::from_secs(60),
            task_wait: Duration::from_secs(45),
            approval_pages: true,
            max_body_bytes: 1 << 20,
        }
    }
}
