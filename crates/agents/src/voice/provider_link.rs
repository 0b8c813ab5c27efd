//! The provider's end of a call: the connection, the one that is being opened, and what waits to be sent.

use std::sync::Arc;
use std::task::{Context, Poll};

use quarterdeck_contracts::telemetry::ConversationTracer;
use quarterdeck_contracts::{
    LiveConnecting, LiveConnection, LiveError, LiveEvent, LiveInput, LiveModel, LiveResult, LiveSetup,
};

use super::journal::ContextReplay;
use crate::briefing::Brief;

pub(super) struct ProviderLink {
    model: Arc<dyn LiveModel>,
    brief: Brief,
    /// The user's, as a tag.
    language: Option<String>,
    tracer: ConversationTracer,
    live: Option<Box<dyn LiveConnection>>,
    connecting: Option<LiveConnecting>,
    /// A connection that was opened and not accepted yet.
    candidate: Option<Box<dyn LiveConnection>>,
    /// Whether something may wait to be sent.
    is_dirty: bool,
}

#[derive(Debug)]
pub(super) enum ProviderEvent {
    /// There is more to read.
    Received,
    Opened,
    Lost(LiveError),
    /// A connection could not be opened.
    Unreachable(LiveError),
}

impl ProviderLink {
    pub(super) fn new(
        model: Arc<dyn LiveModel>,
        brief: Brief,
        language: Option<String>,
        tracer: ConversationTracer,
    ) -> Self {
        let (live, connecting, candidate) = (None, None, None);
        Self { model, brief, language, tracer, live, connecting, candidate, is_dirty: false }
    }

    pub(super) fn name(&self) -> &str {
        self.model.name()
    }

    pub(super) fn speaks(&self) -> bool {
        self.model.speaks()
    }

    /// How many tokens of instruction and of tools a conversation has, and how many it may have in all.
    pub(super) fn token_budget(&self) -> (u64, u64, u64) {
        (self.brief.system_tokens as u64, self.brief.tool_tokens as u64, self.model.window())
    }

    pub(super) fn live(&mut self) -> Option<&mut Box<dyn LiveConnection>> {
        self.live.as_mut()
    }

    /// Queues something, if there is a connection.
    pub(super) fn send(&mut self, input: LiveInput<'_>) {
        let Some(live) = &mut self.live else { return };
        match input {
            LiveInput::Result(result) => {
                let renamed = self.brief.names.declare_response(result.name, result.response);
                let response = renamed.as_deref().unwrap_or(result.response);
                live.send(LiveInput::Result(LiveResult { response, ..result }));
            }
            other => live.send(other),
        }
        self.is_dirty = true;
    }

    /// An event with the tools' own names.
    pub(super) fn restore_names(&self, event: &mut LiveEvent<'_>) {
        if let LiveEvent::Calls(calls) = event {
            calls.iter_mut().for_each(|call| self.brief.names.restore_call(call));
        }
    }

    /// Whether everything that was queued has been sent.
    pub(super) fn is_flushed(&self) -> bool {
        !self.is_dirty
    }

    /// Begins to connect, beside a connection that still stands.
    pub(super) fn connect(&mut self, replay: ContextReplay) {
        self.connecting = Some(self.model.connect(LiveSetup {
            system: self.brief.system.clone(),
            tools: self.brief.tools.clone(),
            resume: replay.handle,
            history: replay.history,
            asks: replay.asks,
            language: self.language.clone(),
            tracer: self.tracer.clone(),
        }));
    }

    /// Sends what is queued and waits for what happens.
    pub(super) fn poll(&mut self, context: &mut Context<'_>, may_read: bool) -> Poll<ProviderEvent> {
        if let Some(connecting) = &mut self.connecting
            && let Poll::Ready(connected) = connecting.as_mut().poll(context)
        {
            self.connecting = None;
            return Poll::Ready(match connected {
                Ok(live) => {
                    self.candidate = Some(live);
                    ProviderEvent::Opened
                }
                Err(error) => ProviderEvent::Unreachable(error),
            });
        }
        let Some(live) = &mut self.live else { return Poll::Pending };
        if self.is_dirty {
            match live.poll_flush(context) {
                Poll::Ready(Ok(())) => self.is_dirty = false,
                Poll::Ready(Err(error)) => return Poll::Ready(self.lose(error)),
                Poll::Pending => {}
            }
        }
        if !may_read {
            return Poll::Pending;
        }
        match live.poll_fill(context) {
            Poll::Ready(Ok(())) => Poll::Ready(ProviderEvent::Received),
            Poll::Ready(Err(error)) => Poll::Ready(self.lose(error)),
            Poll::Pending => Poll::Pending,
        }
    }

    /// Sends what is queued, as far as that can be done at once.
    pub(super) fn flush_now(&mut self, context: &mut Context<'_>) {
        if self.is_dirty
            && let Some(live) = &mut self.live
            && let Poll::Ready(Ok(())) = live.poll_flush(context)
        {
            self.is_dirty = false;
        }
    }

    /// Takes the connection that was opened in place of the older one.
    pub(super) fn accept(&mut self) {
        let Some(live) = self.candidate.take() else { return };
        if let Some(old) = self.live.replace(live) {
            tokio::spawn(old.close());
        }
        // A setup may have queued the first messages.
        self.is_dirty = true;
    }

    pub(super) fn reject(&mut self) {
        if let Some(live) = self.candidate.take() {
            tokio::spawn(live.close());
        }
    }

    fn lose(&mut self, error: LiveError) -> ProviderEvent {
        self.live = None;
        self.is_dirty = false;
        ProviderEvent::Lost(error)
    }

    pub(super) async fn close(&mut self) {
        self.connecting = None;
        if let Some(live) = self.live.take() {
            live.close().await;
        }
    }
}
