//! Whether this node may have a session that it does not have in memory, and how it takes it.

use quarterdeck_contracts::{Commit, CommitError, Row, StoreError, Table};
use serde_json::json;
use tokio::sync::OwnedMutexGuard;

use super::lease::{Lease, LeasePhase, LeaseRow, LeaseState};
use super::node::{Node, node_key};
use super::peers::{Holder, Liveness};
use crate::ledger::TurnFacts;
use crate::metrics::LeaseEvent;
use crate::orchestrator::{Orchestrator, SessionError};
use crate::session::{SessionCore, SessionRow, session_key};

/// How often a session is looked at that others change at the same time.
const MAX_ATTEMPTS: usize = 4;

/// A stored session that this process may continue.
pub(crate) struct Claim {
    pub(crate) row: SessionRow,
    pub(crate) lease: Option<Lease>,
    /// What the node before has handed over of the present turn.
    pub(crate) turn: Option<TurnFacts>,
}

impl Claim {
    /// Of a process that is alone on its store.
    pub(crate) fn alone(row: SessionRow) -> Self {
        Self { row, lease: None, turn: None }
    }
}

/// What a lease allows.
pub(super) enum Access {
    /// It is free: the first commit takes it.
    Free(Option<TurnFacts>),
    /// Its holder is gone, or is this process itself: it is taken before anything is read. What must still be so.
    Abandoned(Commit),
    HeldBy(Holder),
}

impl Orchestrator {
    /// Waits until no other request brings this session back, and keeps others from it until the guard is dropped.
    pub(crate) async fn bring_back(&self, id: &str) -> Option<OwnedMutexGuard<()>> {
        match &self.shared().node {
            Some(node) => Some(node.bringing_back(id).await),
            None => None,
        }
    }

    /// Claims a stored session that `accepts` lets through.
    pub(crate) async fn claim(
        &self,
        id: &str,
        dead: Option<&Holder>,
        accepts: impl Fn(&SessionRow) -> Result<(), SessionError>,
    ) -> Result<Claim, SessionError> {
        let store = self.store();
        let Some(node) = &self.shared().node else {
            let row = parse_session(store.get(Table::Sessions, &session_key(id)).await?)?.0;
            accepts(&row)?;
            return Ok(Claim::alone(row));
        };
        if !self.may_write() {
            let error = "this node cannot tell the others that it lives, so it takes no session";
            return Err(StoreError::Unavailable(error.into()).into());
        }
        for _ in 0..MAX_ATTEMPTS {
            let stored = store.get(Table::Leases, id).await?;
            let (row, version) = parse_session(store.get(Table::Sessions, &session_key(id)).await?)?;
            accepts(&row)?;
            let token = stored.as_ref().map(|stored| stored.version);
            let checks = match self.access(node, stored.as_ref(), dead).await? {
                Access::HeldBy(holder) => return Err(SessionError::HeldElsewhere(Box::new(holder))),
                Access::Free(turn) => {
                    let lease = Some(Lease::free(node, token, self.now_ms()));
                    return Ok(Claim { row, lease, turn });
                }
                Access::Abandoned(checks) => checks,
            };
            let checks =
                checks.check(Table::Leases, id, token).check(Table::Sessions, session_key(id), Some(version));
            match self.take(node, id, checks).await {
                Ok(lease) => return Ok(Claim { row, lease: Some(lease), turn: None }),
                Err(CommitError::Conflict { .. }) => {}
                Err(error) => return Err(error.into_store_error().into()),
            }
        }
        Err(StoreError::Failed("the session is being changed all the time".into()).into())
    }

    /// Writes a lease that this process holds, if the checks of the commit hold.
    pub(super) async fn take(&self, node: &Node, id: &str, checks: Commit) -> Result<Lease, CommitError> {
        let hold = node.next_hold();
        let commit = checks.put_until(Table::Leases, id, held_row(node, hold), self.keep_until());
        let version = self.store().commit(commit).await?;
        self.metrics().record_lease(LeaseEvent::TakenOver);
        tracing::info!(session = id, "session taken over");
        Ok(Lease::held(node, hold, version, self.now_ms()))
    }

