//! How a session goes from one node to another.

use std::sync::Arc;

use quarterdeck_contracts::{Commit, CommitError, StoreError, Table};
use serde_json::json;

use super::fencing::is_lease_conflict;
use super::lease::{LeasePhase, LeaseState};
use super::peers::Holder;
use crate::ledger::{Entry, Phase};
use crate::metrics::LeaseEvent;
use crate::orchestrator::{Client, Orchestrator, SessionError, ToolSource};
use crate::session::{Session, SessionCore, SessionData};

impl Orchestrator {
    /// Continues a session whose holder refuses connections or does not answer: the caller has tried. It is taken over at
    /// once, if that process still has it.
    pub async fn resume_from_dead(
        &self,
        id: &str,
        client: Client,
        tools: impl Into<ToolSource<'_>>,
        dead: &Holder,
    ) -> Result<Session, SessionError> {
        self.resume_with(id, client, tools.into(), Some(dead)).await
    }
}

impl Session {
    /// Takes the session for this node, if it does not have it. A session that was resumed is not held before something of
    /// it is stored; what acts before that calls this first.
    pub async fn hold(&self) -> Result<(), SessionError> {
        let is_held = match &self.core.lease {
            None => true,
            Some(lease) => lease.standing().phase == LeasePhase::Held,
        };
        if is_held {
            return Ok(());
        }
        match self.core.commit_start(Commit::default()).await {
            Ok(_) => Ok(()),
            Err(error) if is_lease_conflict(&error) => Err(SessionError::Lost),
            Err(error) => Err(error.into_store_error().into()),
        }
    }

    /// Gives the session away, so that any node may continue it; everything that it has come to is stored with it. While
    /// something is going on in it, that happens as soon as nothing is. Whether any node may have it now.
    pub async fn release(&self) -> Result<bool, StoreError> {
        self.core.release(Commit::default()).await.map_err(CommitError::into_store_error)
    }

    /// The same, and stores something else with it.
    pub async fn commit_and_release(&self, commit: Commit) -> Result<bool, CommitError> {
        self.core.release(commit).await
    }

    /// Commits rows of this session. A conflict in [`Table::Leases`] says that another node has it now.
    pub async fn commit(&self, commit: Commit) -> Result<u64, CommitError> {
        self.core.commit(commit).await
    }

    /// Whether its first commit, which creates it, is still to come or has failed.
    pub fn is_unstored(&self) -> bool {
        self.core.is_unstored()
    }

    /// Whether several nodes share the store, so that it can be given away.
    pub fn is_leased(&self) -> bool {
        self.core.lease.is_some()
    }

    /// Whether another node has taken it. Nothing of it is stored here any more.
    pub fn is_lost(&self) -> bool {
        self.core.is_lost()
    }

    /// Whether both are handles of one session in memory. After another node has had it, it is another one.
    pub fn is_same(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.core, &other.core)
    }
}

impl SessionCore {
    /// Stores everything, and gives the lease away if nothing is going on.
    pub(super) async fn release(&self, commit: Commit) -> Result<bool, CommitError> {
        let Some(lease) = &self.lease else {
            if !commit.is_empty() {
                self.commit(commit).await?;
            }
            return Ok(true);
        };
        let changing = lease.changing.lock().await;
        let standing = *lease.standing();
        if !self.is_idle() || standing.phase == LeasePhase::Lost {
            lease.standing().wants_release = true;
            drop(changing);
            if !commit.is_empty() {
                self.commit(commit).await?;
            }
            return Ok(false);
        }
        self.flush_queued(lease).await;
        let (unsaved, turn) = {
            let mut data = self.lock();
            (self.take_unsaved(&mut data), data.ledger.turn_facts())
        };
        if standing.phase == LeasePhase::Free && commit.is_empty() && unsaved.is_empty() {
            return Ok(true);
        }
        let row = json!(lease.row(LeaseState::Free, turn));
        let all = commit.clone().and(unsaved.clone());
        let releasing = all.check(Table::Leases, &*self.id, standing.token).put_until(
            Table::Leases,
            &*self.id,
            row,
            self.keep_until(),
        );
        match self.commit_unfenced(releasing).await {
            Ok(version) => {
                self.shared.metrics.record_lease(LeaseEvent::Released);
                let mut standing = lease.standing();
                (standing.token, standing.phase) = (Some(version), LeasePhase::Free);
                (standing.written_ms, standing.wants_release) = (self.now_ms(), false);
                Ok(true)
            }
            Err(error) if is_lease_conflict(&error) => {
                drop(changing);
                // Still this session's own, it is stored without being given away: a later release does that.
                self.reread_lease(lease).await?;
                self.commit(commit.and(unsaved)).await.map(|_| false)
            }
            Err(error) => Err(error),
        }
    }

    /// Whether nothing runs that another node would have to know of. A call that waits for the user does not.
    pub(super) fn is_idle(&self) -> bool {
        !self.shared.tasks.has_any_of(&self.id) && is_idle(&self.lock())
    }

    /// What a session that is dropped leaves to the store: what was not stored yet, and its lease.
    pub(crate) fn leave_to_store(&self) {
        if self.is_unstored() {
            return;
        }
        let unsaved = self.take_unsaved(&mut self.lock());
        let Some(lease) = &self.lease else {
            return self.queue_unsaved(unsaved);
        };
        let phase = lease.standing().phase;
        let unsaved = match phase {
            LeasePhase::Held => {
                let turn = self.lock().ledger.turn_facts();
                let row = json!(lease.row(LeaseState::Free, turn));
                unsaved.put_until(Table::Leases, &*self.id, row, self.keep_until())
            }
            LeasePhase::Free => unsaved,
            LeasePhase::Lost => return,
        };
        self.queue_unsaved(unsaved);
    }
}

fn is_idle(data: &SessionData) -> bool {
    let waits_for_user = |entry: &Arc<Entry>| entry.has_confirmation() && entry.phase() == Phase::Admitted;
    data.unadmitted.is_empty()
        && data.unfinished.iter().all(waits_for_user)
        && data.confirmations.iter().all(|confirmation| !confirmation.is_claimed)
}
