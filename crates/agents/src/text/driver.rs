//! Drives one turn: does each step and streams events to the readers.

mod fallback;
mod shortening;

use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use futures_util::StreamExt;
use quarterdeck_contracts::telemetry::{Span, SpanOrigin, TraceContext};
use quarterdeck_contracts::{
    CallArguments, Capability, ChatError, ChatErrorKind, ChatEvent, ChatMessage, ChatRequest, ErrorType,
    ModelCall, ModelReply, ToolError, ToolResponse, ToolUse,
};
use quarterdeck_runtime::gates::Trace;
use quarterdeck_runtime::{Call, ClientEvent, Connection, DeliveryReason, Reply, find_block};
use serde_json::Value;

use super::TextCore;
use super::briefed_model::{BriefedModel, ModelRequest};
use super::context::TurnContext;
use super::conversation::{OpenConfirmation, TurnGuard};
use super::event::{Failure, StreamEvent};
use super::history::{self, TurnRecord};
use super::stream::{AnswerTooLong, EventStream, MAX_ANSWER_BYTES, Pace};
use super::turn_span;
use crate::describe;
use crate::note::{format_notes, late_answer_note};
use crate::turn::{Ending, Step, TurnCall, text_message};

/// How long a model of this machine may take before users are told that it is being loaded.
const LOADING_SIGN_AFTER: Duration = Duration::from_secs(5);

pub(super) struct TurnDriver {
    agent: Arc<TextCore>,
    guard: TurnGuard,
    connection: Connection,
    record: TurnRecord,
    context: TurnContext,
    /// The guides that were given in this turn.
    described: Vec<String>,
    /// Notes about earlier calls, for the next request to the model.
    notes: Vec<String>,
    /// How long it still waits for readers that are behind, all in all: never so long that the model would seem silent.
    pacing: Duration,
    span: Span,
}

/// Why a turn ends before its time.
enum Stop {
    /// The last reader has left. The answer so far.
    Abandoned(String),
    /// The server stops. The answer so far.
    ServerStopped(String),
    /// The model failed. The answer so far.
    Failed(String, ChatError),
    /// The model failed before anything came of it.
    Unanswered(ChatError),
    /// The answer is too long. Its beginning.
    TooLong(String),
    /// A tool has ended the conversation, with this farewell.
    Closed(String),
}

impl TurnDriver {
    pub(super) fn new(
        agent: Arc<TextCore>,
        guard: TurnGuard,
        connection: Connection,
        record: TurnRecord,
        context: TurnContext,
        span: Span,
    ) -> Self {
        let (described, notes, pacing) = (Vec::new(), Vec::new(), agent.settings.round_deadline / 4);
        Self { agent, guard, connection, record, context, described, notes, pacing, span }
    }

    /// Runs until the turn is over or waits for a confirmation.
    pub(super) async fn run(mut self) {
        loop {
            let done = match self.record.turn.next() {
                Step::AskModel(tool_use) => self.ask(tool_use).await,
                Step::RunCalls(calls) => self.run_calls(calls).await,
                Step::AwaitConfirmation | Step::Finish(_) => break,
            };
            if let Err(stop) = done {
                self.stop(stop);
                break;
            }
            self.queue_record();
        }
        self.finish().await;
    }

    /// Asks the model and streams its answer. If nothing came of it, the fallback is asked, once.
    async fn ask(&mut self, tool_use: ToolUse) -> Result<(), Stop> {
        self.emit(StreamEvent::RoundStarted);
        // What an earlier attempt came to must be known before the model decides: told a moment later, it would do it again.
        self.forward_waiting();
        if !self.notes.is_empty() {
            self.record.turn.add_note(format_notes(&std::mem::take(&mut self.notes)));
        }
        self.skip_paused_model();
        let mut reply = self.read_reply(tool_use).await?;
        self.context.names.restore_reply(&mut reply.message);
        let used = reply.usage.input_tokens + reply.usage.output_tokens;
        self.context.record_context_use(&self.agent, used);
        self.record.turn.apply_reply(reply);
        Ok(())
    }

