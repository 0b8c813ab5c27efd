//! A model and a client that do what a test wants, and the voice agent between them. The clock stands still.

use std::collections::{BTreeMap, VecDeque};
use std::future::Future;
use std::pin::Pin;
use std::sync::{Arc, Mutex};
use std::task::{Context as TaskContext, Poll, Waker};
use std::time::{Duration, SystemTime};

use quarterdeck_agents::voice::{
    CallRequest, ClientLink, ClientMessage, CloseReason, Disconnect, Parts, ServerMessage, Settings,
    VoiceAgent,
};
use quarterdeck_agents::{Prompts, Situation, text::User};
use quarterdeck_contracts::handler::{
    BoxFuture, CapabilityCall, Context, Handler, HandlerHost, HandlerToLoad, HostError, Limits,
};
use quarterdeck_contracts::{
    Audio, CallArguments, Capability, Commit, HandlerAnswer, LiveConnecting, LiveConnection, LiveError,
    LiveErrorKind, LiveEvent, LiveInput, LiveModel, LiveSetup, ModelCall, Outcome, Provider, Speaker, Store,
    Table, TranscriptPiece, TranscriptStage,
};
use quarterdeck_runtime::{Client, Orchestrator, Registry};
use quarterdeck_store::MemoryStore;
use serde_json::{Value, json};
use tokio::sync::mpsc;

use crate::world::{ManualClock, registry_of};

/// What a client sends, for keeps.
#[derive(Debug, Clone)]
pub(crate) enum ClientAction {
    Audio(Vec<u8>),
    Text(String),
    Confirm(String, bool),
    Drained,
    Interrupt,
    Stop,
}

/// The test's end of a line.
pub(crate) struct FakeClient {
    says: Option<mpsc::UnboundedSender<ClientAction>>,
    received: Arc<Mutex<Vec<String>>>,
    tokens: Arc<Mutex<Vec<String>>>,
    /// Whether the client takes what it is sent.
    reads: Arc<Mutex<bool>>,
    waiting: Arc<Mutex<usize>>,
    /// The task that waits for the client to read.
    flushing: Arc<Mutex<Option<Waker>>>,
}

/// The agent's end of it.
struct FakeLink {
    from: mpsc::UnboundedReceiver<ClientAction>,
    arrived: VecDeque<ClientAction>,
    lent: Option<ClientAction>,
    received: Arc<Mutex<Vec<String>>>,
    tokens: Arc<Mutex<Vec<String>>>,
    reads: Arc<Mutex<bool>>,
    waiting: Arc<Mutex<usize>>,
    flushing: Arc<Mutex<Option<Waker>>>,
}

impl FakeClient {
    pub(crate) fn new() -> (Self, Box<dyn ClientLink>) {
        let (says, from) = mpsc::unbounded_channel();
        let client = Self {
            says: Some(says),
            received: Arc::default(),
            tokens: Arc::default(),
            reads: Arc::new(Mutex::new(true)),
            waiting: Arc::default(),
            flushing: Arc::default(),
        };
        let line = FakeLink {
            from,
            arrived: VecDeque::new(),
            lent: None,
            received: client.received.clone(),
            tokens: client.tokens.clone(),
            reads: client.reads.clone(),
            waiting: client.waiting.clone(),
            flushing: client.flushing.clone(),
        };
        (client, Box::new(line))
    }

    pub(crate) async fn send(&self, action: ClientAction) {
        self.says.as_ref().unwrap().send(action).unwrap();
        run_until_idle().await;
    }

    pub(crate) async fn send_text(&self, text: &str) {
        self.send(ClientAction::Text(text.to_owned())).await;
    }

    /// Its network is gone.
    pub(crate) async fn disconnect(&mut self) {
        self.says = None;
        run_until_idle().await;
    }

    /// What it was told since the last look, one line each.
    pub(crate) fn received(&self) -> String {
        let mut received = std::mem::take(&mut *self.received.lock().unwrap()).join("\n");
        received.push('\n');
        received
    }

