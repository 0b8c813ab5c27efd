//! The span of one request to a chat model, which the text agent and the pipeline report alike.

use std::sync::Arc;
use std::time::Duration;

use super::names::{self, operation};
use super::{AttributeValue, Span, SpanKind, TraceContext, Tracer};
use crate::{ChatError, Finish, ModelReply, Usage};

/// How many characters of a provider's own finish reason are kept.
const MAX_REASON_CHARS: usize = 64;

/// An open span of a request; dropping it ends it. Without a reply or a failure the request was cancelled.
#[derive(Debug)]
pub struct ModelSpan(Span);

impl ModelSpan {
    /// Opens the span of a request to `provider/model`.
    pub fn begin(tracer: &Tracer, name: &str, parent: Option<TraceContext>) -> Self {
        if !tracer.is_on() {
            return Self(Span::none());
        }
        let (provider, model) = names::provider_and_model(name);
        let operation =
            if provider == names::GEMINI_PROVIDER { operation::GENERATE_CONTENT } else { operation::CHAT };
        let mut span = tracer.begin(parent, SpanKind::Client, || format!("{operation} {model}"));
        span.set(names::OPERATION_NAME, operation);
        span.set(names::PROVIDER_NAME, provider.to_owned());
        span.set(names::REQUEST_MODEL, model.to_owned());
        span.set(names::REQUEST_STREAM, true);
        Self(span)
    }

    /// For [`ChatRequest::span`](crate::ChatRequest::span).
    pub fn context(&self) -> Option<TraceContext> {
        self.0.context()
    }

    /// Something came for the first time, be it a thought.
    pub fn record_first_output(&mut self, after: Duration) {
        self.0.set(names::RESPONSE_TIME_TO_FIRST_CHUNK, after.as_secs_f64());
    }

    /// The reply is complete.
    pub fn record_reply(&mut self, reply: &ModelReply) {
        if !self.0.is_on() {
            return;
        }
        self.0.set_usage(reply.usage);
        let reason = match &reply.finish {
            Finish::Stop if reply.message.calls().next().is_some() => "tool_calls".to_owned(),
            Finish::Stop => "stop".to_owned(),
            Finish::Length => "length".to_owned(),
            Finish::Filtered => "content_filter".to_owned(),
            Finish::Other(reason) => reason.chars().take(MAX_REASON_CHARS).collect(),
        };
        self.0.set(names::RESPONSE_FINISH_REASONS, AttributeValue::Texts(vec![reason.into()]));
    }

    /// There is no reply, or no more of it.
    pub fn record_failure(&mut self, error: &ChatError) {
        self.0.fail(error.kind.as_str());
    }
}

impl Span {
    /// Says how many tokens were used, by one request or by several.
    pub fn set_usage(&mut self, usage: Usage) {
        self.set(names::USAGE_INPUT_TOKENS, usage.input_tokens);
        self.set(names::USAGE_OUTPUT_TOKENS, usage.output_tokens);
        if usage.cached_tokens > 0 {
            self.set(names::USAGE_CACHE_READ_INPUT_TOKENS, usage.cached_tokens);
        }
        if usage.cache_write_tokens > 0 {
            self.set(names::USAGE_CACHE_CREATION_INPUT_TOKENS, usage.cache_write_tokens);
        }
    }
}

/// Opens spans of requests to chat models in a conversation that has no span of its own: it may last for hours.
#[derive(Debug, Clone, Default)]
pub struct ConversationTracer {
    tracer: Tracer,
    id: Arc<str>,
    channel: &'static str,
}

impl ConversationTracer {
    /// `channel` is the value of `quarterdeck.channel`.
    pub fn new(tracer: Tracer, id: &str, channel: &'static str) -> Self {
        Self { tracer, id: id.into(), channel }
    }

    /// Opens the span of a request to `provider/model`, as a trace of its own. The conversation's id joins it to the others.
    pub fn begin_request(&self, name: &str) -> ModelSpan {
        let ModelSpan(mut span) = ModelSpan::begin(&self.tracer, name, None);
        if span.is_on() {
            span.set(names::CONVERSATION_ID, self.id.to_string());
            span.set(names::CHANNEL, self.channel);
        }
        ModelSpan(span)
    }
}