    pub(super) async fn access(
        &self,
        node: &Node,
        stored: Option<&Row>,
        dead: Option<&Holder>,
    ) -> Result<Access, StoreError> {
        let Some(lease) = stored.and_then(LeaseRow::parse) else { return Ok(Access::Free(None)) };
        if lease.state == LeaseState::Free {
            return Ok(Access::Free(lease.turn));
        }
        let is_known_dead = |dead: &Holder| dead.node == lease.node && dead.boot == lease.boot;
        if lease.node == node.name || dead.is_some_and(is_known_dead) {
            return Ok(Access::Abandoned(Commit::default()));
        }
        let now = self.shared().clock.monotonic();
        Ok(match node.liveness(&**self.store(), &lease.node, &lease.boot, now).await? {
            Liveness::Alive { address } => {
                Access::HeldBy(Holder { node: lease.node, address, boot: lease.boot })
            }
            Liveness::Dead { seen } => {
                Access::Abandoned(Commit::default().check(Table::Nodes, node_key(&lease.node), seen))
            }
        })
    }

    /// The living node that has a session, if it is another one. For a server that wants to ask it before it resumes.
    pub async fn holder(&self, id: &str) -> Result<Option<Holder>, StoreError> {
        let Some(node) = &self.shared().node else { return Ok(None) };
        let stored = self.store().get(Table::Leases, id).await?;
        Ok(match self.access(node, stored.as_ref(), None).await? {
            Access::HeldBy(holder) => Some(holder),
            Access::Free(_) | Access::Abandoned(_) => None,
        })
    }

    /// Whether a session is in the memory of this process, and not another node's in the meantime.
    pub async fn has_session(&self, id: &str) -> Result<bool, StoreError> {
        match self.shared().find(id) {
            Some(core) => self.is_current(&core).await,
            None => Ok(false),
        }
    }

    /// Whether a session in memory is still as it is in the store: held here, or free and not taken since.
    pub(crate) async fn is_current(&self, core: &SessionCore) -> Result<bool, StoreError> {
        let (Some(lease), Some(node)) = (&core.lease, &self.shared().node) else { return Ok(true) };
        let standing = *lease.standing();
        // The lease of a node that was stopped or cut off may have been taken, and it would find out when a call is recorded.
        let lapses = node.lapses();
        let is_certain = self.may_write() && standing.lapses == lapses;
        match standing.phase {
            LeasePhase::Held if is_certain => return Ok(true),
            LeasePhase::Lost => return Ok(false),
            LeasePhase::Held | LeasePhase::Free => {}
        }
        let stored = self.store().get(Table::Leases, &core.id).await?;
        if stored.as_ref().map(|stored| stored.version) == standing.token {
            lease.standing().lapses = lapses;
            return Ok(true);
        }
        let row = stored.as_ref().and_then(LeaseRow::parse);
        match (stored, row) {
            (Some(stored), Some(row)) if lease.is_written_by(&row) => {
                lease.adopt(&row, stored.version);
                Ok(true)
            }
            (_, row) => {
                core.lose(lease, row.as_ref());
                Ok(false)
            }
        }
    }

    /// The lease of a session that this commit creates, and the commit that takes it; the version comes with its answer.
    pub(crate) fn lease_new(&self, id: &str, commit: Commit) -> (Commit, impl FnOnce(u64) -> Option<Lease>) {
        let node = self.shared().node.as_ref();
        let hold = node.map_or(0, Node::next_hold);
        let commit = match node {
            Some(node) => commit.put_until(Table::Leases, id, held_row(node, hold), self.keep_until()),
            None => commit,
        };
        let now_ms = self.now_ms();
        let held = move |version| {
            let node = node?;
            self.metrics().record_lease(LeaseEvent::Taken);
            Some(Lease::held(node, hold, version, now_ms))
        };
        (commit, held)
    }

    pub(crate) fn keep_until(&self) -> Option<u64> {
        Some(self.now_ms() + self.policy().retention.as_millis() as u64)
    }
}

fn held_row(node: &Node, hold: u64) -> serde_json::Value {
    json!(LeaseRow {
        node: node.name.clone(),
        boot: node.boot.clone(),
        hold,
        state: LeaseState::Held,
        turn: None
    })
}

fn parse_session(stored: Option<Row>) -> Result<(SessionRow, u64), SessionError> {
    let stored = stored.ok_or(SessionError::NotFound)?;
    let row = serde_json::from_value(stored.value).map_err(|_| SessionError::NotFound)?;
    Ok((row, stored.version))
}