    pub(crate) fn token(&self) -> String {
        self.tokens.lock().unwrap().last().expect("a confirmation request").clone()
    }

    pub(crate) fn stop_reading(&self) {
        *self.reads.lock().unwrap() = false;
    }

    pub(crate) async fn resume_reading(&self) {
        *self.reads.lock().unwrap() = true;
        self.flushing.lock().unwrap().take().inspect(Waker::wake_by_ref);
        run_until_idle().await;
    }

    pub(crate) fn queued_bytes(&self) -> usize {
        *self.waiting.lock().unwrap()
    }
}

impl ClientLink for FakeLink {
    fn poll_fill(&mut self, context: &mut TaskContext<'_>) -> Poll<Result<(), Disconnect>> {
        match self.from.poll_recv(context) {
            Poll::Ready(Some(says)) => {
                self.arrived.push_back(says);
                Poll::Ready(Ok(()))
            }
            Poll::Ready(None) => Poll::Ready(Err(Disconnect::Lost)),
            Poll::Pending => Poll::Pending,
        }
    }

    fn next(&mut self) -> Option<ClientMessage<'_>> {
        self.lent = Some(self.arrived.pop_front()?);
        Some(match self.lent.as_ref()? {
            ClientAction::Audio(bytes) => ClientMessage::Audio(Audio::Pcm(bytes.as_slice().into())),
            ClientAction::Text(text) => ClientMessage::Text(text.as_str()),
            ClientAction::Confirm(token, is_approved) => {
                ClientMessage::Confirm { token, is_approved: *is_approved }
            }
            ClientAction::Drained => ClientMessage::Drained,
            ClientAction::Interrupt => ClientMessage::Interrupt,
            ClientAction::Stop => ClientMessage::Stop,
        })
    }

    fn send(&mut self, received: ServerMessage<'_>) {
        let line = match received {
            ServerMessage::Ready { is_resumed, provider, .. } => {
                format!("ready {provider} resumed={is_resumed}")
            }
            ServerMessage::Audio(audio) => {
                *self.waiting.lock().unwrap() += audio.samples_len();
                format!("audio {}", audio.samples_len())
            }
            ServerMessage::Transcript { by, text, is_final, .. } => {
                let by = if by == Speaker::User { "user" } else { "model" };
                format!("{by}{}: {text}", if is_final { "" } else { " (interim)" })
            }
            ServerMessage::ToolCall { id, name, args } => format!("call {id} {name} {args}"),
            ServerMessage::ToolResult { id, response, .. } => {
                format!("result {id} {}", outcome(&response.outcome))
            }
            ServerMessage::ConfirmationRequest { id, request } => {
                let token = request.token.as_ref().expect("a client gets the token");
                self.tokens.lock().unwrap().push(token.expose().to_owned());
                format!("asked {id} {}", request.preview)
            }
            ServerMessage::Progress { id, text } => format!("progress {id} {text}"),
            ServerMessage::Interrupted => "interrupted".into(),
            ServerMessage::TurnComplete => "turn complete".into(),
            ServerMessage::Blocked(block) => format!("blocked: {}", block.message),
            ServerMessage::End(end) => format!(
                "end {} closing={} text={}",
                end.reason,
                end.closing_message.as_deref().unwrap_or("-"),
                end.text_response.as_deref().unwrap_or("-")
            ),
            ServerMessage::Error(error) => format!("error {}: {}", error.kind, error.message),
            ServerMessage::GoingAway { in_ms } => format!("going away in {in_ms}"),
            ServerMessage::Partial { id, response } => format!("partial {id} {}", json!(response)["data"]),
            ServerMessage::Message(value) => format!("message {value}"),
        };
        self.received.lock().unwrap().push(line);
    }

    fn poll_flush(&mut self, context: &mut TaskContext<'_>) -> Poll<Result<(), Disconnect>> {
        if !*self.reads.lock().unwrap() {
            *self.flushing.lock().unwrap() = Some(context.waker().clone());
            return Poll::Pending;
        }
        *self.waiting.lock().unwrap() = 0;
        Poll::Ready(Ok(()))
    }

    fn queued_bytes(&self) -> usize {
        *self.waiting.lock().unwrap()
    }

    fn drop_audio(&mut self, keep: usize) -> usize {
        let mut waiting = self.waiting.lock().unwrap();
        let dropped = waiting.saturating_sub(keep);
        *waiting -= dropped;
        dropped
    }

    fn ping(&mut self) {
        self.received.lock().unwrap().push("ping".into());
    }

    fn close(self: Box<Self>, why: CloseReason) -> Pin<Box<dyn Future<Output = ()> + Send>> {
        self.received.lock().unwrap().push(format!("closed: {why:?}"));
        Box::pin(std::future::ready(()))
    }
}

