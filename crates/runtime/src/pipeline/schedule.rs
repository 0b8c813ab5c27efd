//! How a voice call that the gates have passed is waited for: what the latency scheduler decides from, and what becomes of
//! its decision.

use quarterdeck_contracts::{Category, ErrorType, Metadata, ToolError};

use super::call::ToolCall;
use crate::envelope::refusal_error;
use crate::gates::Verdict;
use crate::latency::{LatencyEstimate, LatencyFacts, Schedule, ScheduledCall, is_scheduled, schedule};
use crate::session::{SessionCore, SessionData};

/// Schedules a call that may run. One that would keep the user waiting for too long is refused.
pub(super) fn schedule_call(
    core: &SessionCore,
    data: &mut SessionData,
    call: &mut ToolCall,
    verdict: Verdict,
) -> Verdict {
    // Asked first, because the estimate among the facts takes longer than all gates together.
    if !is_scheduled(core.mode, !call.ancestors.is_empty()) {
        return verdict;
    }
    let tool = core.snapshot.find(&call.entry.tool).filter(|_| matches!(verdict, Verdict::Allow(_)));
    let Some(tool) = tool else { return verdict };
    let facts = gather_facts(core, data, call, tool.metadata());
    let Some(scheduled) = schedule(&facts) else { return verdict };
    core.shared.metrics.record_schedule(&call.entry.tool, scheduled.schedule);
    call.trace.scheduled(&scheduled);
    call.schedule = Some(scheduled.schedule);
    match scheduled.schedule {
        Schedule::Refuse => Verdict::Refuse(Box::new(too_slow(&call.entry.tool, &scheduled))),
        Schedule::Inline | Schedule::Filler | Schedule::Background => verdict,
    }
}

fn gather_facts(
    core: &SessionCore,
    data: &mut SessionData,
    call: &ToolCall,
    metadata: &Metadata,
) -> LatencyFacts {
    let budgets = core.shared.policy.budgets(core.mode);
    let for_retrieval = budgets.retrieval_ms.filter(|_| metadata.category == Category::Retrieval);
    let measured = core.shared.metrics.estimate_latency(&call.entry.tool, core.now_ms());
    LatencyFacts {
        mode: core.mode,
        is_nested: !call.ancestors.is_empty(),
        is_control: metadata.control,
        estimate: measured.unwrap_or_else(|| LatencyEstimate::declared(metadata.latency_budget_ms)),
        call_limit_ms: [budgets.call_ms, for_retrieval].into_iter().flatten().min(),
        turn_limit_ms: budgets.turn_ms,
        max_wait_ms: budgets.max_wait_ms,
        used_ms: data.ledger.turn().tool_time.as_millis() as u64,
        background_after_ms: metadata.effective_background_after_ms(),
    }
}

fn too_slow(tool: &str, scheduled: &ScheduledCall) -> ToolError {
    let seconds = scheduled.p50_ms.div_ceil(1_000);
    let message =
        format!("{tool} takes about {seconds} seconds at present, too long for a call. Nothing was done.");
    refusal_error(ErrorType::ModeRestricted, message)
        .with_suggestion("Tell the user how long it takes, and offer to do this in the chat after the call.")
}
