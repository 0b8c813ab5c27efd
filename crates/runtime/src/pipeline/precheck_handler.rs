//! A handler's own look at a call before the user is asked to approve it.

use std::sync::Arc;

use quarterdeck_contracts::handler::{Precheck, PrecheckAnswer};

use super::call::ToolCall;
use super::context::CallContext;
use crate::registry::LoadedTool;
use crate::session::SessionCore;

/// Runs the precheck of a call's handler, which can read and not write. A handler without one has no objection.
pub(crate) async fn precheck(core: &Arc<SessionCore>, call: &ToolCall, tool: &LoadedTool) -> PrecheckAnswer {
    let context = CallContext::for_precheck(core.clone(), call);
    let answer = tool.precheck(call.args.clone(), context).await;
    answer.unwrap_or_else(|| Ok(Precheck::default()))
}
