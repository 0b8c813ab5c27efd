//! This process among those that share the store: a row that it renews, and that tells the others that it lives.

use std::collections::HashMap;
use std::hash::BuildHasher;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use quarterdeck_contracts::{Commit, CommitError, Mode, Row, Scan, Store, StoreError, Table};
use serde::{Deserialize, Serialize};
use serde_json::json;
use tokio::sync::OwnedMutexGuard;

use super::peers::Peer;
use crate::clock::{Clock, epoch_ms};
use crate::ids::random_hex;
use crate::orchestrator::Orchestrator;
use crate::session::Session;
use crate::shared::Shared;

/// How often a node renews its row.
const RENEWAL_INTERVAL: Duration = Duration::from_secs(3);
/// How long one renewal may take.
const RENEWAL_TIMEOUT: Duration = Duration::from_secs(3);
/// A node that could not renew its row for so long starts no writes: others may believe it dead soon.
const WRITE_TIMEOUT: Duration = Duration::from_secs(10);
/// How often a renewal that finds its row changed looks again.
const MAX_ATTEMPTS: usize = 3;
/// How long the row of a node that is gone stays, for the operators.
const ROW_RETENTION_MS: u64 = 24 * 3_600_000;
const HOUR_MS: u64 = 3_600_000;
/// How many sessions may be brought back at the same time, if their ids fall apart.
const CLAIM_LOCKS: usize = 64;
const MAX_NODES: usize = 1_000;

/// What makes a process a node.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NodeParts {
    /// Unique among the nodes that share the store. A second process of the same name takes the place of the first.
    pub name: String,
    /// Where other nodes reach it, `http://10.0.0.7:8080`.
    pub address: String,
}

/// What is known of a node.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct NodeView {
    pub name: String,
    pub address: String,
    /// Another one with every process.
    pub boot: String,
    /// The version of its program.
    pub version: String,
    /// How many sessions it has in memory.
    pub sessions: u64,
    /// How many of them are calls.
    pub calls: u64,
    /// How long a notification took to reach it lately, in milliseconds; absent where none has.
    pub lag_ms: Option<u64>,
    /// When it began, in milliseconds since 1970 by its own clock.
    pub started_ms: u64,
    /// How long its row has been unchanged, as this process has seen it.
    pub unchanged_ms: u64,
    /// Whether this process takes it to be alive.
    pub is_alive: bool,
    /// Whether it is this process.
    pub is_self: bool,
}

/// A node, as the store keeps it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct NodeRow {
    pub(super) boot: String,
    pub(super) address: String,
    #[serde(default)]
    pub(super) version: String,
    #[serde(default)]
    pub(super) sessions: u64,
    #[serde(default)]
    pub(super) calls: u64,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) lag_ms: Option<u64>,
    #[serde(default)]
    pub(super) started_ms: u64,
}

impl NodeRow {
    pub(super) fn parse(row: &Row) -> Option<Self> {
        serde_json::from_value(row.value.clone()).ok()
    }
}

/// What a node has to do at present.
#[derive(Debug, Clone, Copy)]
struct NodeLoad {
    sessions: u64,
    calls: u64,
    lag_ms: Option<u64>,
}

/// This process among the nodes.
pub(crate) struct Node {
    pub(crate) name: String,
    pub(crate) boot: String,
    address: String,
    started_ms: u64,
    /// Numbers the sessions that it has had, so that one which was lost and comes back is not taken for the old one.
    holds: AtomicU64,
    /// Held, by the hash of its id, while a session is brought back.
    claims: Vec<Arc<tokio::sync::Mutex<()>>>,
    standing: Mutex<Standing>,
    pub(super) peers: Mutex<HashMap<String, Peer>>,
}

/// How this process stands among the nodes.
#[derive(Debug, Default)]
struct Standing {
    /// The version of its row; `None` before it has joined.
    version: Option<u64>,
    /// When its row was last renewed, or the process began, by the clock that counts sleep.
    renewed: Duration,
    /// Whether another process runs under its name.
    is_fenced: bool,
    /// How often its row was renewed so late that others may have believed it dead.
    lapses: u64,
}

pub(super) fn node_key(name: &str) -> String {
    format!("n/{name}")
}

