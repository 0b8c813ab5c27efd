//! What a write or a task came to and its effects, in one commit.

use std::sync::atomic::Ordering;

use quarterdeck_contracts::{Commit, CommitError, ErrorType, Outcome, Table, ToolResponse};
use serde_json::{Value, json};

use super::call::{CallOutcome, ToolCall};
use super::context::Effects;
use super::recorded::recorded_answer;
use super::task_rows::ended_commit;
use crate::cluster_events::topic;
use crate::envelope::{outcome_unknown, refusal_error};
use crate::ownership::is_lease_conflict;
use crate::session::{CallRow, ClientEvent, SessionCore};

/// What came of recording a call.
pub(super) enum Recorded {
    Final(CallOutcome),
    /// A row that the handler decided from has changed. Nothing of this run is real, so it may run again.
    Outdated,
}

/// Records a write with its effects. A look-up has none, and its answer is stored later with others.
pub(super) async fn record(
    core: &SessionCore,
    call: &ToolCall,
    mut response: Box<ToolResponse>,
    effects: Effects,
) -> Recorded {
    let background = match &call.task {
        Some(task) => task.end().await,
        None => false,
    };
    if let Some(task) = call.task.as_ref().filter(|_| background) {
        response.meta.background_task_id = Some(task.id.to_string());
    }
    if !call.entry.writes && !background {
        return Recorded::Final(CallOutcome::executed(*response, None));
    }
    // Boxed, so that the future of a look-up does not carry the room for it.
    Box::pin(record_write(core, call, *response, effects)).await
}

async fn record_write(
    core: &SessionCore,
    call: &ToolCall,
    response: ToolResponse,
    effects: Effects,
) -> Recorded {
    let (is_contained, has_rows) = (effects.is_contained, !effects.commit.is_empty());
    match commit_write(core, call, &response, effects).await {
        Ok(block_message) => Recorded::Final(CallOutcome::executed(response, block_message)),
        // The session is lost, and with it the right to run again. Rows that the handler wanted written are not.
        Err(error) if is_lease_conflict(&error) && has_rows && is_contained => {
            Recorded::Final(CallOutcome::not_executed(core, call, core.not_started(error)))
        }
        Err(error) if is_lease_conflict(&error) && !has_rows => {
            Recorded::Final(record_late(core, call, response).await)
        }
        Err(CommitError::Conflict { .. }) if is_contained => Recorded::Outdated,
        Err(error) => {
            tracing::error!(
                session = %core.id, call = %call.entry.call_id, error = %error, "write could not be recorded"
            );
            if matches!(error, CommitError::Unknown(_)) {
                call.entry.mark_in_doubt();
            }
            let error = outcome_unknown(&call.entry.tool);
            Recorded::Final(CallOutcome::not_executed(core, call, error))
        }
    }
}

/// Records what a write has done outside after its session was lost: the truth is worth having for the node that has it
/// now. The mark of its start must still be there as it was made, and nothing else is written.
async fn record_late(core: &SessionCore, call: &ToolCall, response: ToolResponse) -> CallOutcome {
    let key = core.call_key(call.entry.key());
    let row = json!(CallRow::done(&call.entry, &response, core.now_ms()));
    let started = call.entry.started_version.load(Ordering::Relaxed);
    let commit = Commit::default().check(Table::Calls, key.clone(), Some(started));
    let commit = commit.put_until(Table::Calls, key, row, core.keep_until());
    let may_record = started > 0 && call.task.is_none() && is_final(&response);
    if may_record && core.commit_unfenced(commit).await.is_ok() {
        return CallOutcome::executed(response, None);
    }
    tracing::error!(
        session = %core.id, call = %call.entry.call_id, "write of a lost session could not be recorded"
    );
    CallOutcome::not_executed(core, call, outcome_unknown(&call.entry.tool))
}

/// Commits the answer, together with the effects unless it is a failure. Messages go out afterwards. Returns the
/// farewell if the call blocked the client.
async fn commit_write(
    core: &SessionCore,
    call: &ToolCall,
    response: &ToolResponse,
    effects: Effects,
) -> Result<Option<String>, CommitError> {
    let key = core.call_key(call.entry.key());
    let task = call.task.as_ref().filter(|_| response.meta.background_task_id.is_some());
    let mut commit = match task {
        // The call itself was answered long ago.
        Some(task) => ended_commit(core, call, task, response),
        None if !is_final(response) => {
            core.commit(Commit::default().delete(Table::Calls, key)).await?;
            return Ok(None);
        }
        None => {
            let row = CallRow::done(&call.entry, response, core.now_ms());
            Commit::default().put_until(Table::Calls, key, json!(row), core.keep_until())
        }
    };
    if response.is_ok() {
        commit = commit.and(with_expiry(core, effects.commit));
    }
    match core.commit(commit).await {
        // A call that runs has no answer on record before.
        Err(CommitError::Unknown(_))
            if task.is_none() && recorded_answer(core, &call.entry).await.is_some() => {}
        committed => drop(committed?),
    }
    task.iter().for_each(|task| task.mark_end_stored());
    if response.is_ok() {
        send_messages(core, effects.messages);
        if effects.block_message.is_some() {
            core.shared.announce(topic::BLOCK, &*core.client);
        }
    }
    Ok(effects.block_message.filter(|_| response.is_ok()))
}

/// What a handler wrote is forgotten in time, like everything else: a block or an issued session when it has run out, a
/// value or a file after the retention time. Events of the calendar are the site's own.
fn with_expiry(core: &SessionCore, mut commit: Commit) -> Commit {
    for write in &mut commit.writes {
        let Some(value) = &write.value else { continue };
        write.expires_ms = match write.table {
            Table::Values | Table::Files => core.keep_until(),
            Table::Blocks => value["untilMs"].as_u64(),
            Table::Sessions => value["expiresMs"].as_u64(),
            _ => write.expires_ms,
        };
    }
    commit
}

/// Other calls have changed what the handler decides from, each time that it ran.
pub(super) async fn give_up(core: &SessionCore, call: &ToolCall) -> CallOutcome {
    let _ = core.commit(Commit::default().delete(Table::Calls, core.call_key(call.entry.key()))).await;
    let message = format!("{} was overtaken by other changes, and did nothing.", call.entry.tool);
    CallOutcome::not_executed(core, call, refusal_error(ErrorType::Transient, message).retryable())
}

/// Sends a handler's messages to its client.
pub(super) fn send_messages(core: &SessionCore, messages: Vec<Value>) {
    if messages.is_empty() {
        return;
    }
    let mut data = core.lock();
    for message in messages {
        core.push_event(&mut data, ClientEvent::Message(message));
    }
}

/// Whether an answer is final. A failure that may succeed later and did nothing is not, nor is a cancelled call.
pub(super) fn is_final(response: &ToolResponse) -> bool {
    match &response.outcome {
        Outcome::Success(_) => true,
        Outcome::Failure(error) => {
            let may_turn_out_differently = error.retryable || error.kind == ErrorType::Cancelled;
            error.partial_side_effects == Some(true) || !may_turn_out_differently
        }
    }
}
