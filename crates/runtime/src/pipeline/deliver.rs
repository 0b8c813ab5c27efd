//! The answer of a call to those who wait for it, and its intents to the session.

use std::sync::Arc;
use std::time::Duration;

use quarterdeck_contracts::{Category, Intent, Metadata, Outcome, RequestedIntent, ToolResponse};

use super::call::{CallOutcome, ToolCall};
use super::record::is_final;
use crate::ledger::{Entry, is_empty_result};
use crate::metrics::{Sample, response_chars};
use crate::session::{Answer, ClientEvent, DeliveryReason, SessionCore, SessionData};
use crate::state::{Cause, Transition};

/// Gives a call its answer and applies its intents.
pub(super) fn deliver(core: &Arc<SessionCore>, mut call: ToolCall, outcome: CallOutcome, elapsed: Duration) {
    let entry = &call.entry.clone();
    let CallOutcome { response, is_executed, block_message, is_continued } = outcome;
    let mut data = core.lock();
    let is_abandoned = is_executed && entry.writes && entry.is_cancelled();
    data.unfinished.retain(|other| !Arc::ptr_eq(other, entry));
    let mut transitions = Vec::new();
    let exceeded = if is_executed { exceeded_limit(core, entry, elapsed) } else { None };
    if is_executed {
        count_result(core, &mut data, entry, &response, elapsed);
        if let Some(limit) = exceeded {
            // The model is told of a slow tool when the next turn begins.
            data.ledger.slow_calls().add(&entry.tool, elapsed, limit);
        }
        transitions = apply_intents(core, &mut data, entry, &response, block_message.as_deref());
    }
    if is_final(&response) {
        entry.mark_final();
        if !entry.writes {
            data.unsaved.add(entry, core.shared.policy.max_remembered_calls);
        }
    } else {
        data.ledger.remove(entry);
    }
    data.unsaved.session |= !transitions.is_empty();
    entry.set_trace(&call.trace);
    entry.set_answer(response.clone());
    if entry.is_cancelled() {
        data.undelivered.retain(|pending| !pending.is_of(entry));
    }
    if is_abandoned {
        report_abandoned(core, &mut data, entry, &response);
    }
    if !data.undelivered.is_empty() {
        core.hand_over(&mut data);
    }
    core.save_soon(&mut data);
    drop(data);

    if is_executed {
        measure(core, entry, &response, elapsed, exceeded);
    } else if let Some(gate) = call.trace.answered_by() {
        core.shared.metrics.record_refusal(&entry.tool, gate);
        core.shared.metrics.record_version_refusal(core.snapshot.version());
    }
    let how = match is_executed {
        true => is_abandoned.then_some("abandoned"),
        false => Some(if is_continued { "continued" } else { "refused" }),
    };
    call.audit(core, Some(entry), &response, how);
    core.audit_transitions(transitions);
    core.release_if_wanted();
}

fn count_result(
    core: &SessionCore,
    data: &mut SessionData,
    entry: &Entry,
    response: &ToolResponse,
    elapsed: Duration,
) {
    if entry.turn != data.ledger.turn_number() {
        return;
    }
    let tool = core.snapshot.find(&entry.tool);
    let retrieves = tool.is_some_and(|tool| tool.metadata().category == Category::Retrieval);
    let turn = data.ledger.turn();
    turn.tool_time += elapsed;
    if retrieves && matches!(&response.outcome, Outcome::Success(output) if is_empty_result(output)) {
        turn.count_empty(&entry.tool);
    }
}

pub(super) fn apply_intents(
    core: &SessionCore,
    data: &mut SessionData,
    entry: &Entry,
    response: &ToolResponse,
    block_message: Option<&str>,
) -> Vec<Transition> {
    if response.intents.is_empty() {
        return Vec::new();
    }
    data.facts = None;
    let output = match &response.outcome {
        Outcome::Success(output) => Some(output),
        Outcome::Failure(_) => None,
    };
    let cause = Cause { call_id: &entry.call_id, data: output, block_message };
    // An end that a discarded response asked for would hang up on the user.
    let is_interrupted = entry.is_cancelled() && block_message.is_none();
    if is_interrupted && response.intents.iter().any(ends_session) {
        let kept: Vec<_> = response.intents.iter().filter(|intent| !ends_session(intent)).cloned().collect();
        tracing::warn!(session = %core.id, call = %entry.call_id, "end ignored: its response was interrupted");
        return data.controller.apply(&kept, cause);
    }
    data.controller.apply(&response.intents, cause)
}

fn ends_session(intent: &RequestedIntent) -> bool {
    matches!(intent, RequestedIntent::Known(Intent::EndVoiceSession { .. }))
}

/// A user who interrupted must know that something was done all the same, and so must the model.
fn report_abandoned(core: &SessionCore, data: &mut SessionData, entry: &Entry, response: &Arc<ToolResponse>) {
    let how = if response.is_ok() { "was done" } else { "failed" };
    data.notes.texts.push(format!("{} was interrupted but had begun, and {how}.", entry.tool));
    data.unsaved.session = true;
    let answer = Answer::notice(entry.call_id.clone(), entry.tool.clone(), response.clone(), entry.trace());
    core.push_event(data, ClientEvent::Answer { reason: DeliveryReason::Abandoned, answer });
}

/// The soft limit of a call, where it took longer.
fn exceeded_limit(core: &SessionCore, entry: &Entry, took: Duration) -> Option<Duration> {
    let tool = core.snapshot.find(&entry.tool)?;
    let limit = Duration::from_millis(soft_limit_ms(core, tool.metadata())?);
    (took.as_millis() > limit.as_millis()).then_some(limit)
}

/// Counts an execution, and warns when it was slow. Soft limits never block.
fn measure(
    core: &SessionCore,
    entry: &Entry,
    response: &ToolResponse,
    duration: Duration,
    exceeded: Option<Duration>,
) {
    if let Some(limit) = exceeded {
        tracing::warn!(
            session = %core.id, turn = entry.turn, call = %entry.call_id, tool = %entry.tool,
            took_ms = duration.as_millis() as u64, limit_ms = limit.as_millis() as u64, "tool was slow"
        );
    }
    record_sample(core, entry, response, duration, exceeded.is_some());
}

/// Counts the execution of a task. How long it may take is not a matter of the conversation.
pub(super) fn measure_task(core: &SessionCore, entry: &Entry, response: &ToolResponse, duration: Duration) {
    record_sample(core, entry, response, duration, false);
}

fn record_sample(core: &SessionCore, entry: &Entry, response: &ToolResponse, duration: Duration, slow: bool) {
    let error = match &response.outcome {
        Outcome::Success(_) => None,
        Outcome::Failure(error) => Some(error.kind),
    };
    let ended_ms = core.now_ms();
    let sample = Sample { size: response_chars(response), duration, error, slow, ended_ms };
    core.shared.metrics.record_execution(&entry.tool, sample);
    core.shared.metrics.record_version_execution(core.snapshot.version(), sample);
}

fn soft_limit_ms(core: &SessionCore, metadata: &Metadata) -> Option<u64> {
    let budgets = core.shared.policy.budgets(core.mode);
    let for_retrieval = budgets.retrieval_ms.filter(|_| metadata.category == Category::Retrieval);
    [Some(metadata.latency_budget_ms), budgets.call_ms, for_retrieval].into_iter().flatten().min()
}
