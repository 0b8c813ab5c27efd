//! Every commit of a session demands that its lease is as this process knows it. So a process that was paused while
//! another took its session over changes nothing any more, whatever it believes.

use std::sync::Arc;
use std::time::{Duration, Instant};

use quarterdeck_contracts::handler::CancelReason;
use quarterdeck_contracts::{Commit, CommitError, ErrorType, StoreError, Table, ToolError};
use quarterdeck_time_limit::within;
use serde_json::json;

use super::lease::{Lease, LeasePhase, LeaseRow, LeaseStanding, LeaseState};
use crate::envelope::refusal_error;
use crate::metrics::LeaseEvent;
use crate::session::SessionCore;

/// How long the store may take. A call must be answered, whatever the disk does.
const STORE_TIMEOUT: Duration = Duration::from_secs(10);
/// How often a commit is tried whose lease was changed by this session itself in the meantime.
const MAX_ATTEMPTS: usize = 4;

/// Whether a commit failed because the session is another node's.
pub(crate) fn is_lease_conflict(error: &CommitError) -> bool {
    matches!(error, CommitError::Conflict { table: Table::Leases, .. })
}

impl SessionCore {
    /// Commits, within a time limit. Where nodes share the store, the session's lease is demanded, and taken if it is free; a
    /// conflict in [`Table::Leases`] says that the session is lost.
    pub(crate) async fn commit(&self, commit: Commit) -> Result<u64, CommitError> {
        let Some(lease) = &self.lease else { return self.commit_unleased(commit).await };
        for _ in 0..MAX_ATTEMPTS {
            let standing = *lease.standing();
            let result = match standing.phase {
                LeasePhase::Lost => return Err(self.lease_conflict()),
                LeasePhase::Held if !self.is_due(&standing) => {
                    let fenced = commit.clone().check(Table::Leases, &*self.id, standing.token);
                    self.commit_unfenced(fenced).await
                }
                LeasePhase::Held | LeasePhase::Free => self.commit_taking(lease, commit.clone()).await,
            };
            match result {
                Err(error) if is_lease_conflict(&error) => self.reread_lease(lease).await?,
                Err(error @ CommitError::Conflict { .. }) => {
                    // Of several rows that have changed a store names one. A session that is lost must know before it acts
                    // on another.
                    self.reread_lease(lease).await?;
                    return Err(error);
                }
                other => return other,
            }
        }
        Err(StoreError::Failed("the session's lease is being changed all the time".into()).into())
    }

    /// The same for what is about to be started, which a node that could not renew its row must not do.
    pub(crate) async fn commit_start(&self, commit: Commit) -> Result<u64, CommitError> {
        if self.shared.may_write() {
            return self.commit(commit).await;
        }
        let error = "this node could not tell the others that it lives, so it starts nothing";
        Err(StoreError::Unavailable(error.into()).into())
    }

    /// Commits what needs no lease: the truth about something that the session has begun.
    pub(crate) async fn commit_unfenced(&self, commit: Commit) -> Result<u64, CommitError> {
        let began = Instant::now();
        let done = within(STORE_TIMEOUT, self.shared.store.commit(commit)).await;
        self.shared.metrics.record_commit(began.elapsed());
        match done {
            Ok(result) => result,
            Err(_) => Err(CommitError::Unknown("it did not answer in time".into())),
        }
    }

    /// Queues a commit, which is dropped if the session is another node's by then.
    pub(crate) fn queue(&self, commit: Commit) -> Result<(), StoreError> {
        let Some(lease) = &self.lease else { return self.shared.store.queue(commit) };
        let mut standing = lease.standing();
        if standing.phase == LeasePhase::Lost {
            return Ok(());
        }
        standing.has_queued = true;
        self.shared.store.queue(commit.check(Table::Leases, &*self.id, standing.token))
    }

    /// Waits for what was queued by this token. What the store has lost of it could be lost.
    pub(super) async fn flush_queued(&self, lease: &Lease) {
        let has_queued = std::mem::take(&mut lease.standing().has_queued);
        if has_queued {
            let _ = within(STORE_TIMEOUT, self.shared.store.flush()).await;
        }
    }

    /// Whether what may be lost can be queued now. While the lease is free or changes, it waits for the next commit, as it does
    /// in a session that is not stored yet.
    pub(crate) fn may_queue(&self) -> bool {
        let Some(lease) = &self.lease else { return !self.is_unstored() };
        lease.standing().phase == LeasePhase::Held && lease.changing.try_lock().is_ok()
    }

    pub(crate) fn is_lost(&self) -> bool {
        self.lease.as_ref().is_some_and(|lease| lease.standing().phase == LeasePhase::Lost)
    }

