//! The span of a turn. Requests to a model and calls are within it.

use quarterdeck_contracts::Usage;
use quarterdeck_contracts::telemetry::names::{self, operation};
use quarterdeck_contracts::telemetry::{Span, SpanKind, TraceContext, Tracer};
use quarterdeck_runtime::Session;

use crate::AGENT_NAME;
use crate::turn::Ending;

/// Opens the span of a turn.
pub(super) fn begin_turn(
    tracer: &Tracer,
    session: &Session,
    turn: u64,
    model: &str,
    parent: Option<TraceContext>,
) -> Span {
    if !tracer.is_on() {
        return Span::none();
    }
    let mut span =
        tracer.begin(parent, SpanKind::Internal, || format!("{} {AGENT_NAME}", operation::INVOKE_AGENT));
    let (provider, model) = names::provider_and_model(model);
    span.set(names::OPERATION_NAME, operation::INVOKE_AGENT);
    span.set(names::AGENT_NAME, AGENT_NAME);
    span.set(names::AGENT_VERSION, session.snapshot().version().to_owned());
    span.set(names::PROVIDER_NAME, provider.to_owned());
    span.set(names::REQUEST_MODEL, model.to_owned());
    span.set(names::CONVERSATION_ID, session.id().to_owned());
    span.set(names::CHANNEL, "text");
    span.set(names::TURN, turn);
    span
}

/// Says how a turn ended. One that waits for the user has no ending.
pub(super) fn end_turn(span: &mut Span, ending: Option<&Ending>, usage: Usage) {
    if !span.is_on() {
        return;
    }
    span.set_usage(usage);
    let ending = match ending {
        None => "waiting",
        Some(Ending::Answered) => "answered",
        Some(Ending::Cut) => "cut",
        Some(Ending::Filtered) => "filtered",
        Some(Ending::Empty) => "empty",
        Some(Ending::Aborted) => "aborted",
        Some(Ending::Failed) => "failed",
        Some(Ending::Closed) => "closed",
    };
    span.set(names::TURN_ENDING, ending);
    if matches!(ending, "failed" | "empty") {
        span.fail(ending);
    }
}