pub(crate) fn outcome(outcome: &Outcome) -> String {
    match outcome {
        Outcome::Success(data) => data.to_string(),
        Outcome::Failure(error) => error.kind.to_string(),
    }
}

type Sent = Result<LiveEvent<'static>, LiveError>;

/// A model that is spoken with, played by the test.
#[derive(Default)]
pub(crate) struct FakeLiveModel {
    setups: Mutex<Vec<LiveSetup>>,
    connections: Mutex<Vec<Option<mpsc::UnboundedSender<Sent>>>>,
    /// Every input, with the number of the connection.
    inputs: Arc<Mutex<Vec<(usize, String)>>>,
    /// How long it takes to connect.
    pub(crate) delay: Mutex<Duration>,
    /// How the next attempts to connect fail.
    pub(crate) fails: Mutex<VecDeque<LiveErrorKind>>,
}

struct FakeConnection {
    number: usize,
    from: mpsc::UnboundedReceiver<Sent>,
    arrived: VecDeque<LiveEvent<'static>>,
    inputs: Arc<Mutex<Vec<(usize, String)>>>,
}

impl FakeLiveModel {
    /// ClientAction something on the last connection.
    pub(crate) async fn send(&self, event: LiveEvent<'static>) {
        self.send_all([event]).await;
    }

    /// ClientAction several things on an older connection, counted from 0.
    pub(crate) async fn send_on(&self, number: usize, events: impl IntoIterator<Item = LiveEvent<'static>>) {
        for event in events {
            let connections = self.connections.lock().unwrap();
            connections[number].as_ref().unwrap().send(Ok(event)).unwrap();
        }
        run_until_idle().await;
    }

    /// ClientAction several things at once.
    pub(crate) async fn send_all(&self, events: impl IntoIterator<Item = LiveEvent<'static>>) {
        for event in events {
            let connections = self.connections.lock().unwrap();
            connections.last().unwrap().as_ref().unwrap().send(Ok(event)).unwrap();
        }
        run_until_idle().await;
    }

    /// The connection breaks.
    pub(crate) async fn drop_connection(&self) {
        let sender = self.connections.lock().unwrap().last_mut().unwrap().take().unwrap();
        let _ = sender.send(Err(error(LiveErrorKind::Lost)));
        run_until_idle().await;
    }

    /// An older connection breaks, counted from 0.
    pub(crate) async fn drop_connection_of(&self, number: usize) {
        let sender = self.connections.lock().unwrap()[number].take().unwrap();
        let _ = sender.send(Err(error(LiveErrorKind::Lost)));
        run_until_idle().await;
    }

    pub(crate) fn setups(&self) -> Vec<LiveSetup> {
        self.setups.lock().unwrap().clone()
    }

    /// What it got since the last look, one line each.
    pub(crate) fn take_inputs(&self) -> String {
        let inputs = std::mem::take(&mut *self.inputs.lock().unwrap());
        inputs.into_iter().map(|(number, input)| format!("{number} {input}\n")).collect()
    }
}

pub(crate) fn error(kind: LiveErrorKind) -> LiveError {
    LiveError { kind, model: "fake/1".into(), code: Some(1011), detail: "told to".into() }
}

impl LiveModel for FakeLiveModel {
    fn declarations(&self) -> Provider {
        Provider::GeminiJsonSchema
    }