    /// Commits, and takes the lease with it.
    async fn commit_taking(&self, lease: &Lease, commit: Commit) -> Result<u64, CommitError> {
        let _changing = lease.changing.lock().await;
        let standing = *lease.standing();
        let demanded = commit.check(Table::Leases, &*self.id, standing.token);
        match standing.phase {
            LeasePhase::Lost => return Err(self.lease_conflict()),
            // Another commit has taken it meanwhile.
            LeasePhase::Held if !self.is_due(&standing) => return self.commit_unfenced(demanded).await,
            LeasePhase::Held | LeasePhase::Free => {}
        }
        self.flush_queued(lease).await;
        let row = json!(lease.row(LeaseState::Held, None));
        let taking = demanded.put_until(Table::Leases, &*self.id, row, self.keep_until());
        let version = self.commit_unfenced(taking).await?;
        if standing.phase == LeasePhase::Free {
            self.shared.metrics.record_lease(LeaseEvent::Taken);
        }
        let mut standing = lease.standing();
        (standing.token, standing.phase) = (Some(version), LeasePhase::Held);
        standing.written_ms = self.now_ms();
        Ok(version)
    }

    /// A row that is not written again for long would be forgotten before its session is.
    fn is_due(&self, standing: &LeaseStanding) -> bool {
        let half_ms = self.shared.policy.retention.as_millis() as u64 / 2;
        self.now_ms().saturating_sub(standing.written_ms) > half_ms
    }

    /// Finds out who has changed the lease: this session itself, by a commit whose answer was lost or that was quicker, or
    /// another node, and then the session is lost.
    pub(super) async fn reread_lease(&self, lease: &Lease) -> Result<(), CommitError> {
        let stored = self.shared.store.get(Table::Leases, &self.id).await?;
        let row = stored.as_ref().and_then(LeaseRow::parse);
        match (stored, row) {
            (Some(stored), Some(row)) if lease.is_written_by(&row) => {
                lease.adopt(&row, stored.version);
                Ok(())
            }
            (stored, _) if stored.as_ref().map(|stored| stored.version) == lease.standing().token => Ok(()),
            (_, row) => {
                self.lose(lease, row.as_ref());
                Err(self.lease_conflict())
            }
        }
    }

    /// The session is another node's. What runs here is stopped where it can be, and it is not found here any more.
    pub(super) fn lose(&self, lease: &Lease, holder: Option<&LeaseRow>) {
        {
            let mut standing = lease.standing();
            if standing.phase == LeasePhase::Lost {
                return;
            }
            standing.phase = LeasePhase::Lost;
        }
        self.shared.metrics.record_lease(LeaseEvent::Lost);
        self.shared.forget(self);
        self.shared.tasks.cancel_all_of(&self.id, CancelReason::SessionEnded);
        let mut data = self.lock();
        let node = holder.map(|row| row.node.as_str());
        match data.unfinished.is_empty() {
            // A conversation whose proxy sends every message to another node moves all the time.
            true => tracing::info!(session = %self.id, node, "session continued by another node"),
            false => tracing::warn!(session = %self.id, node, "session lost to another node while calls ran"),
        }
        for entry in &data.unfinished {
            entry.cancel(CancelReason::SessionEnded);
        }
        data.unsaved = Default::default();
        self.drop_connection(&mut data);
        drop(data);
        self.audit_session("session_lost", json!({ "node": holder.map(|row| &row.node) }));
    }

    fn lease_conflict(&self) -> CommitError {
        CommitError::Conflict { table: Table::Leases, key: self.id.to_string() }
    }

    /// The error of a call that could not start because its marks were not stored.
    pub(crate) fn not_started(&self, error: CommitError) -> ToolError {
        if is_lease_conflict(&error) {
            let message = "This conversation is continued by another server, so nothing was done.".to_owned();
            return refusal_error(ErrorType::Transient, message).retryable();
        }
        self.store_failed(&error.into_store_error())
    }

    /// It is to be given away as soon as nothing is going on in it.
    pub(crate) fn want_release(&self) {
        if let Some(lease) = &self.lease {
            lease.standing().wants_release = true;
        }
    }

    /// A turn begins: the session is given away when that is over, and not before.
    pub(crate) fn keep_for_turn(&self) {
        if let Some(lease) = &self.lease {
            lease.standing().wants_release = false;
        }
    }

    /// Gives the session away as soon as nothing is going on in it, where that was wanted before.
    pub(crate) fn release_if_wanted(self: &Arc<Self>) {
        let Some(lease) = &self.lease else { return };
        let standing = *lease.standing();
        if !standing.wants_release || standing.phase != LeasePhase::Held || !self.is_idle() {
            return;
        }
        let core = self.clone();
        tokio::spawn(async move {
            if let Err(error) = core.release(Commit::default()).await {
                tracing::warn!(session = %core.id, error = %error, "session was not released");
            }
        });
    }
}
