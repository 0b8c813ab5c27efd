//! Gates: facts about the call, the verdict from them, and its entry in the ledger.

use std::sync::Arc;

use quarterdeck_contracts::{Category, ErrorType, ToolError};

use super::call::{Ancestor, Approval, ToolCall};
use super::precheck::{check_beforehand, view};
use super::schedule::schedule_call;
use crate::call::Call;
use crate::envelope::{refusal_error, replayed, unknown_tool};
use crate::gates::{
    CheckedArguments, Facts, RecordedAnswer, Redelivery, Subject, Verdict, judge, uses_budget,
};
use crate::ledger::KnownCall;
use crate::registry::LoadedTool;
use crate::session::{AnswerSource, PendingAnswer, SessionCore, SessionData};

/// What the gates have decided about a call.
pub(super) enum Admission {
    /// It has its answer, or shares that of an equal call.
    Answered(PendingAnswer),
    /// It runs, once the user has approved it where that is needed.
    Admitted(ToolCall),
}

/// Judges one call and enters it into the ledger. All of it happens under the session's lock, so that calls of one
/// message see each other and two messages do not see half of one.
pub(super) fn admit(
    core: &SessionCore,
    data: &mut SessionData,
    mut call: ToolCall,
    checked: Option<&CheckedArguments>,
) -> Admission {
    if !data.controller.state().is_active {
        let ended = refusal_error(ErrorType::SessionInactive, "The session has ended.".into());
        return refuse(core, data, call, ended);
    }
    let facts = gather_facts(core, data, &call);
    let tool = core.snapshot.find(&call.entry.tool);
    let mut subject = Subject {
        name: &call.entry.tool,
        args: &mut call.args,
        tool: tool.map(view),
        judged: checked,
        known: &|| core.snapshot.tools().map(|tool| tool.metadata().tool_id.to_string()).collect(),
    };
    let verdict;
    (verdict, call.trace) = judge(&mut subject, &facts);
    let verdict = schedule_call(core, data, &mut call, verdict);

    // Calls after it in the same message count as having read what it brings, in whatever order they end. What the user
    // must approve first brings nothing until then.
    let brings_an_answer = matches!(verdict, Verdict::Allow(_) | Verdict::Replay(_));
    if brings_an_answer && tool.is_some_and(LoadedTool::reads_foreign_text) {
        data.ledger.turn().has_read_foreign_text = true;
    }
    count(data, &call, tool.map(|tool| tool.metadata().category), &facts);
    match verdict {
        Verdict::Refuse(error) => refuse(core, data, call, *error),
        Verdict::Replay(which) => replay(core, data, call, which),
        // The second gate refuses what does not exist.
        Verdict::Confirm(_) | Verdict::Allow(_) if tool.is_none() => {
            let error = unknown_tool(&call.entry.tool);
            refuse(core, data, call, error)
        }
        // Equal calls wait for one decision of the user, also where each of them would run.
        Verdict::Confirm(_) if let Some(waiting) = data.ledger.find_unanswered(&call.entry.content) => {
            Admission::Answered(answer(call, AnswerSource::Replay(waiting)))
        }
        Verdict::Confirm(reason) => {
            call.approval = Approval::Pending { reason: reason.sentence };
            call.entry.set_trace(&call.trace);
            // In the ledger, so that the same call again waits with it.
            data.ledger.insert(call.entry.clone());
            Admission::Admitted(call)
        }
        Verdict::Allow(allowed) => {
            (call.clamped, call.rate_limit) = (allowed.clamped, allowed.rate_limit);
            call.has_slow_arguments = checked.is_some();
            call.entry.set_trace(&call.trace);
            data.insert_running(&call.entry);
            Admission::Admitted(call)
        }
    }
}

/// Admits a call that a handler makes.
pub(super) async fn admit_nested(core: &SessionCore, call: Call, ancestors: Vec<Ancestor>) -> Admission {
    let checked = check_beforehand(core, &call).await;
    let mut data = core.lock();
    let call = ToolCall::new(core, &mut data, call, ancestors);
    admit(core, &mut data, call, checked.as_ref())
}