    fn name(&self) -> &str {
        "fake/1"
    }

    fn connect(&self, setup: LiveSetup) -> LiveConnecting {
        self.setups.lock().unwrap().push(setup);
        if let Some(kind) = self.fails.lock().unwrap().pop_front() {
            return Box::pin(std::future::ready(Err(error(kind))));
        }
        let (sender, from) = mpsc::unbounded_channel();
        let mut connections = self.connections.lock().unwrap();
        connections.push(Some(sender));
        let number = connections.len();
        let inputs = self.inputs.clone();
        let connection = FakeConnection { number, from, arrived: VecDeque::new(), inputs };
        let delay = *self.delay.lock().unwrap();
        Box::pin(async move {
            tokio::time::sleep(delay).await;
            Ok(Box::new(connection) as Box<dyn LiveConnection>)
        })
    }
}

impl LiveConnection for FakeConnection {
    fn poll_fill(&mut self, context: &mut TaskContext<'_>) -> Poll<Result<(), LiveError>> {
        match self.from.poll_recv(context) {
            Poll::Ready(Some(Ok(event))) => {
                self.arrived.push_back(event);
                Poll::Ready(Ok(()))
            }
            Poll::Ready(Some(Err(error))) => Poll::Ready(Err(error)),
            Poll::Ready(None) => Poll::Pending,
            Poll::Pending => Poll::Pending,
        }
    }

    fn next(&mut self) -> Option<LiveEvent<'_>> {
        self.arrived.pop_front()
    }

    fn send(&mut self, input: LiveInput<'_>) {
        let line = match input {
            LiveInput::Audio(audio) => format!("audio {}", audio.samples_len()),
            LiveInput::AudioEnded => "audio ended".into(),
            LiveInput::Text(text) => format!("text {text}"),
            LiveInput::Note { text, asks } => format!("note asks={asks} {text}"),
            LiveInput::Result(result) => {
                let silent = if result.is_silent { " silent" } else { "" };
                let last = if result.is_last { " last" } else { "" };
                let id = result.id.unwrap_or("-");
                format!("result {id} {}{silent}{last}", outcome(&result.response.outcome))
            }
            LiveInput::Interrupt { .. } => "interrupt".into(),
            other => format!("{other:?}"),
        };
        self.inputs.lock().unwrap().push((self.number, line));
    }

    fn poll_flush(&mut self, _: &mut TaskContext<'_>) -> Poll<Result<(), LiveError>> {
        Poll::Ready(Ok(()))
    }

    fn close(self: Box<Self>) -> Pin<Box<dyn Future<Output = ()> + Send>> {
        self.inputs.lock().unwrap().push((self.number, "closed".into()));
        Box::pin(std::future::ready(()))
    }
}

/// Everything that a test looks at.
pub(crate) struct VoiceHarness {
    pub(crate) model: Arc<FakeLiveModel>,
    pub(crate) agent: VoiceAgent,
    pub(crate) orchestrator: Orchestrator,
    registry: Arc<Registry>,
    store: Arc<dyn Store>,
    clock: Arc<ManualClock>,
    runs: Arc<Mutex<BTreeMap<String, u32>>>,
}

impl VoiceHarness {
    pub(crate) fn new() -> Self {
        let start = SystemTime::UNIX_EPOCH + Duration::from_secs(1_768_294_800);
        Self::on(Arc::new(MemoryStore::new()), ManualClock::at(start), Arc::default())
    }

    /// Another process on the same store.
    pub(crate) fn restarted(&self) -> Self {
        Self::on(self.store.clone(), self.clock.clone(), self.runs.clone())
    }

    /// With room for so many calls.
    pub(crate) fn with_max_calls(calls: usize) -> Self {
        let mut harness = Self::new();
        let settings = Settings { calls, ..Settings::default() };
        harness.agent = agent(&harness.orchestrator, &harness.registry, harness.model.clone(), settings);
        harness
    }

