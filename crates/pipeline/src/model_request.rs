//! One request to the chat model: its reply while it is written, and its span.

use std::task::{Context, Poll};

use quarterdeck_contracts::telemetry::{ConversationTracer, ModelSpan};
use quarterdeck_contracts::{ChatError, ChatEvent, ChatRequest, ChatStream};
use tokio::time::Instant;

use crate::model::Engines;

/// Dropping it cancels the request.
pub(crate) struct ModelRequest {
    reply: ChatStream,
    span: ModelSpan,
    began: Instant,
    has_output: bool,
}

impl ModelRequest {
    pub(crate) fn begin(
        engines: &Engines,
        tracer: &ConversationTracer,
        request: ChatRequest,
        now: Instant,
    ) -> Self {
        let span = tracer.begin_request(engines.chat.name());
        let reply = engines.chat.ask(ChatRequest { span: span.context(), ..request });
        Self { reply, span, began: now, has_output: false }
    }

    /// What comes next. Nothing follows [`ChatEvent::Done`] or an error.
    pub(crate) fn poll(
        &mut self,
        engines: &Engines,
        context: &mut Context<'_>,
        now: Instant,
    ) -> Poll<Result<ChatEvent, ChatError>> {
        self.reply.as_mut().poll_next(context).map(|event| {
            let event = event.unwrap_or_else(|| Err(engines.cut_reply()));
            self.record(&event, now);
            event
        })
    }

    fn record(&mut self, event: &Result<ChatEvent, ChatError>, now: Instant) {
        match event {
            Err(error) => return self.span.record_failure(error),
            Ok(ChatEvent::Done(reply)) => self.span.record_reply(reply),
            Ok(ChatEvent::Text(_) | ChatEvent::Thought(_)) => {}
        }
        // A reply that is nothing but calls has its first output with its end.
        if !std::mem::replace(&mut self.has_output, true) {
            self.span.record_first_output(now.saturating_duration_since(self.began));
        }
    }
}
