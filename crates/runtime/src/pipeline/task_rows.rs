//! What is stored of a task when it starts and when it ends.

use quarterdeck_contracts::{Commit, Table, ToolResponse};
use serde_json::{Value, json};

use super::call::ToolCall;
use crate::session::{CallRow, SessionCore};
use crate::tasks::{Task, TaskRow};

/// Stores a task that runs, and for a write that its call was answered with it.
pub(super) fn started_commit(core: &SessionCore, call: &ToolCall, task: &Task, commit: Commit) -> Commit {
    let row = TaskRow::running(core, task, &call.entry, &call.args);
    let commit = row.put(commit, core.keep_until());
    if !call.entry.writes {
        return commit;
    }
    let key = core.call_key(call.entry.key());
    let answered = json!(CallRow::done(&call.entry, &task.started_response, core.now_ms()));
    commit.put_until(Table::Calls, key, answered, core.keep_until())
}

/// Stores what a task came to.
pub(super) fn ended_commit(
    core: &SessionCore,
    call: &ToolCall,
    task: &Task,
    response: &ToolResponse,
) -> Commit {
    ended_row(core, call, task, response).put(Commit::default(), core.keep_until())
}

pub(super) fn ended_row(
    core: &SessionCore,
    call: &ToolCall,
    task: &Task,
    response: &ToolResponse,
) -> TaskRow {
    TaskRow::running(core, task, &call.entry, &Value::Null).ended(response, core.now_ms())
}
