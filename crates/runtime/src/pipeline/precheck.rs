//! Arguments that take long to check are checked before their call is admitted.
//!
//! Calls are admitted under the session's lock, which nothing may wait for. So a message with such a call is set aside,
//! its arguments are checked on other threads, and only then is it admitted, as a whole and in order like any other.

use std::sync::Arc;

use tokio::sync::oneshot;

use super::batch::{Batch, Submission, admit_message};
use crate::call::Call;
use crate::gates::{CheckedArguments, ToolView, clamp};
use crate::registry::LoadedTool;
use crate::session::{SessionCore, UnadmittedMessage};
use crate::validation::check_arguments;

/// Admits the calls of one message and starts them, at once if their arguments are checked quickly.
pub(super) fn submit(core: &Arc<SessionCore>, calls: Vec<Call>) -> Batch {
    let read = calls.iter().take(core.shared.policy.max_calls_per_message);
    if read.clone().all(|call| is_quick(core, call)) {
        return admit_message(core, calls.into_iter().map(Submission::unchecked));
    }
    let message = UnadmittedMessage::new(&calls);
    core.lock().unadmitted.push(message.clone());
    let (sender, batch) = oneshot::channel();
    tokio::spawn(check_and_admit(core.clone(), calls, message, sender));
    Batch::pending(core, batch)
}

async fn check_and_admit(
    core: Arc<SessionCore>,
    calls: Vec<Call>,
    message: Arc<UnadmittedMessage>,
    sender: oneshot::Sender<Batch>,
) {
    let max_calls = core.shared.policy.max_calls_per_message;
    let mut submissions = Vec::with_capacity(calls.len());
    for (index, call) in calls.into_iter().enumerate() {
        let checked = if index < max_calls { check_beforehand(&core, &call).await } else { None };
        submissions.push(Submission { call, checked, is_cancelled: false });
    }
    core.lock().unadmitted.retain(|other| !Arc::ptr_eq(other, &message));
    for (index, submission) in submissions.iter_mut().enumerate() {
        submission.is_cancelled = message.is_cancelled(index);
    }
    // A batch that is not waited for any more hands its answers to the next connection when it is dropped.
    let _ = sender.send(admit_message(&core, submissions.into_iter()));
}

/// What a call's arguments are found to be, if checking them takes long.
pub(super) async fn check_beforehand(core: &SessionCore, call: &Call) -> Option<CheckedArguments> {
    if is_quick(core, call) {
        return None;
    }
    let tool = core.snapshot.find(&call.name)?;
    let mut args = call.args.clone();
    clamp(view(tool), core.shared.policy.budgets(core.mode), &mut args);
    Some(check_arguments(&tool.parameters, args).await)
}

fn is_quick(core: &SessionCore, call: &Call) -> bool {
    core.snapshot.find(&call.name).is_none_or(|tool| tool.parameters.is_quick(&call.args))
}

/// What gates may know about a tool.
pub(super) fn view(tool: &LoadedTool) -> ToolView<'_> {
    ToolView { metadata: tool.metadata(), parameters: &tool.parameters, source: &tool.compiled().json_schema }
}