    /// The reply of the model whose turn it is. While nothing has come, a request that is too long for it is made shorter, and
    /// a model that fails makes room for the fallback: each once.
    async fn read_reply(&mut self, tool_use: ToolUse) -> Result<ModelReply, Stop> {
        let reply = match self.stream_reply(tool_use).await {
            Err(Stop::Unanswered(error)) if self.shorten_after(&error) => self.stream_reply(tool_use).await,
            other => other,
        };
        match reply {
            Err(Stop::Unanswered(error)) if self.use_fallback(error.kind) => {
                self.stream_reply(tool_use).await
            }
            other => other,
        }
    }

    /// Streams the reply of the model whose turn it is.
    async fn stream_reply(&mut self, tool_use: ToolUse) -> Result<ModelReply, Stop> {
        let agent = self.agent.clone();
        let asked = self.context.asked.of(&agent);
        let mut request = ModelRequest::begin(&agent.orchestrator, asked, &self.span);
        let mut said = String::new();
        let failure = {
            let mut stream = asked.model.ask(self.request(tool_use, request.span().context()));
            let mut interrupted = pin!(interruption(&self.guard.stream, &agent));
            let mut deadline = pin!(tokio::time::sleep(self.agent.settings.round_deadline));
            let mut loading = pin!(tokio::time::sleep(LOADING_SIGN_AFTER));
            let mut may_be_loading = asked.model.may_be_loading();
            let mut event = pin!(next_event(&self.connection));
            'reply: loop {
                let item = tokio::select! {
                    // What ends the turn comes first: a model whose next token is always there must not keep it from ending.
                    biased;
                    stop = &mut interrupted => return Err(stop(said)),
                    () = &mut deadline => break stream_error(asked, ChatErrorKind::Silent),
                    item = stream.next() => item,
                    happened = &mut event => {
                        event.set(next_event(&self.connection));
                        forward_event(&self.guard, &mut self.notes, happened, &said)?;
                        continue;
                    }
                    () = &mut loading, if may_be_loading => {
                        may_be_loading = false;
                        self.emit(loading_sign());
                        continue;
                    }
                };
                may_be_loading = false;
                if matches!(item, Some(Ok(_))) {
                    request.record_output();
                }
                let words = match item {
                    Some(Ok(ChatEvent::Text(text))) => StreamEvent::Text(text.into()),
                    Some(Ok(ChatEvent::Thought(text))) => StreamEvent::Thought(text.into()),
                    Some(Ok(ChatEvent::Done(reply))) => {
                        request.answered(asked, &reply);
                        return Ok(reply);
                    }
                    Some(Err(error)) => break error,
                    None => break stream_error(asked, ChatErrorKind::Cut),
                };
                for piece in words.pieces() {
                    match emit_words(&self.guard.stream, piece, &mut said) {
                        Ok(Pace::KeptUp) => continue,
                        Ok(Pace::Behind) => {}
                        Err(AnswerTooLong) => return Err(Stop::TooLong(said)),
                    }
                    tokio::select! {
                        () = keep_pace(&self.guard.stream, &mut self.pacing, agent.settings.reader_timeout) => {}
                        stop = &mut interrupted => return Err(stop(said)),
                        () = &mut deadline => break 'reply stream_error(asked, ChatErrorKind::Silent),
                    }
                }
            }
        };
        Err(stop_of(request, asked, failure, said))
    }

    /// Hands the calls of a message to the orchestrator and passes on what they come to.
    async fn run_calls(&mut self, calls: Vec<TurnCall>) -> Result<(), Stop> {
        let mut places = Vec::new();
        let mut submitted = Vec::new();
        for (place, shown) in calls.iter().enumerate() {
            self.emit(StreamEvent::ToolCall(Arc::new(shown.clone())));
            if self.context.describes && shown.call.name == describe::NAME {
                let now = self.agent.orchestrator.now();
                let response =
                    describe::answer(&self.guard.conversation.session, &shown.call, &mut self.described, now);
                self.answered(place, &shown.id, response, None);
            } else {
                places.push(place);
                submitted.push(as_call(shown).with_origin(SpanOrigin::within(self.span.context())));
            }
        }
        let mut batch = self.connection.submit(submitted);
        let mut places = places.into_iter();
        loop {
            let reply = tokio::select! {
                biased;
                event = next_event(&self.connection) => {
                    forward_event(&self.guard, &mut self.notes, event, "")?;
                    continue;
                }
                reply = batch.next() => reply,
                stop = interruption(&self.guard.stream, &self.agent) => {
                    // A write that has begun finishes; its outcome is reported when the user comes back.
                    self.guard.conversation.session.interrupt();
                    return Err(stop(String::new()));
                }
            };
            let (Some(reply), Some(place)) = (reply, places.next()) else { break };
            match reply {
                Reply::Answer(answer) => {
                    let (response, trace) = (answer.response.clone(), answer.trace.clone());
                    self.answered(place, &calls[place].id, response, trace);
                    answer.mark_delivered();
                }
                Reply::AwaitingConfirmation { .. } => self.record.turn.await_confirmation(place),
            }
        }
        drop(batch);
        self.forward_waiting();
        self.find_new_block(&calls).await.map_or(Ok(()), |farewell| Err(Stop::Closed(farewell)))
    }

    fn answered(&mut self, place: usize, id: &str, response: Arc<ToolResponse>, trace: Option<Trace>) {
        let gates = trace.map(Arc::new);
        self.emit(StreamEvent::ToolResult {
            id: id.into(),
            response: response.clone(),
            gates: gates.clone(),
        });
        self.record.turn.record_answer(place, response);
        self.record.record_gates(id, gates);
    }

    /// The farewell, if a tool has blocked the client. A blocked client does not reach a model.
    async fn find_new_block(&self, calls: &[TurnCall]) -> Option<String> {
        let session = &self.guard.conversation.session;
        let can_block = |call: &TurnCall| {
            let tool = session.snapshot().find(&call.call.name);
            tool.is_some_and(|tool| {
                tool.metadata().effective_capabilities().contains(&Capability::MODERATION)
            })
        };
        if !calls.iter().any(can_block) {
            return None;
        }
        let now_ms = self.agent.orchestrator.now_ms();
        let block = find_block(&**self.agent.orchestrator.store(), session.client(), now_ms).await;
        block.ok().flatten().map(|block| block.message)
    }

    fn request(&self, tool_use: ToolUse, span: Option<TraceContext>) -> ChatRequest {
        let mut messages = match &self.context.transcript {
            Some(transcript) => transcript.clone(),
            None => self.guard.conversation.lock().before(self.record.number, self.context.trimmed_turns),
        };
        messages.extend(self.record.turn.messages().iter().cloned());
        self.context.names.declare(&mut messages);
        ChatRequest {
            system: self.context.system.clone(),
            messages: drop_leading_answers(messages),
            tools: self.context.tools.clone(),
            tool_use,
            span,
        }
    }

    fn stop(&mut self, stop: Stop) {
        let (said, ending, failure) = match stop {
            Stop::Abandoned(said) => (said, Ending::Aborted, None),
            Stop::ServerStopped(said) => (said, Ending::Aborted, Some(Failure::of_stopped_server())),
            Stop::Unanswered(error) => return self.stop(Stop::Failed(String::new(), error)),
            Stop::Failed(said, error) => {
                tracing::warn!(
                    session = self.guard.conversation.session.id(), turn = self.record.number, kind = ?error.kind,
                    error = %error, "model request failed"
                );
                (said, Ending::Failed, Some(Failure::of(&error)))
            }
            Stop::TooLong(said) => {
                tracing::warn!(
                    session = self.guard.conversation.session.id(),
                    turn = self.record.number,
                    max_bytes = MAX_ANSWER_BYTES,
                    "answer too long, cut"
                );
                (said, Ending::Cut, None)
            }
            Stop::Closed(farewell) => {
                self.emit(StreamEvent::RoundStarted);
                self.emit(StreamEvent::Text(farewell.as_str().into()));
                (farewell, Ending::Closed, None)
            }
        };
        let session = &self.guard.conversation.session;
        let now = self.agent.orchestrator.now();
        let said =
            (!said.is_empty()).then(|| text_message(self.context.asked.of(&self.agent).model.name(), said));
        self.record.turn.stop(said, ending, |tool| {
            let message =
                "The user left before this was answered. If it did something, that will be reported.";
            Arc::new(session.snapshot().refuse(tool, ToolError::new(ErrorType::Cancelled, message), now))
        });
        if let Some(failure) = failure {
            self.emit(StreamEvent::Failed(failure));
        }
    }

    /// Writes the turn down and says that it is over, or waits.
    async fn finish(mut self) {
        self.forward_waiting();
        self.guard.conversation.session.complete_turn();
        self.guard.conversation.lock().apply_early_resolutions(&mut self.record);
        let ending = self.record.turn.ending().cloned();
        if ending == Some(Ending::Empty) {
            self.emit(StreamEvent::Failed(Failure {
                kind: ErrorType::Transient,
                message: "The model gave no answer. Please ask again.".into(),
                retryable: true,
                cause: Some(ChatErrorKind::Garbled),
                retry_after: None,
            }));
        }
        // Before the session is given away: what is queued for one that is not held is dropped.
        self.agent.record_transcript(&self.guard.conversation, &self.record);
        self.store_record(ending.is_some()).await;
        let usage = self.record.turn.usage();
        turn_span::end_turn(&mut self.span, ending.as_ref(), usage);
        {
            let mut state = self.guard.conversation.lock();
            match self.context.transcript {
                None => {
                    state.apply_early_resolutions(&mut self.record);
                    state.keep(self.record.clone());
                }
                Some(_) => state.set_transcribed(self.record.clone()),
            }
            // What came too late for this turn is for the next one.
            state.notes.append(&mut self.notes);
        }
        self.guard.conversation.touch(self.agent.orchestrator.now_ms());
        self.emit(StreamEvent::Finished { ending, usage });
        // The next turn may begin as soon as the guard is free, and must find the session without a connection.
        let Self { agent, guard, connection, .. } = self;
        let id = guard.conversation.session.id().to_owned();
        drop(connection);
        drop(guard);
        agent.evict_if_large(&id);
    }

    /// Writes the turn down. If it is over, its session is given away in the same commit, so that the next turn may be on any
    /// node.
    async fn store_record(&mut self, is_over: bool) {
        if self.context.transcript.is_some() || self.guard.conversation.is_deleted() {
            return;
        }
        let session = &self.guard.conversation.session;
        let commit = history::put_turn(session.id(), &self.record, self.agent.expiry_ms());
        let stored = if is_over && session.is_leased() && self.guard.conversation.is_settled() {
            // What came too late for this turn is for the next one, wherever that is.
            session.add_notes(std::mem::take(&mut self.notes));
            session.commit_and_release(commit).await.map(drop)
        } else {
            session.commit(commit).await.map(drop)
        };
        if let Err(error) = stored {
            tracing::error!(session = session.id(), error = %error, "turn write failed");
        }
    }

    /// Leaves a trace of a turn that is not over, in case the process ends before it is. One that is over is written down at
    /// once.
    fn queue_record(&self) {
        let is_over = self.record.turn.ending().is_some();
        if is_over || self.context.transcript.is_some() || self.guard.conversation.is_deleted() {
            return;
        }
        let session = &self.guard.conversation.session;
        session.store_soon(history::put_turn(session.id(), &self.record, self.agent.expiry_ms()));
    }

    fn forward_waiting(&mut self) {
        while let Some(event) = self.connection.try_next_event() {
            // The turn is over anyway.
            let _ = forward_event(&self.guard, &mut self.notes, event, "");
        }
    }

    fn emit(&self, event: StreamEvent) {
        // Only text can be too much, and that is checked where it comes in.
        let _ = self.guard.stream.push(event);
    }
}