fn gather_facts(core: &SessionCore, data: &mut SessionData, call: &ToolCall) -> Facts {
    let content = &call.entry.content;
    let redelivery = data.ledger.redelivery(call.entry.provider_id.as_deref(), content);
    let duplicate = data.ledger.duplicate(content);
    let client = data.client.clone();
    let turn = data.ledger.turn();
    Facts {
        mode: core.mode,
        redelivery,
        identical: turn.seen(content),
        empty: turn.empty(&call.entry.tool),
        duplicate,
        calls: turn.calls,
        retrieval: turn.retrieval,
        budgets: *core.shared.policy.budgets(core.mode),
        client,
        present: core.shared.site.present.clone(),
        is_nested: !call.ancestors.is_empty(),
        has_read_foreign_text: turn.has_read_foreign_text,
        user_words: turn.user_words.clone(),
        topics: core.shared.site.topics.clone(),
    }
}

/// Calls that a gate answers before the budget do not use it; refused ones after it do.
fn count(data: &mut SessionData, call: &ToolCall, category: Option<Category>, facts: &Facts) {
    let turn = data.ledger.turn();
    if facts.redelivery == Redelivery::New {
        turn.count_seen(&call.entry.content);
    }
    if call.trace.answered_by().is_none_or(uses_budget) {
        turn.calls += 1;
        turn.retrieval += u32::from(category == Some(Category::Retrieval));
    }
}

fn refuse(core: &SessionCore, data: &mut SessionData, mut call: ToolCall, error: ToolError) -> Admission {
    let entry = &call.entry.clone();
    let response = core.refusal(&entry.tool, error);
    if let Some(gate) = call.trace.answered_by()
        && core.snapshot.find(&entry.tool).is_some()
    {
        core.shared.metrics.record_refusal(&entry.tool, gate);
        core.shared.metrics.record_version_refusal(core.snapshot.version());
    }
    // The same id with other content must not replace what the id stood for.
    if let Some(id) = &entry.provider_id
        && data.ledger.redelivery(Some(id), &entry.content) == Redelivery::New
    {
        data.remember_refusal(id, &entry.content, &response, entry.turn);
        data.unsaved.session = true;
    }
    call.audit(core, None, &response, Some("refused"));
    Admission::Answered(answer(call, AnswerSource::Refusal(response)))
}

fn replay(
    core: &SessionCore,
    data: &mut SessionData,
    mut call: ToolCall,
    which: RecordedAnswer,
) -> Admission {
    let entry = &call.entry.clone();
    core.shared.metrics.record_replay(&entry.tool);
    let known = match which {
        RecordedAnswer::ById => entry.provider_id.as_ref().and_then(|id| data.ledger.find_by_provider_id(id)),
        RecordedAnswer::ByContent | RecordedAnswer::Undelivered => {
            data.ledger.find_equal(&entry.content).map(KnownCall::Call)
        }
    };
    let source = match known {
        Some(KnownCall::Call(original)) => {
            if let Some(response) = original.answer() {
                call.audit(core, Some(&original), &response, Some("replayed"));
            }
            AnswerSource::Replay(original)
        }
        Some(KnownCall::Refusal { response, turn, .. }) => {
            let response = Arc::new(replayed(&response, turn));
            call.audit(core, None, &response, Some("replayed"));
            AnswerSource::Refusal(response)
        }
        // The ledger had it a moment ago, under the same lock.
        None => AnswerSource::Refusal(core.refusal(&entry.tool, unknown_tool(&entry.tool))),
    };
    Admission::Answered(answer(call, source))
}

/// The answer of a call that has no entry of its own in the ledger.
fn answer(call: ToolCall, source: AnswerSource) -> PendingAnswer {
    let ToolCall { entry, trace, .. } = call;
    let trace = trace.answered_by().is_some().then_some(trace);
    PendingAnswer { call_id: entry.call_id.clone(), name: entry.tool.clone(), source, trace }
}
