//! Which of the other nodes live. Their rows are watched by this process's own clock: no two clocks are compared.

use std::sync::{MutexGuard, PoisonError};
use std::time::Duration;

use quarterdeck_contracts::{Row, Store, StoreError, Table};
use serde::{Deserialize, Serialize};

use super::node::{Node, NodeRow, NodeView, node_key};

/// A node whose row was seen unchanged for so long is taken to be dead. Being wrong is safe, only needless.
const DEATH_TIMEOUT: Duration = Duration::from_secs(15);

/// The node that has a session.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Holder {
    pub node: String,
    /// Where it can be reached.
    pub address: String,
    /// What tells its process from a later one of the same name.
    pub boot: String,
}

/// What was seen of a node.
#[derive(Debug, Clone, Copy)]
pub(super) struct Peer {
    version: u64,
    /// When this version was first seen.
    since: Duration,
}

/// Whether a process of a node lives.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Liveness {
    Alive {
        address: String,
    },
    /// The version of the node's row on which that rests; `None` without a row.
    Dead {
        seen: Option<u64>,
    },
}

impl Node {
    fn peers(&self) -> MutexGuard<'_, std::collections::HashMap<String, Peer>> {
        self.peers.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// How long the row of a node has had this version, as far as was seen.
    fn unchanged_for(&self, name: &str, version: u64, now: Duration) -> Duration {
        let mut peers = self.peers();
        let peer = peers.entry(name.to_owned()).or_insert(Peer { version, since: now });
        if peer.version != version {
            *peer = Peer { version, since: now };
        }
        now.saturating_sub(peer.since)
    }

    /// Takes note of the rows of all nodes.
    pub(super) fn observe(&self, rows: Vec<(String, Row)>, now: Duration) -> Vec<NodeView> {
        let prefix = node_key("").len();
        let views = rows.into_iter().filter_map(|(key, stored)| {
            let (name, row) = (key[prefix..].to_owned(), NodeRow::parse(&stored)?);
            let unchanged = self.unchanged_for(&name, stored.version, now);
            let is_self = row.boot == self.boot;
            Some(NodeView {
                is_alive: is_self || unchanged < DEATH_TIMEOUT,
                is_self,
                unchanged_ms: unchanged.as_millis() as u64,
                name,
                address: row.address,
                boot: row.boot,
                version: row.version,
                sessions: row.sessions,
                calls: row.calls,
                lag_ms: row.lag_ms,
                started_ms: row.started_ms,
            })
        });
        let views: Vec<_> = views.collect();
        self.peers().retain(|name, _| views.iter().any(|view| view.name == *name));
        views
    }

    /// Whether a process of a node lives: its row is there, is its own, and was changed not long ago.
    pub(crate) async fn liveness(
        &self,
        store: &dyn Store,
        name: &str,
        boot: &str,
        now: Duration,
    ) -> Result<Liveness, StoreError> {
        let Some(stored) = store.get(Table::Nodes, &node_key(name)).await? else {
            return Ok(Liveness::Dead { seen: None });
        };
        let seen = Some(stored.version);
        let Some(row) = NodeRow::parse(&stored).filter(|row| row.boot == boot) else {
            return Ok(Liveness::Dead { seen });
        };
        match self.unchanged_for(name, stored.version, now) < DEATH_TIMEOUT {
            true => Ok(Liveness::Alive { address: row.address }),
            false => Ok(Liveness::Dead { seen }),
        }
    }
}