impl Node {
    pub(crate) fn new(parts: NodeParts, clock: &dyn Clock) -> Self {
        let started_ms = epoch_ms(clock.now());
        let boot = random_hex(8).unwrap_or_else(|| format!("{}-{started_ms}", std::process::id()));
        Self {
            name: parts.name,
            boot,
            address: parts.address,
            started_ms,
            holds: AtomicU64::new(0),
            claims: (0..CLAIM_LOCKS).map(|_| Arc::default()).collect(),
            standing: Mutex::new(Standing { renewed: clock.uptime(), ..Standing::default() }),
            peers: Mutex::default(),
        }
    }

    /// A number that no session of this process has had.
    pub(super) fn next_hold(&self) -> u64 {
        self.holds.fetch_add(1, Ordering::Relaxed) + 1
    }

    /// Waits until no other request brings this session back.
    pub(super) async fn bringing_back(&self, session: &str) -> OwnedMutexGuard<()> {
        let hash = foldhash::fast::FixedState::default().hash_one(session);
        self.claims[hash as usize % CLAIM_LOCKS].clone().lock_owned().await
    }

    fn standing(&self) -> MutexGuard<'_, Standing> {
        self.standing.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Whether it is the only process of its name, and has renewed its row or begun not long ago.
    pub(crate) fn may_write(&self, clock: &dyn Clock) -> bool {
        let standing = self.standing();
        !standing.is_fenced && clock.uptime().saturating_sub(standing.renewed) < WRITE_TIMEOUT
    }

    /// How often others may have believed it dead, because it was stopped or cut off. What it held before that another node
    /// may have taken.
    pub(super) fn lapses(&self) -> u64 {
        self.standing().lapses
    }

    fn row(&self, load: NodeLoad) -> NodeRow {
        NodeRow {
            boot: self.boot.clone(),
            address: self.address.clone(),
            version: env!("CARGO_PKG_VERSION").into(),
            sessions: load.sessions,
            calls: load.calls,
            lag_ms: load.lag_ms,
            started_ms: self.started_ms,
        }
    }

    /// Writes its row, which must be as it was seen; the first time whatever it was.
    async fn renew(&self, shared: &Shared, load: NodeLoad) -> Result<(), StoreError> {
        let key = node_key(&self.name);
        for _ in 0..MAX_ATTEMPTS {
            let (joined, is_fenced) = {
                let standing = self.standing();
                (standing.version, standing.is_fenced)
            };
            if is_fenced {
                return Err(StoreError::Failed("another process runs under this node's name".into()));
            }
            let seen = match joined {
                Some(version) => Some(version),
                None => shared.store.get(Table::Nodes, &key).await?.map(|row| row.version),
            };
            // What the others see is as old as the moment before the commit.
            let began = shared.clock.uptime();
            // Rounded, so that a renewal changes no index.
            let expires = (shared.steady.now_ms() + ROW_RETENTION_MS).next_multiple_of(HOUR_MS);
            let commit = Commit::default().check(Table::Nodes, key.clone(), seen).put_until(
                Table::Nodes,
                key.clone(),
                json!(self.row(load)),
                Some(expires),
            );
            match shared.store.commit(commit).await {
                Ok(version) => {
                    let mut standing = self.standing();
                    let is_late = began.saturating_sub(standing.renewed) >= WRITE_TIMEOUT;
                    standing.lapses += u64::from(is_late);
                    (standing.version, standing.renewed) = (Some(version), began);
                    return Ok(());
                }
                Err(CommitError::Conflict { .. }) => self.examine_conflict(&*shared.store).await?,
                Err(error) => return Err(error.into_store_error()),
            }
        }
        Err(StoreError::Failed("the node's row is being changed all the time".into()))
    }

    /// Finds out who has changed its row: itself, by a renewal whose answer was lost, or another process of its name.
    async fn examine_conflict(&self, store: &dyn Store) -> Result<(), StoreError> {
        let stored = store.get(Table::Nodes, &node_key(&self.name)).await?;
        let row = stored.as_ref().and_then(NodeRow::parse);
        let mut standing = self.standing();
        let had_joined = standing.version.is_some();
        standing.version = match (stored, row) {
            (Some(stored), Some(row)) if row.boot == self.boot => Some(stored.version),
            (Some(_), _) if had_joined => {
                standing.is_fenced = true;
                drop(standing);
                tracing::error!(
                    node = self.name,
                    "another process runs under this node's name; this one writes nothing any more"
                );
                return Err(StoreError::Failed("another process runs under this node's name".into()));
            }
            _ => None,
        };
        Ok(())
    }
}