    /// With words for the time that a slow tool takes.
    pub(crate) fn with_filler(filler: &str) -> Self {
        let mut harness = Self::new();
        let settings = Settings { filler: Some(filler.into()), ..Settings::default() };
        harness.agent = agent(&harness.orchestrator, &harness.registry, harness.model.clone(), settings);
        harness
    }

    /// With another model than the actor.
    pub(crate) fn with_model(model: Arc<dyn LiveModel>) -> Self {
        let mut harness = Self::new();
        harness.agent = harness.agent_of(model);
        harness
    }

    fn on(store: Arc<dyn Store>, clock: Arc<ManualClock>, runs: Arc<Mutex<BTreeMap<String, u32>>>) -> Self {
        let model = Arc::new(FakeLiveModel::default());
        let parts = quarterdeck_runtime::RuntimeParts {
            clock: clock.clone(),
            ..quarterdeck_runtime::RuntimeParts::new(store.clone())
        };
        let orchestrator = Orchestrator::new(parts);
        let registry = Arc::new(registry_of(&tools(), Arc::new(Host { runs: runs.clone() })));
        let agent = agent(&orchestrator, &registry, model.clone(), Settings::default());
        Self { model, agent, orchestrator, registry, store, clock, runs }
    }

    /// Another process on the same store, spoken with by a model that has lived on.
    pub(crate) fn restarted_with(&self, model: Arc<dyn LiveModel>) -> Self {
        let mut harness = self.restarted();
        harness.agent = harness.agent_of(model);
        harness
    }

    fn agent_of(&self, model: Arc<dyn LiveModel>) -> VoiceAgent {
        agent(&self.orchestrator, &self.registry, model, Settings::default())
    }

    pub(crate) fn runs(&self, tool: &str) -> u32 {
        self.runs.lock().unwrap().get(tool).copied().unwrap_or(0)
    }

    pub(crate) async fn call(&self, request: CallRequest) -> FakeClient {
        self.call_as("ann", request).await
    }

    pub(crate) async fn call_as(&self, client: &str, request: CallRequest) -> FakeClient {
        let (page, link) = FakeClient::new();
        let user = User { client: Client::anonymous(client), ..ann() };
        self.agent.start_call(&user, request, link).await;
        run_until_idle().await;
        page
    }

    /// A call that stands, with nothing said in it.
    pub(crate) async fn connect_client(&self) -> FakeClient {
        let client = self.call(CallRequest::default()).await;
        assert_eq!(client.received(), "ready fake/1 resumed=false\n");
        client
    }

    /// Ann is blocked for a minute.
    pub(crate) async fn block(&self) {
        let until_ms = self.orchestrator.now_ms() + 60_000;
        let block = json!({ "clientId": "ann", "untilMs": until_ms, "message": "Enough for today." });
        self.store.commit(Commit::default().put(Table::Blocks, "ann", block)).await.unwrap();
    }

    /// The session of Ann's call.
    pub(crate) async fn session(&self) -> CallRequest {
        let sessions = quarterdeck_runtime::list_sessions(&*self.store).await.unwrap();
        let id = sessions.first().expect("a session").id.as_str().into();
        CallRequest { session_id: Some(id), may_resume: true, pending_request: None }
    }
}

fn agent(
    orchestrator: &Orchestrator,
    registry: &Arc<Registry>,
    model: Arc<dyn LiveModel>,
    settings: Settings,
) -> VoiceAgent {
    VoiceAgent::new(Parts {
        orchestrator: orchestrator.clone(),
        registry: registry.clone(),
        model,
        prompts: Prompts::default(),
        settings,
    })
}

pub(crate) fn ann() -> User {
    User { client: Client::anonymous("ann"), situation: Situation::default() }
}

/// Lets everything happen that does not wait for the clock.
pub(crate) async fn run_until_idle() {
    tokio::time::sleep(Duration::from_millis(5)).await;
}

