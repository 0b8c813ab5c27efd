//! The handler, run with retries where that is safe and may help.

use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use futures_util::future::{Either, select};
use quarterdeck_contracts::{ErrorType, Metadata, Outcome, ToolError, ToolResponse};
use serde_json::Value;
use tokio::time::Instant;

use super::call::ToolCall;
use super::context::{CallContext, Effects};
use crate::envelope::{cancelled, outcome_unknown, stopped};
use crate::registry::LoadedTool;
use crate::session::SessionCore;

/// No retry is begun after a call has taken this long.
const MAX_RETRY_TIME: Duration = Duration::from_secs(30);

/// Runs the handler to its response, and what it wants done with it. `started` is when the call was.
pub(super) async fn execute(
    core: &Arc<SessionCore>,
    call: &mut ToolCall,
    started: Instant,
) -> (Box<ToolResponse>, Effects) {
    let mut retries = 0;
    loop {
        let context = CallContext::new(core.clone(), call);
        let Some(tool) = core.snapshot.find(&call.entry.tool) else {
            // It was found when the call was admitted, and a snapshot does not change.
            let error = outcome_unknown(&call.entry.tool);
            let response = core.snapshot.refuse(&call.entry.tool, error, core.now());
            return (Box::new(response), context.take_effects());
        };
        let args = arguments(core, tool, call, retries);
        // Pinned here: each future that it is handed to would have the room for another copy of it.
        let running = pin!(core.snapshot.run(tool, args, context.clone()));
        let answered = unless_cancelled(call, running).await;
        let effects = context.take_effects();
        let mut response = answered.unwrap_or_else(|| {
            let error = match call.entry.writes {
                true => stopped(&call.entry.tool, !effects.is_contained),
                false => cancelled(&call.entry.tool),
            };
            Box::new(core.snapshot.refuse(&call.entry.tool, error, core.now()))
        });
        if let Some(pause) = pause_before_retry(core, call, &response, retries, started) {
            // Cancelled meanwhile, it is not run again: the next round finds that out before anything else. On the heap, so that
            // a call that is not retried does not carry the room for the timer.
            Box::pin(unless_cancelled(call, tokio::time::sleep(pause))).await;
            retries += 1;
            continue;
        }
        response.meta.retry_count = (retries > 0).then_some(retries);
        response.meta.parent_call_id = call.ancestors.last().map(|parent| parent.call_id.to_string());
        if retries > 0 {
            response.meta.duration = started.elapsed().as_millis() as u64;
        }
        return (response, effects);
    }
}

/// A call that does not write stops when it is cancelled; one that does has begun and is let finish. A task stops a
/// moment after it was cancelled, also if it writes.
async fn unless_cancelled<T>(call: &ToolCall, running: impl Future<Output = T>) -> Option<T> {
    let writes = call.entry.writes;
    if let Some(task) = &call.task {
        return unless(running, task.wait_for_stop(writes)).await;
    }
    if writes {
        return Some(running.await);
    }
    if call.entry.is_cancelled() {
        return None;
    }
    unless(running, call.entry.cancellation().cancelled()).await
}

async fn unless<T, U>(running: impl Future<Output = T>, stop: impl Future<Output = U>) -> Option<T> {
    match select(pin!(running), pin!(stop)).await {
        Either::Left((output, _)) => Some(output),
        Either::Right(_) => None,
    }
}

/// The arguments of one attempt. The first attempt of a look-up that is not audited gets them for good, which saves a
/// copy; should it be retried, they are made again from what the model wrote, as the gates made them.
fn arguments(core: &SessionCore, tool: &LoadedTool, call: &mut ToolCall, attempt: u32) -> Value {
    // To make arguments again that took long to check would take as long again.
    if call.entry.writes
        || core.shared.audit.is_enabled()
        || call.has_slow_arguments
        || call.span.captures_content()
    {
        return call.args.clone();
    }
    if attempt == 0 {
        return std::mem::take(&mut call.args);
    }
    let (_, written) = call.entry.content.split_once('\n').unwrap_or_default();
    let mut args: Value = serde_json::from_str(written).unwrap_or_default();
    for clamped in &call.clamped {
        args[clamped.parameter] = clamped.given.into();
    }
    // They were accepted before.
    let _ = tool.parameters.admit(&mut args);
    args
}

/// How long to wait before the call is retried, if it is.
fn pause_before_retry(
    core: &SessionCore,
    call: &ToolCall,
    response: &ToolResponse,
    retries: u32,
    started: Instant,
) -> Option<Duration> {
    let Outcome::Failure(error) = &response.outcome else { return None };
    let metadata = core.snapshot.find(&call.entry.tool)?.metadata();
    let budgets = core.shared.policy.budgets(core.mode);
    let max_retries = budgets.retries.min(error.max_retries.unwrap_or(u32::MAX));
    // A task has one deadline, however often its handler runs.
    let is_over =
        call.task.is_some() && error.details.as_ref().is_some_and(|details| details["reason"] == "deadline");
    if is_over || retries >= max_retries || !may_be_retried(metadata, error) || call.is_cancelled() {
        return None;
    }
    let ceiling = budgets.backoff_ms << retries.min(16);
    let pause = match error.retry_after_ms {
        Some(after) => after.max(budgets.backoff_ms.min(after)),
        // In voice there is one retry and it comes soon; elsewhere they spread.
        None if budgets.turn_ms.is_some() => ceiling,
        None => jitter(ceiling),
    };
    let pause = Duration::from_millis(pause);
    let time_left = match budgets.turn_ms {
        Some(turn) => Duration::from_millis(turn).saturating_sub(core.lock().ledger.turn().tool_time),
        None => MAX_RETRY_TIME,
    };
    (started.elapsed() + pause <= time_left).then_some(pause)
}

fn may_be_retried(metadata: &Metadata, error: &ToolError) -> bool {
    let computed = error.details.as_ref().is_some_and(|details| details["computing"] == true);
    matches!(error.kind, ErrorType::Transient | ErrorType::RateLimit)
        && error.retryable
        && !computed
        && (metadata.idempotent || error.partial_side_effects == Some(false))
        && error.idempotency_required != Some(true)
}

/// A random time up to the ceiling.
fn jitter(ceiling_ms: u64) -> u64 {
    let mut bytes = [0_u8; 8];
    match getrandom::fill(&mut bytes) {
        Ok(()) => u64::from_le_bytes(bytes) % (ceiling_ms + 1),
        Err(_) => ceiling_ms,
    }
}