/// Waits until a turn has to end early, and says how it ends with the answer so far.
async fn interruption(stream: &EventStream, agent: &TextCore) -> fn(String) -> Stop {
    tokio::select! {
        () = stream.abandoned() => Stop::Abandoned,
        () = agent.stopped() => Stop::ServerStopped,
    }
}

/// Waits until readers have caught up, as long as there is time to wait for them.
async fn keep_pace(stream: &EventStream, pacing: &mut Duration, reader_timeout: Duration) {
    while stream.is_ahead() && !pacing.is_zero() {
        let began = tokio::time::Instant::now();
        let timeout = reader_timeout.min(*pacing);
        let is_read = tokio::time::timeout(timeout, stream.wait_for_reader()).await.is_ok();
        *pacing = if is_read { pacing.saturating_sub(began.elapsed()) } else { Duration::ZERO };
    }
}

/// Why a turn stops whose model has failed.
fn stop_of(mut request: ModelRequest, asked: &BriefedModel, failure: ChatError, said: String) -> Stop {
    request.failed(asked, &failure);
    if request.has_output() { Stop::Failed(said, failure) } else { Stop::Unanswered(failure) }
}

fn stream_error(asked: &BriefedModel, kind: ChatErrorKind) -> ChatError {
    let model = asked.model.name().to_owned();
    let detail = "the stream ended without a reply".into();
    ChatError { kind, model, detail, retry_after: None, context: None }
}

