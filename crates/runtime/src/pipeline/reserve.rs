//! The one atomic step before a handler may run.

use quarterdeck_contracts::{Commit, CommitError, ErrorType, StoreError, Table, ToolError, ToolResponse};
use serde_json::json;

use super::call::{Approval, ToolCall};
use super::detached::prepare;
use super::task_rows::started_commit;
use crate::envelope::{confirmation_invalid, outcome_unknown, refusal_error};
use crate::ledger::Entry;
use crate::rate_limit::{self, Slot};
use crate::session::{CallRow, SessionCore};

/// How often a reservation is tried that other calls were quicker with.
const MAX_ATTEMPTS: usize = 64;

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
    for _ in 0..MAX_ATTEMPTS {
        let commit = match reservations(core, call).await {
            Ok(Ok(commit)) => commit,
            Ok(Err(refusal)) => {
                call.trace.refused_by_store("availability", json!(refusal.kind));
                return Reservation::Refused(refusal);
            }
            Err(error) => return refused(core.store_failed(&error)),
        };
        match core.commit(mark_started(core, call, commit)).await {
            Ok(()) => return Reservation::Granted,
            Err(CommitError::Conflict { table: Table::Rates, .. }) => {}
            Err(CommitError::Conflict { table: Table::Confirmations, .. }) => {
                return refused(confirmation_invalid());
            }
            Err(CommitError::Conflict { .. }) => return find_recorded(core, &call.entry).await,
            Err(CommitError::Store(error)) => return refused(core.store_failed(&error)),
        }
    }
    let busy = refusal_error(ErrorType::RateLimit, "Too many calls want the same slot.".into());
    refused(ToolError { retry_after_ms: Some(100), ..busy.retryable() })
}

/// The commit that takes the slot and redeems the confirmation, or why there is no slot.
async fn reservations(
    core: &SessionCore,
    call: &ToolCall,
) -> Result<Result<Commit, Box<ToolError>>, StoreError> {
    let commit = match &call.approval {
        Approval::Granted(redemption) => redemption.clone(),
        Approval::NotNeeded | Approval::Pending { .. } => Commit::default(),
    };
    let Some(limit) = &call.rate_limit else { return Ok(Ok(commit)) };
    let key = rate_limit::key(&call.entry.tool, limit, &core.client, &core.id);
    match rate_limit::find_slot(&*core.shared.store, &key, limit, core.now_ms()).await? {
        Slot::Available(slot) => Ok(Ok(commit.and(slot))),
        Slot::Taken { retry_after_ms } => {
            let seconds = limit.window_ms.div_ceil(1_000);
            let message = format!("{} may run {} times in {seconds} seconds.", call.entry.tool, limit.calls);
            let error = refusal_error(ErrorType::RateLimit, message).retryable();
            Ok(Err(Box::new(ToolError { retry_after_ms: Some(retry_after_ms), ..error })))
        }
    }
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
    let row = core.shared.store.get(Table::Calls, &core.call_key(entry.key())).await;
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
