//! The spans of a turn: the turn itself, and each request to a model within it.

use std::time::Duration;

use quarterdeck_contracts::telemetry::names::{self, operation};
use quarterdeck_contracts::telemetry::{AttributeValue, Span, SpanKind, TraceContext, Tracer};
use quarterdeck_contracts::{ChatError, Finish, ModelReply, Usage};
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
    set_usage(span, usage);
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

/// Opens the span of a request to a model, `provider/model`.
pub(super) fn begin_request(tracer: &Tracer, name: &str, turn: &Span) -> Span {
    if !tracer.is_on() {
        return Span::none();
    }
    let (provider, model) = names::provider_and_model(name);
    let operation =
        if provider == names::GEMINI_PROVIDER { operation::GENERATE_CONTENT } else { operation::CHAT };
    let mut span = tracer.begin(turn.context(), SpanKind::Client, || format!("{operation} {model}"));
    span.set(names::OPERATION_NAME, operation);
    span.set(names::PROVIDER_NAME, provider.to_owned());
    span.set(names::REQUEST_MODEL, model.to_owned());
    span.set(names::REQUEST_STREAM, true);
    span
}

pub(super) fn record_first_output(span: &mut Span, after: Duration) {
    span.set(names::RESPONSE_TIME_TO_FIRST_CHUNK, after.as_secs_f64());
}

pub(super) fn record_reply(span: &mut Span, reply: &ModelReply) {
    if !span.is_on() {
        return;
    }
    set_usage(span, reply.usage);
    let calls = reply.message.calls().count();
    let reason = match &reply.finish {
        Finish::Stop if calls > 0 => "tool_calls".to_owned(),
        Finish::Stop => "stop".to_owned(),
        Finish::Length => "length".to_owned(),
        Finish::Filtered => "content_filter".to_owned(),
        Finish::Other(reason) => reason.chars().take(64).collect(),
    };
    span.set(names::RESPONSE_FINISH_REASONS, AttributeValue::Texts(vec![reason.into()]));
}

pub(super) fn record_failure(span: &mut Span, error: &ChatError) {
    span.fail(error.kind.as_str());
}

fn set_usage(span: &mut Span, usage: Usage) {
    span.set(names::USAGE_INPUT_TOKENS, usage.input_tokens);
    span.set(names::USAGE_OUTPUT_TOKENS, usage.output_tokens);
    if usage.cached_tokens > 0 {
        span.set(names::USAGE_CACHE_READ_INPUT_TOKENS, usage.cached_tokens);
    }
    if usage.cache_write_tokens > 0 {
        span.set(names::USAGE_CACHE_CREATION_INPUT_TOKENS, usage.cache_write_tokens);
    }
}
