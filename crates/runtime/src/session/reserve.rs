//! The one atomic step before a handler may run.

use std::sync::Arc;
use std::time::Duration;

use quarterdeck_contracts::{Commit, CommitError, ErrorType, StoreError, Table, ToolError, ToolResponse};
use serde_json::json;

use super::SessionCore;
use super::admit::ToolCall;
use super::rows::CallRow;
use crate::envelope::refusal_error;
use crate::ledger::Entry;
use crate::rate_limit::{self, Slot};

/// How long the store may take. A call must be answered, whatever the disk does.
pub(super) const STORE_TIMEOUT: Duration = Duration::from_secs(10);
/// How often a reservation that others were quicker with is tried again.
const MAX_ATTEMPTS: usize = 64;

/// Whether a call may run now.
pub(super) enum Reservation {
    /// It may.
    Granted,
    /// It may not, and this is why.
    Refused(Box<ToolError>),
    /// It was run before, by somebody who did not tell us.
    Recorded(Box<ToolResponse>),
}

impl SessionCore {
    /// Reserves what the call needs, redeems its confirmation and, for a write, marks it as begun: all or nothing.
    pub(super) async fn reserve(&self, call: &mut ToolCall) -> Reservation {
        if call.rate_limit.is_none() && call.redeems.is_none() && !call.entry.writes {
            return Reservation::Granted;
        }
        // Boxed, so that a look-up does not carry the room for it.
        Box::pin(self.reserve_in_store(call)).await
    }

    async fn reserve_in_store(&self, call: &mut ToolCall) -> Reservation {
        for _ in 0..MAX_ATTEMPTS {
            let commit = match self.reservations(call).await {
                Ok(Ok(commit)) => commit,
                Ok(Err(refusal)) => {
                    call.trace.refused_by_store("availability", json!(refusal.kind));
                    return Reservation::Refused(refusal);
                }
                Err(error) => return Reservation::Refused(Box::new(self.store_failed(&error))),
            };
            match self.commit(self.mark_started(call, commit)).await {
                Ok(()) => return Reservation::Granted,
                Err(CommitError::Conflict { table: Table::Rates, .. }) => {}
                Err(CommitError::Conflict { table: Table::Confirmations, .. }) => {
                    return Reservation::Refused(Box::new(super::resolve::invalid()));
                }
                Err(CommitError::Conflict { .. }) => return self.find_recorded(&call.entry).await,
                Err(CommitError::Store(error)) => {
                    return Reservation::Refused(Box::new(self.store_failed(&error)));
                }
            }
        }
        let busy = refusal_error(ErrorType::RateLimit, "Too many calls want the same slot.".into());
        Reservation::Refused(Box::new(ToolError { retry_after_ms: Some(100), ..busy.retryable() }))
    }

    async fn reservations(&self, call: &ToolCall) -> Result<Result<Commit, Box<ToolError>>, StoreError> {
        let mut commit = call.redeems.as_ref().map_or_else(Commit::default, |redeems| redeems.commit.clone());
        if let Some(limit) = &call.rate_limit {
            let key = rate_limit::key(&call.entry.tool, limit, &self.client, &self.id);
            match rate_limit::find_slot(&*self.shared.store, &key, limit, self.now_ms()).await? {
                Slot::Available(slot) => commit = commit.and(slot),
                Slot::Taken { retry_after_ms } => {
                    let message = format!(
                        "{} may run {} times in {} seconds.",
                        call.entry.tool,
                        limit.calls,
                        limit.window_ms.div_ceil(1_000)
                    );
                    let error = refusal_error(ErrorType::RateLimit, message);
                    return Ok(Err(Box::new(ToolError {
                        retry_after_ms: Some(retry_after_ms),
                        ..error.retryable()
                    })));
                }
            }
        }
        Ok(Ok(commit))
    }

    fn mark_started(&self, call: &ToolCall, commit: Commit) -> Commit {
        if !call.entry.writes {
            return commit;
        }
        let key = self.call_key(call.entry.key());
        let row = CallRow::begun(&call.entry, self.now_ms());
        commit.check(Table::Calls, key.clone(), None).put_until(
            Table::Calls,
            key,
            json!(row),
            self.keep_until(),
        )
    }

    /// The store knows this write already: another process, or one that crashed, has begun it.
    pub(super) async fn find_recorded(&self, entry: &Entry) -> Reservation {
        let row = self.shared.store.get(Table::Calls, &self.call_key(entry.key())).await;
        let envelope = row
            .ok()
            .flatten()
            .and_then(|row| serde_json::from_value::<CallRow>(row.value).ok())
            .and_then(|row| row.envelope);
        match envelope {
            Some(envelope) => Reservation::Recorded(Box::new(envelope)),
            None => Reservation::Refused(Box::new(outcome_unknown(&entry.tool))),
        }
    }

    /// Commits, and does not wait for ever.
    pub(super) async fn commit(&self, commit: Commit) -> Result<(), CommitError> {
        match tokio::time::timeout(STORE_TIMEOUT, self.shared.store.commit(commit)).await {
            Ok(result) => result,
            Err(_) => Err(StoreError::Failed("it did not answer in time".into()).into()),
        }
    }

    pub(super) fn store_failed(&self, error: &StoreError) -> ToolError {
        tracing::error!(session = %self.id, error = %error, "the store failed");
        let message = "Nothing can be recorded at the moment, so nothing was done.".to_owned();
        refusal_error(ErrorType::Transient, message).retryable()
    }

    pub(super) fn keep_until(&self) -> Option<u64> {
        Some(self.now_ms() + self.shared.policy.retention.as_millis() as u64)
    }
}

/// A write has begun, and nobody knows how it ended.
pub(super) fn outcome_unknown(tool: &str) -> ToolError {
    let message = format!("{tool} was interrupted, and whether it was done is not known.");
    ToolError {
        partial_side_effects: Some(true),
        details: Some(json!({ "outcome": "unknown" })),
        ..ToolError::new(ErrorType::Internal, message)
    }
    .with_suggestion("Tell the person, and look before trying again.")
}

pub(super) fn refusal(core: &SessionCore, tool: &str, error: ToolError) -> Arc<ToolResponse> {
    Arc::new(core.snapshot.refuse(tool, error, core.now()))
}
