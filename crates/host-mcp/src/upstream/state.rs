//! Where a server stands: not needed yet, being connected, ready, or down until the next try.

use std::sync::Arc;
use std::time::{Duration, SystemTime};

use quarterdeck_contracts::{UpstreamServer, UpstreamState};
use tokio::time::Instant;

use super::connection::Connection;
use super::tools::LiveTools;

/// What calls and operators see of a server at one moment.
#[derive(Clone)]
pub(crate) struct Status {
    pub(crate) phase: Phase,
    /// When the phase began, by the wall clock: only people read it.
    pub(crate) since: SystemTime,
    /// What the server last said of itself.
    pub(crate) server: Option<UpstreamServer>,
    /// What it last published. It is kept while the server is down, to be shown; calls need [`Phase::Ready`].
    pub(crate) tools: Option<Arc<LiveTools>>,
}

#[derive(Clone)]
pub(crate) enum Phase {
    Idle,
    /// The first connection is being made. Calls wait for it.
    Connecting,
    Ready(Arc<Connection>),
    /// Calls are refused at once, also while the next connection is being made.
    Down {
        reason: Arc<str>,
        retry_at: Instant,
    },
}

impl Status {
    pub(crate) fn idle() -> Self {
        Self { phase: Phase::Idle, since: wall_clock(), server: None, tools: None }
    }

    pub(crate) fn enter(&mut self, phase: Phase) {
        self.phase = phase;
        self.since = wall_clock();
    }

    pub(crate) fn state(&self) -> UpstreamState {
        match &self.phase {
            Phase::Idle => UpstreamState::Idle,
            Phase::Connecting => UpstreamState::Connecting,
            Phase::Ready(_) => UpstreamState::Connected,
            Phase::Down { .. } => UpstreamState::Disconnected,
        }
    }

    pub(crate) fn since_ms(&self) -> u64 {
        let since = self.since.duration_since(SystemTime::UNIX_EPOCH).unwrap_or(Duration::ZERO);
        u64::try_from(since.as_millis()).unwrap_or(u64::MAX)
    }
}

#[expect(
    clippy::disallowed_methods,
    reason = "operators compare it with their own clock; nothing is decided by it"
)]
fn wall_clock() -> SystemTime {
    SystemTime::now()
}