pub(crate) fn user_said(text: &'static str) -> LiveEvent<'static> {
    LiveEvent::InputTranscript(TranscriptPiece { text: text.into(), stage: TranscriptStage::Final })
}

pub(crate) fn model_said(text: &'static str) -> LiveEvent<'static> {
    LiveEvent::OutputTranscript(TranscriptPiece { text: text.into(), stage: TranscriptStage::Segment })
}

pub(crate) fn audio(bytes: usize) -> LiveEvent<'static> {
    LiveEvent::Audio(Audio::Pcm(vec![0; bytes].into()))
}

pub(crate) fn turn_complete() -> LiveEvent<'static> {
    LiveEvent::TurnComplete { more_follows: false }
}

pub(crate) fn tool_calls(calls: &[(&str, &str, Value)]) -> LiveEvent<'static> {
    let call = |(id, name, args): &(&str, &str, Value)| ModelCall {
        id: (!id.is_empty()).then(|| format!("function-{id}")),
        name: (*name).into(),
        arguments: CallArguments::Json(args.clone()),
    };
    LiveEvent::Calls(calls.iter().map(call).collect())
}

fn tools() -> Vec<(&'static str, Value)> {
    let reads = json!({ "category": "retrieval", "sideEffects": "read_only", "idempotent": true });
    let ends = json!({ "control": true, "sideEffects": "none" });
    let both = |mut more: Value| {
        more["allowedModes"] = json!(["text", "voice"]);
        more
    };
    vec![
        ("look", both(reads.clone())),
        ("slow_look", both(reads)),
        ("book", both(json!({}))),
        ("slow_book", both(json!({}))),
        ("slow_later", both(json!({ "execution": "background" }))),
        ("pay", both(json!({ "requiresConfirmation": true }))),
        ("leave", both(ends.clone())),
        ("bid_farewell", both(ends.clone())),
        ("hide", both(ends)),
        ("shut_out", both(json!({ "control": true, "capabilities": ["moderation"] }))),
        ("write_only", json!({ "allowedModes": ["text"], "sideEffects": "none" })),
    ]
}

struct Host {
    runs: Arc<Mutex<BTreeMap<String, u32>>>,
}

struct Tool {
    id: String,
    runs: Arc<Mutex<BTreeMap<String, u32>>>,
}

impl HandlerHost for Host {
    fn load(&self, handler: HandlerToLoad<'_>) -> Result<Arc<dyn Handler>, HostError> {
        let id = handler.metadata.tool_id.to_string();
        Ok(Arc::new(Tool { id, runs: self.runs.clone() }))
    }
}

impl Handler for Tool {
    fn run(
        &self,
        args: Value,
        context: Arc<dyn Context>,
        _: Limits,
    ) -> BoxFuture<Result<HandlerAnswer, HostError>> {
        *self.runs.lock().unwrap().entry(self.id.clone()).or_default() += 1;
        let id = self.id.clone();
        Box::pin(async move {
            if id.starts_with("slow") {
                tokio::time::sleep(Duration::from_secs(3)).await;
            }
            let end = |after: &str| json!({ "type": "END_VOICE_SESSION", "after": after });
            let intents = match id.as_str() {
                "leave" => json!([end("current_turn")]),
                "shut_out" => {
                    let args = vec![json!(300), json!("Let us take a break.")];
                    let capability = Capability::MODERATION;
                    context
                        .request(CapabilityCall { capability, method: "block".into(), args })
                        .await
                        .unwrap();
                    json!([end("farewell_spoken"), { "type": "SUPPRESS_AUDIO", "value": true }])
                }
                "bid_farewell" => {
                    json!([end("farewell_spoken"), { "type": "SUPPRESS_AUDIO", "value": true }])
                }
                "hide" => {
                    json!([{ "type": "SUPPRESS_TRANSCRIPT", "value": true }, { "type": "SUPPRESS_AUDIO", "value": true }])
                }
                _ => json!([]),
            };
            let data = match id.as_str() {
                "leave" => json!({ "reason": "done", "finalMessage": "Bye.", "textResponse": "We talked." }),
                "look" | "slow_look" => json!({ "results": [args["what"]] }),
                _ => json!({ "did": args["what"] }),
            };
            Ok(HandlerAnswer::parse(json!({ "ok": true, "data": data, "intents": intents })).unwrap())
        })
    }
}
