//! The lease of a session: which process has it. The version of its row is the fencing token.

use std::sync::{Mutex, MutexGuard, PoisonError};

use quarterdeck_contracts::Row;
use serde::{Deserialize, Serialize};

use super::node::Node;
use crate::ledger::TurnFacts;

/// A lease, as the store keeps it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct LeaseRow {
    pub(super) node: String,
    pub(super) boot: String,
    /// Which of the sessions that its process has had.
    pub(super) hold: u64,
    pub(super) state: LeaseState,
    /// What the next holder needs so that the present turn goes on, after a clean release.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) turn: Option<TurnFacts>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum LeaseState {
    Held,
    /// Any node may take it.
    Free,
}

impl LeaseRow {
    pub(super) fn parse(row: &Row) -> Option<Self> {
        serde_json::from_value(row.value.clone()).ok()
    }
}

/// The lease of a session of this process.
#[derive(Debug)]
pub(crate) struct Lease {
    node: String,
    boot: String,
    /// Tells this session from one of the same id that this process had before, or will have.
    hold: u64,
    standing: Mutex<LeaseStanding>,
    /// Held while it is taken or given away, so that that is done once.
    pub(super) changing: tokio::sync::Mutex<()>,
}

/// What this process knows of a lease.
#[derive(Debug, Clone, Copy)]
pub(super) struct LeaseStanding {
    /// The version of its row that every commit of the session demands; `None` while there is no row.
    pub(super) token: Option<u64>,
    pub(super) phase: LeasePhase,
    /// When the row was written, in milliseconds since 1970.
    pub(super) written_ms: u64,
    /// Whether commits were queued that demand this token: they come before it changes, or they would be dropped.
    pub(super) has_queued: bool,
    /// Whether it is to be given away as soon as nothing is going on.
    pub(super) wants_release: bool,
    /// How often others may have believed this node dead when the row was last seen.
    pub(super) lapses: u64,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum LeasePhase {
    Held,
    /// What is in memory is good for as long as no other node has taken it. The next commit takes it.
    Free,
    /// Another node has it. Nothing of the session is written here any more.
    Lost,
}

impl Lease {
    /// One that this process holds by a row of this version.
    pub(super) fn held(node: &Node, hold: u64, token: u64, now_ms: u64) -> Self {
        Self::new(node, hold, Some(token), LeasePhase::Held, now_ms)
    }

    /// One that any node may take, seen at this version.
    pub(super) fn free(node: &Node, token: Option<u64>, now_ms: u64) -> Self {
        Self::new(node, node.next_hold(), token, LeasePhase::Free, now_ms)
    }

    fn new(node: &Node, hold: u64, token: Option<u64>, phase: LeasePhase, now_ms: u64) -> Self {
        let standing = LeaseStanding {
            token,
            phase,
            written_ms: now_ms,
            has_queued: false,
            wants_release: false,
            lapses: node.lapses(),
        };
        Self {
            node: node.name.clone(),
            boot: node.boot.clone(),
            hold,
            standing: Mutex::new(standing),
            changing: tokio::sync::Mutex::default(),
        }
    }

    pub(super) fn standing(&self) -> MutexGuard<'_, LeaseStanding> {
        self.standing.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Its row while this session has it.
    pub(super) fn row(&self, state: LeaseState, turn: Option<TurnFacts>) -> LeaseRow {
        LeaseRow { node: self.node.clone(), boot: self.boot.clone(), hold: self.hold, state, turn }
    }

    pub(super) fn is_written_by(&self, row: &LeaseRow) -> bool {
        row.boot == self.boot && row.hold == self.hold
    }

    /// Takes over what a row says that this session has written.
    pub(super) fn adopt(&self, row: &LeaseRow, version: u64) {
        let mut standing = self.standing();
        standing.token = Some(version);
        standing.phase = match row.state {
            LeaseState::Held => LeasePhase::Held,
            LeaseState::Free => LeasePhase::Free,
        };
    }
}