impl Orchestrator {
    /// The name of this node; `None` where the process is alone on its store.
    pub fn node_name(&self) -> Option<&str> {
        self.shared().node.as_ref().map(|node| node.name.as_str())
    }

    /// What tells this process from an earlier one of the same name.
    pub fn node_boot(&self) -> Option<&str> {
        self.shared().node.as_ref().map(|node| node.boot.as_str())
    }

    /// Joins the nodes and renews this node's row for as long as no other process runs under its name. To be run beside the
    /// server; a process that is alone on its store has nothing to renew, and waits for ever.
    pub async fn run_node(&self) {
        if self.shared().node.is_none() {
            return std::future::pending().await;
        }
        while !self.is_fenced() {
            if let Err(error) = self.renew_node().await {
                tracing::warn!(error = %error, "node could not be renewed");
            }
            tokio::time::sleep(RENEWAL_INTERVAL).await;
        }
    }

    /// Renews this node's row once, and looks at those of the others.
    pub async fn renew_node(&self) -> Result<(), StoreError> {
        let shared = self.shared();
        let Some(node) = &shared.node else { return Ok(()) };
        let sessions = shared.live_sessions();
        let load = NodeLoad {
            calls: sessions.iter().filter(|core| core.mode == Mode::Voice).count() as u64,
            sessions: sessions.len() as u64,
            lag_ms: self
                .notification_health()
                .and_then(|health| health.lag)
                .map(|lag| lag.as_millis() as u64),
        };
        // None is held while the store is waited for.
        drop(sessions);
        let renewal = async {
            node.renew(shared, load).await?;
            let rows = shared.store.scan(Table::Nodes, Scan::prefix(node_key(""), MAX_NODES)).await?;
            node.observe(rows, shared.clock.monotonic());
            Ok(())
        };
        match tokio::time::timeout(RENEWAL_TIMEOUT, renewal).await {
            Ok(renewed) => renewed,
            Err(_) => Err(StoreError::Unavailable("it did not answer in time".into())),
        }
    }

    /// Gives every session away in which nothing is going on. To be called before a shutdown; how many other nodes cannot
    /// continue yet.
    pub async fn release_all(&self) -> usize {
        let mut kept = 0;
        for core in self.shared().live_sessions() {
            let session = Session { core };
            match session.release().await {
                Ok(is_free) => kept += usize::from(!is_free),
                Err(error) => {
                    tracing::warn!(session = session.id(), error = %error, "session was not released");
                    kept += 1;
                }
            }
        }
        kept
    }

    /// Takes this node's row away, so that others need not wait to see that it is gone. To be called last, when no session
    /// is held any more.
    pub async fn leave_nodes(&self) -> Result<(), StoreError> {
        let Some(node) = &self.shared().node else { return Ok(()) };
        let Some(version) = node.standing().version.take() else { return Ok(()) };
        let key = node_key(&node.name);
        let commit =
            Commit::default().check(Table::Nodes, key.clone(), Some(version)).delete(Table::Nodes, key);
        match self.store().commit(commit).await {
            Ok(_) | Err(CommitError::Conflict { .. }) => Ok(()),
            Err(error) => Err(error.into_store_error()),
        }
    }

    /// Whether writes may be started: not where this node's row could not be renewed for ten seconds, nor where another
    /// process has taken its name.
    pub fn may_write(&self) -> bool {
        self.shared().may_write()
    }

    /// How long ago this node's row was renewed; `None` without a node, and before it has joined.
    pub fn heartbeat_age(&self) -> Option<Duration> {
        let node = self.shared().node.as_ref()?;
        let standing = node.standing();
        standing.version?;
        Some(self.shared().clock.uptime().saturating_sub(standing.renewed))
    }

    /// Whether another process runs under this node's name, so that this one is done.
    pub fn is_fenced(&self) -> bool {
        self.shared().node.as_ref().is_some_and(|node| node.standing().is_fenced)
    }

    /// Every node that shares the store, by name; none where the process is alone on it.
    pub async fn nodes(&self) -> Result<Vec<NodeView>, StoreError> {
        let shared = self.shared();
        let Some(node) = &shared.node else { return Ok(Vec::new()) };
        let rows = shared.store.scan(Table::Nodes, Scan::prefix(node_key(""), MAX_NODES)).await?;
        Ok(node.observe(rows, shared.clock.monotonic()))
    }
}

impl Shared {
    pub(crate) fn may_write(&self) -> bool {
        self.node.as_ref().is_none_or(|node| node.may_write(&*self.clock))
    }
}
