//! The span of a call: who made it, what the gates decided about it, and what it came to.
//!
//! Names and descriptions come from the registry alone: what a model writes, be it the name of a tool that does not exist,
//! may be anything. Arguments and results are in it only where content is captured, without what the audit log hides.

use quarterdeck_contracts::telemetry::names::{self, operation};
use quarterdeck_contracts::telemetry::{AttributeValue, Span, SpanKind, SpanOrigin, TraceContext};
use quarterdeck_contracts::{Category, ConfirmationRequest, Mode, Outcome, ToolResponse};
use serde_json::{Value, json};

use crate::confirmation::hash;
use crate::gates::{GateOutcome, Trace};
use crate::ledger::Entry;
use crate::redact::{SensitiveArguments, redacted};
use crate::session::SessionCore;

/// The name of every tool that does not exist.
const UNKNOWN_TOOL: &str = "unknown_tool";

/// The span of a call. It ends when it is dropped.
#[derive(Debug, Default)]
pub(crate) struct ToolSpan(Span);

/// A call that has its answer.
pub(super) struct CallEnd<'a> {
    pub(super) tool: &'a str,
    pub(super) args: &'a Value,
    pub(super) trace: &'a Trace,
    pub(super) response: &'a ToolResponse,
}

/// What is known of the call that asked the user.
pub(crate) struct AskedSpan<'a> {
    /// The id of the confirmation.
    pub(crate) approval: &'a str,
    pub(crate) link: Option<TraceContext>,
    pub(crate) opened_ms: Option<u64>,
}

impl ToolSpan {
    pub(super) fn begin(core: &SessionCore, entry: &Entry, origin: SpanOrigin) -> Self {
        let mut span = Self::begin_unread(core, &entry.tool, &entry.call_id, origin);
        span.0.set(names::TURN, entry.turn);
        span
    }

    /// The span of a call that no gate sees.
    pub(super) fn begin_unread(core: &SessionCore, tool: &str, call_id: &str, origin: SpanOrigin) -> Self {
        let tracer = &core.shared.site.tracer;
        if !tracer.is_on() {
            return Self::default();
        }
        let known = core.snapshot.find(tool).map(|tool| tool.metadata());
        let name = known.map_or(UNKNOWN_TOOL, |metadata| metadata.tool_id.as_str());
        let kind = if origin.request.is_some() { SpanKind::Server } else { SpanKind::Internal };
        let operation = origin.request.unwrap_or(operation::EXECUTE_TOOL);
        let mut span = tracer.begin(origin.parent, kind, || format!("{operation} {name}"));
        span.set(names::OPERATION_NAME, operation::EXECUTE_TOOL);
        span.set(names::TOOL_NAME, name.to_owned());
        span.set(names::TOOL_CALL_ID, call_id.to_owned());
        if let Some(metadata) = known {
            let is_retrieval = metadata.category == Category::Retrieval;
            span.set(names::TOOL_TYPE, if is_retrieval { "datastore" } else { "function" });
            span.set(names::TOOL_VERSION, metadata.version.to_string());
        }
        span.set(names::CONVERSATION_ID, core.id.to_string());
        span.set(names::CHANNEL, if core.mode == Mode::Voice { "voice" } else { "text" });
        for (name, value) in origin.attributes {
            span.set(name, value.clone());
        }
        span.link(origin.link);
        Self(span)
    }

    /// The span of a call that the user was asked about, once they have decided. The wait is a link, and not a part of
    /// it: it can take days.
    pub(crate) fn begin_decided(
        core: &SessionCore,
        entry: &Entry,
        asked: AskedSpan<'_>,
        parent: Option<TraceContext>,
    ) -> Self {
        let mut span =
            Self::begin(core, entry, SpanOrigin { link: asked.link, ..SpanOrigin::within(parent) });
        if span.0.is_on() {
            span.0.set(names::APPROVAL_ID, asked.approval.to_owned());
            let waited_ms = asked.opened_ms.map(|opened_ms| core.now_ms().saturating_sub(opened_ms));
            span.0.set_some(names::APPROVAL_WAIT, waited_ms.map(|waited_ms| waited_ms as f64 / 1_000.0));
        }
        span
    }

