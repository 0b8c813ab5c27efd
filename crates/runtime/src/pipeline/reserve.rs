//! The one atomic step before a handler may run.

use std::sync::atomic::Ordering;

use quarterdeck_contracts::{Commit, CommitError, ErrorType, RateLimit, Table, ToolError, ToolResponse};
use serde_json::json;

use super::call::{Approval, ToolCall};
use super::detached::prepare;
use super::recorded::recorded_answer;
use super::task_rows::started_commit;
use crate::envelope::{confirmation_invalid, outcome_unknown, refusal_error};
use crate::ledger::Entry;
use crate::ownership::is_lease_conflict;
use crate::rate_limit;
use crate::session::{CallRow, SessionCore};

/// Whether a call may run now.
pub(crate) enum Reservation {
    Granted,
    Refused(Box<ToolError>),
    /// It was run before, by another process or by this one before a crash.
    Recorded(Box<ToolResponse>),
}

/// Takes the rate-limit slot that the call needs, redeems its confirmation and, for a write, marks it as started: all or
/// nothing.
pub(crate) async fn reserve(core: &SessionCore, call: &mut ToolCall) -> Reservation {
    if let Err(error) = prepare(core, call) {
        call.trace.refused_by_store("availability", json!(error.kind));
        return Reservation::Refused(Box::new(error));
    }
    let redeems = matches!(call.approval, Approval::Granted(_));
    let is_stored = call.task.as_ref().is_some_and(|task| task.starts_in_background());
    if call.rate_limit.is_none() && !redeems && !call.entry.writes && !is_stored {
        return Reservation::Granted;
    }
    // Boxed, so that the future of a look-up does not carry the room for it.
    Box::pin(reserve_in_store(core, call)).await
}

async fn reserve_in_store(core: &SessionCore, call: &mut ToolCall) -> Reservation {
    let refused = |error| Reservation::Refused(Box::new(error));
    let marked = match core.commit_start(mark_started(core, call, reservations(core, call))).await {
        Err(CommitError::Unknown(reason)) => {
            renew_mark(core, call).await.unwrap_or(Err(CommitError::Unknown(reason)))
        }
        known => known,
    };
    match marked {
        Ok(version) => {
            call.entry.started_version.store(version, Ordering::Relaxed);
            Reservation::Granted
        }
        Err(CommitError::Exhausted { retry_after_ms, .. }) => {
            let refusal = no_slot(&call.entry, call.rate_limit.as_ref(), retry_after_ms);
            call.trace.refused_by_store("availability", json!(refusal.kind));
            refused(refusal)
        }
        // Another node has the session: it was not started, whatever that node knows of it.
        Err(error) if is_lease_conflict(&error) => refused(core.not_started(error)),
        Err(CommitError::Conflict { table: Table::Confirmations, .. }) => refused(confirmation_invalid()),
        Err(CommitError::Conflict { .. }) => find_recorded(core, &call.entry).await,
        // Whatever became of the marks, the handler has not run.
        Err(error @ (CommitError::Unknown(_) | CommitError::Store(_))) => {
            refused(core.store_failed(&error.into_store_error()))
        }
    }
}

/// Finds out whether the marks were stored, by making the one of the start again. Only a session that still has its lease
/// can, and then no other process has made it. Nothing where it is not there, or is not known.
async fn renew_mark(core: &SessionCore, call: &ToolCall) -> Option<Result<u64, CommitError>> {
    if !call.entry.writes || call.task.is_some() {
        return None;
    }
    let key = core.call_key(call.entry.key());
    let stored = core.shared.store.get(Table::Calls, &key).await.ok()??;
    let row = serde_json::from_value::<CallRow>(stored.value.clone()).ok()?;
    let commit = Commit::default().check(Table::Calls, key.clone(), Some(stored.version));
    let commit = commit.put_until(Table::Calls, key, stored.value, core.keep_until());
    if row.envelope.is_none() { Some(core.commit_start(commit).await) } else { None }
}

/// The commit that takes the slot and redeems the confirmation.
fn reservations(core: &SessionCore, call: &ToolCall) -> Commit {
    let commit = match &call.approval {
        Approval::Granted(redemption) => Commit::clone(redemption),
        Approval::NotNeeded | Approval::Pending { .. } => Commit::default(),
    };
    let Some(limit) = &call.rate_limit else { return commit };
    commit.take(rate_limit::take(&call.entry.tool, limit, &core.client, &core.id, core.now_ms()))
}

fn no_slot(entry: &Entry, limit: Option<&RateLimit>, retry_after_ms: u64) -> ToolError {
    let (calls, window_ms) = limit.map_or((0, 0), |limit| (limit.calls, limit.window_ms));
    let seconds = window_ms.div_ceil(1_000);
    let message = format!("{} may run {calls} times in {seconds} seconds.", entry.tool);
    let error = refusal_error(ErrorType::RateLimit, message).retryable();
    ToolError { retry_after_ms: Some(retry_after_ms), ..error }
}

fn mark_started(core: &SessionCore, call: &ToolCall, mut commit: Commit) -> Commit {
    let key = core.call_key(call.entry.key());
    if let Some(task) = call.task.as_ref().filter(|task| task.starts_in_background()) {
        if call.entry.writes {
            commit = commit.check(Table::Calls, key, None);
        }
        return started_commit(core, call, task, commit);
    }
    if !call.entry.writes {
        return commit;
    }
    let row = json!(CallRow::started(&call.entry, core.now_ms()));
    commit.check(Table::Calls, key.clone(), None).put_until(Table::Calls, key, row, core.keep_until())
}

/// What the store knows of a write that was started before.
pub(crate) async fn find_recorded(core: &SessionCore, entry: &Entry) -> Reservation {
    match recorded_answer(core, entry).await {
        Some(envelope) => Reservation::Recorded(Box::new(envelope)),
        None => Reservation::Refused(Box::new(outcome_unknown(&entry.tool))),
    }
}
