//! The spans of a spoken conversation: each wait for an answer, and each outage of the provider. Tool calls have their own, and so
//! have the requests of a pipeline to its model.

use std::time::Duration;

use quarterdeck_contracts::telemetry::names::{self, operation};
use quarterdeck_contracts::telemetry::{ConversationTracer, Span, SpanKind, Tracer};
use quarterdeck_runtime::Session;

use crate::AGENT_NAME;

const CHANNEL: &str = "voice";

/// For a model that asks others.
pub(super) fn conversation_tracer(tracer: &Tracer, session: &Session) -> ConversationTracer {
    ConversationTracer::new(tracer.clone(), session.id(), CHANNEL)
}

/// Records the wait from the end of the user's speech to the first audio of the answer, which comes now.
pub(super) fn record_first_audio(tracer: &Tracer, session: &Session, model: &str, latency: Duration) {
    if !tracer.is_on() {
        return;
    }
    let name = || format!("{} {AGENT_NAME}", operation::INVOKE_AGENT);
    let mut span = tracer.begin(None, SpanKind::Internal, name);
    span.set_begun_ago(latency);
    span.set(names::OPERATION_NAME, operation::INVOKE_AGENT);
    span.set(names::AGENT_NAME, AGENT_NAME);
    span.set(names::AGENT_VERSION, session.snapshot().version().to_owned());
    span.set(names::OUTPUT_TYPE, "speech");
    span.set(names::FIRST_AUDIO_SECONDS, latency.as_secs_f64());
    describe(&mut span, session, model);
}

/// Opens the span of an outage, which ends when the provider is there again. It is an error, so it is always kept.
pub(super) fn begin_reconnect(tracer: &Tracer, session: &Session, model: &str, code: String) -> Span {
    if !tracer.is_on() {
        return Span::none();
    }
    let (_, of_provider) = names::provider_and_model(model);
    let name = || format!("{} {of_provider}", operation::RECONNECT);
    let mut span = tracer.begin(None, SpanKind::Client, name);
    span.set(names::OPERATION_NAME, operation::RECONNECT);
    describe(&mut span, session, model);
    span.fail(code);
    span
}

fn describe(span: &mut Span, session: &Session, model: &str) {
    let (provider, model) = names::provider_and_model(model);
    span.set(names::PROVIDER_NAME, provider.to_owned());
    span.set(names::REQUEST_MODEL, model.to_owned());
    span.set(names::CONVERSATION_ID, session.id().to_owned());
    span.set(names::CHANNEL, CHANNEL);
}