/// A model of this machine has not begun: most likely it is being read from the disk, which takes minutes.
fn loading_sign() -> StreamEvent {
    let message =
        "The model is being loaded, or reads the conversation. On this machine that can take minutes.";
    StreamEvent::Data { name: "model-loading".into(), value: serde_json::json!({ "message": message }) }
}

/// Streams text, and adds it to the answer unless that would be too long.
fn emit_words(stream: &EventStream, words: StreamEvent, said: &mut String) -> Result<Pace, AnswerTooLong> {
    let before = said.len();
    if let StreamEvent::Text(text) = &words {
        said.push_str(text);
    }
    stream.push(words).inspect_err(|_| said.truncate(before))
}

/// The next event of a connection; waits for ever once another connection has taken over.
async fn next_event(connection: &Connection) -> ClientEvent {
    match connection.next_event().await {
        Some(event) => event,
        None => std::future::pending().await,
    }
}

/// Streams a session event to the readers, and notes what the model must know. It ends the turn if the client was blocked,
/// or an operator has ended the session.
fn forward_event(
    guard: &TurnGuard,
    notes: &mut Vec<String>,
    event: ClientEvent,
    said: &str,
) -> Result<(), Stop> {
    let stop = match &event {
        ClientEvent::Blocked { message } => return Err(Stop::Closed(message.to_string())),
        ClientEvent::End(_) => Err(Stop::Abandoned(said.to_owned())),
        _ => Ok(()),
    };
    let event = match event {
        ClientEvent::Message(mut value) => {
            let name = value["type"].as_str().unwrap_or("message").replace('_', "-");
            if let Value::Object(fields) = &mut value {
                fields.remove("type");
            }
            StreamEvent::Data { name: name.into(), value }
        }
        ClientEvent::Progress { call_id, text } => StreamEvent::Progress { id: call_id, text: text.into() },
        ClientEvent::Partial { call_id, response } => StreamEvent::PartialResult { id: call_id, response },
        ClientEvent::Confirmation { call_id, request } => {
            let request = Arc::new(request);
            let mut state = guard.conversation.lock();
            state.confirmations.retain(|confirmation| confirmation.call_id != call_id);
            state.confirmations.push(OpenConfirmation { call_id: call_id.clone(), request: request.clone() });
            StreamEvent::ConfirmationRequest { id: call_id, request }
        }
        ClientEvent::Answer { reason, answer } => {
            let (id, name, response) = (answer.call_id.clone(), answer.name.clone(), answer.response.clone());
            let gates = answer.trace.clone().map(Arc::new);
            // The orchestrator has notes of its own for what was decided or abandoned, and for tasks.
            if reason == DeliveryReason::Late {
                notes.push(late_answer_note(&name, &response));
            }
            answer.mark_delivered();
            StreamEvent::LateToolResult { id, name, response, gates }
        }
        ClientEvent::End(end) => StreamEvent::Data {
            name: "session-end".into(),
            value: serde_json::json!({ "reason": end.reason, "message": end.closing_message }),
        },
        ClientEvent::Blocked { .. } => return stop,
    };
    let _ = guard.stream.push(event);
    stop
}

fn as_call(shown: &TurnCall) -> Call {
    let ModelCall { name, arguments, .. } = &shown.call;
    let arguments = match arguments {
        CallArguments::Json(value) => value.clone(),
        // The first gate refuses what is no object and says so.
        CallArguments::Broken(text) => Value::String(text.clone()),
    };
    Call::new(name.clone(), arguments).with_id(shown.id.clone())
}

/// A conversation begins with a user message. When older turns were trimmed, an answer may come first; it is dropped.
fn drop_leading_answers(mut messages: Vec<ChatMessage>) -> Vec<ChatMessage> {
    let first = messages.iter().position(|message| matches!(message, ChatMessage::User { .. }));
    messages.drain(..first.unwrap_or(0));
    messages
}