    /// What the spans of its parts have as their parent.
    pub(crate) fn context(&self) -> Option<TraceContext> {
        self.0.context()
    }

    pub(super) fn captures_content(&self) -> bool {
        self.0.captures_content()
    }

    /// The user is asked about it.
    pub(crate) fn record_asked(&mut self, request: &ConfirmationRequest) {
        if !self.0.is_on() {
            return;
        }
        self.0.set(names::POLICY_DECISION, "asked");
        self.0.set(names::POLICY_RULE, "confirmation");
        let token = request.token.as_ref();
        self.0.set_some(names::APPROVAL_ID, token.map(|token| hash(token.expose())));
    }

    /// The user does not want it.
    pub(crate) fn record_denied(&mut self, response: &ToolResponse) {
        self.0.set(names::POLICY_DECISION, "denied");
        self.0.set(names::POLICY_RULE, "confirmation");
        self.record_outcome(response);
    }

    /// The call has its answer.
    pub(super) fn record_end(&mut self, core: &SessionCore, end: CallEnd<'_>) {
        if !self.0.is_on() {
            return;
        }
        self.record_gates(end.trace);
        self.record_outcome(end.response);
        if self.0.captures_content() {
            self.record_content(core, &end);
        }
    }

    fn record_gates(&mut self, trace: &Trace) {
        for step in &trace.steps {
            let decision = decision_name(step.decision);
            let rule = AttributeValue::Text(step.gate.clone().into());
            self.0.add_event(
                names::GATE_EVENT,
                [(names::POLICY_RULE, rule), (names::POLICY_DECISION, decision.into())],
            );
        }
        let answered_by = trace.answered_by();
        let decided = answered_by.and_then(|_| trace.steps.last()).map(|step| decision_name(step.decision));
        let approved = trace.steps.iter().find(|step| step.decision == GateOutcome::Approved);
        let decision = decided.unwrap_or(if approved.is_some() { "approved" } else { "allowed" });
        self.0.set(names::POLICY_DECISION, decision);
        let rule = answered_by.or(approved.map(|step| step.gate.as_str()));
        self.0.set_some(names::POLICY_RULE, rule.map(str::to_owned));
    }

    fn record_outcome(&mut self, response: &ToolResponse) {
        if let Outcome::Failure(error) = &response.outcome {
            self.0.fail(error.kind.as_str());
        }
        let retries = response.meta.retry_count.map(u64::from);
        self.0.set_some(names::TOOL_RETRIES, retries);
    }

    fn record_content(&mut self, core: &SessionCore, end: &CallEnd<'_>) {
        let sensitive = core.snapshot.find(end.tool).map(|tool| tool.sensitive());
        self.0.set(names::TOOL_CALL_ARGUMENTS, redacted(sensitive, end.args).to_string());
        // What a tool makes of sensitive arguments may hold parts of them, which cannot be found. Of a tool that does not exist
        // it is not known what is sensitive.
        if sensitive.is_some_and(SensitiveArguments::is_empty) {
            let result = match &end.response.outcome {
                Outcome::Success(data) => data.clone(),
                Outcome::Failure(error) => json!({ "error": error.kind, "message": error.message }),
            };
            self.0.set(names::TOOL_CALL_RESULT, result.to_string());
        }
    }
}

fn decision_name(outcome: GateOutcome) -> &'static str {
    match outcome {
        GateOutcome::Changed => "changed",
        GateOutcome::Reserved => "reserved",
        GateOutcome::Replayed => "replayed",
        GateOutcome::Refused => "refused",
        GateOutcome::Asked => "asked",
        GateOutcome::Approved => "approved",
        GateOutcome::Scheduled => "scheduled",
        GateOutcome::Passed => "passed",
        GateOutcome::NotReached => "not_reached",
    }
}
