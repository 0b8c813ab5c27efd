//! Arguments that take long to check are checked before their call is admitted.
//!
//! Calls are admitted under the session's lock, which nothing may wait for. So a message with such a call is set aside,
//! its arguments are checked on other threads, and only then is it admitted, as a whole and in order like any other.

use crate::call::Call;
use crate::gates::{CheckedArguments, ToolView, clamp};
use crate::registry::LoadedTool;
use crate::session::SessionCore;
use crate::validation::check_arguments;

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

pub(super) fn is_quick(core: &SessionCore, call: &Call) -> bool {
    core.snapshot.find(&call.name).is_none_or(|tool| tool.parameters.is_quick(&call.args))
}

pub(super) fn view(tool: &LoadedTool) -> ToolView<'_> {
    ToolView { metadata: tool.metadata(), parameters: &tool.parameters, source: &tool.compiled().json_schema }
}
