//! A few native tools, a model that says what a test wants, and the agent around them.

use std::collections::{BTreeMap, VecDeque};
use std::sync::{Arc, Mutex};
use std::time::{Duration, SystemTime};

use futures_util::stream::{self, StreamExt};
use quarterdeck_agents::text::{
    Address, Message, Parts, Reader, Refusal, Settings, StreamEvent, TextAgent, User,
};
use quarterdeck_agents::{Prompts, Situation};
use quarterdeck_compiler::{Inspectors, NativeInspector, Options, Stamp, Tree, compile};
use quarterdeck_contracts::handler::{CapabilityCall, Context, HandlerHost, NATIVE_KIND, NativeHandler};
use quarterdeck_contracts::{
    CallArguments, Capability, ChatError, ChatErrorKind, ChatEvent, ChatModel, ChatRequest, ChatStream,
    ContextOverflow, Finish, ModelCall, ModelMessage, ModelPart, ModelReply, Outcome, PartContent, Provider,
    Store, ToolError, Usage, native_source_hash,
};
use quarterdeck_runtime::{Client, Clock, Hosts, NativeHost, NodeParts, Orchestrator, Policy, Registry};
use quarterdeck_testkit::{new_store, tree};
use serde_json::{Value, json};

const HANDLER: &str = "pub async fn execute() {}\n";

/// What a model does when it is asked.
pub(crate) enum ModelStep {
    /// ClientAction these pieces and makes these calls.
    ClientAction(Vec<&'static str>, Vec<ModelCall>),
    /// ClientAction something, then fails.
    Fail(&'static str, ChatErrorKind),
    /// Says that its context is too small: what it takes, and what it was sent.
    Overflow(u64, u64),
    /// ClientAction something, then nothing for ever.
    Hang(&'static str),
    /// Begins after this time.
    Late(Duration, &'static str),
}

/// A model that does what it was told to, in order, and remembers what it was asked.
#[derive(Default)]
pub(crate) struct ScriptedModel {
    plan: Mutex<VecDeque<ModelStep>>,
    pub(crate) requests: Mutex<Vec<ChatRequest>>,
    pub(crate) dropped: Arc<Mutex<u32>>,
    pub(crate) window: Mutex<Option<usize>>,
    pub(crate) is_local: Mutex<bool>,
}

impl ScriptedModel {
    pub(crate) fn then(&self, step: ModelStep) -> &Self {
        self.plan.lock().unwrap().push_back(step);
        self
    }

    pub(crate) fn reply(&self, text: &'static str) -> &Self {
        self.then(ModelStep::ClientAction(vec![text], Vec::new()))
    }

    pub(crate) fn call_tools(&self, calls: Vec<ModelCall>) -> &Self {
        self.then(ModelStep::ClientAction(Vec::new(), calls))
    }

    pub(crate) fn last_request(&self) -> ChatRequest {
        self.requests.lock().unwrap().last().unwrap().clone()
    }
}

/// Counts when a stream is let go.
struct StreamGuard(Arc<Mutex<u32>>);

impl Drop for StreamGuard {
    fn drop(&mut self) {
        *self.0.lock().unwrap() += 1;
    }
}

impl ChatModel for ScriptedModel {
    fn declarations(&self) -> Provider {
        Provider::Openai
    }

    fn name(&self) -> &str {
        "scripted/1"
    }

    fn window(&self) -> usize {
        self.window.lock().unwrap().unwrap_or(100_000)
    }

    fn may_be_loading(&self) -> bool {
        *self.is_local.lock().unwrap()
    }

    fn ask(&self, request: ChatRequest) -> ChatStream {
        self.requests.lock().unwrap().push(request);
        let step = self.plan.lock().unwrap().pop_front();
        let guard = StreamGuard(self.dropped.clone());
        let text = |text: &str| Ok(ChatEvent::Text(text.to_owned()));
        let events: ChatStream = match step {
            None => Box::pin(stream::iter([text("(nothing planned)"), done(&["(nothing planned)"], &[])])),
            Some(ModelStep::ClientAction(pieces, calls)) => {
                let mut events: Vec<_> = pieces.iter().map(|piece| text(piece)).collect();
                events.push(done(&pieces, &calls));
                Box::pin(stream::iter(events))
            }
            Some(ModelStep::Fail(said, kind)) => {
                let error = ChatError {
                    kind,
                    model: "scripted/1".into(),
                    detail: "told to".into(),
                    retry_after: None,
                    context: None,
                };
                let said = (!said.is_empty()).then(|| text(said));
                Box::pin(stream::iter(said.into_iter().chain([Err(error)])))
            }
            Some(ModelStep::Overflow(limit, sent)) => {
                let error = ChatError {
                    kind: ChatErrorKind::TooLong,
                    model: "scripted/1".into(),
                    detail: "told to".into(),
                    retry_after: None,
                    context: Some(ContextOverflow { limit, sent: Some(sent) }),
                };
                Box::pin(stream::iter([Err(error)]))
            }
            Some(ModelStep::Late(pause, said)) => {
                let events = stream::iter([text(said), done(&[said], &[])]);
                Box::pin(stream::once(tokio::time::sleep(pause)).flat_map(move |()| events.clone()))
            }
            Some(ModelStep::Hang(said)) => {
                let said = (!said.is_empty()).then(|| text(said));
                Box::pin(stream::iter(said).chain(stream::pending()))
            }
        };
        Box::pin(events.map(move |event| {
            let _ = &guard;
            event
        }))
    }
}

fn done(pieces: &[&str], calls: &[ModelCall]) -> Result<ChatEvent, ChatError> {
    let mut parts = Vec::new();
    if !pieces.is_empty() {
        parts.push(ModelPart::new(PartContent::Text(pieces.concat())));
    }
    parts.extend(calls.iter().cloned().map(|call| ModelPart::new(PartContent::Call(call))));
    Ok(ChatEvent::Done(ModelReply {
        message: ModelMessage { by: "scripted/1".into(), parts },
        finish: Finish::Stop,
        usage: Usage::new(10, 2),
    }))
}

/// A call under an id that can be relied on.
pub(crate) fn call(id: &str, name: &str, args: Value) -> ModelCall {
    let id = (!id.is_empty()).then(|| format!("call-number-{id}"));
    ModelCall { id, name: name.into(), arguments: CallArguments::Json(args) }
}

/// A clock that stands still until a test moves it: the time of day, and how much time has passed.
pub(crate) struct ManualClock(Mutex<(SystemTime, Duration)>);

impl ManualClock {
    pub(crate) fn at(time: SystemTime) -> Arc<Self> {
        Arc::new(Self(Mutex::new((time, Duration::ZERO))))
    }

    /// Time passes.
    pub(crate) fn advance(&self, by: Duration) {
        let mut time = self.0.lock().unwrap();
        time.0 += by;
        time.1 += by;
    }

    /// The time of day is set back; no time passes.
    pub(crate) fn set_back(&self, by: Duration) {
        self.0.lock().unwrap().0 -= by;
    }
}

impl Clock for ManualClock {
    fn now(&self) -> SystemTime {
        self.0.lock().unwrap().0
    }

    fn monotonic(&self) -> Duration {
        self.0.lock().unwrap().1
    }
}

/// Everything that a test looks at.
pub(crate) struct World {
    pub(crate) model: Arc<ScriptedModel>,
    pub(crate) agent: TextAgent,
    pub(crate) orchestrator: Orchestrator,
    pub(crate) store: Arc<dyn Store>,
    pub(crate) clock: Arc<ManualClock>,
    /// How often each tool has run.
    pub(crate) runs: Arc<Mutex<BTreeMap<String, u32>>>,
    settings: Settings,
}

impl World {
    pub(crate) fn new() -> Self {
        Self::with(Settings::default())
    }

    pub(crate) fn with(settings: Settings) -> Self {
        let start = SystemTime::UNIX_EPOCH + Duration::from_secs(1_768_294_800);
        let clock = ManualClock::at(start);
        Self::on(new_store(), clock, Arc::default(), settings, None, None)
    }

    /// Alone on a store.
    pub(crate) fn on_store(store: &Arc<dyn Store>) -> Self {
        let World { clock, settings, .. } = Self::new();
        Self::on(store.clone(), clock, Arc::default(), settings, None, None)
    }

    /// On a store that keeps conversations for operators.
    pub(crate) fn keeping(store: &Arc<dyn Store>, retention: Duration) -> Self {
        let World { clock, settings, .. } = Self::new();
        let policy = Policy { transcript_retention: Some(retention), ..Policy::default() };
        Self::with_policy(store.clone(), clock, Arc::default(), settings, (None, None), policy)
    }

    /// One of several nodes on a store.
    pub(crate) async fn node(store: &Arc<dyn Store>, name: &str) -> Self {
        let World { clock, settings, .. } = Self::new();
        let world = Self::on(store.clone(), clock, Arc::default(), settings, None, Some(node(name)));
        world.orchestrator.renew_node().await.unwrap();
        world
    }

    /// With another model that is asked when the first one fails.
    pub(crate) fn with_fallback(fallback: Arc<dyn ChatModel>) -> Self {
        let World { store, clock, runs, settings, .. } = Self::new();
        Self::on(store, clock, runs, settings, Some(fallback), None)
    }

    /// Another process on the same store.
    pub(crate) fn restarted(&self) -> Self {
        let (store, clock, runs) = (self.store.clone(), self.clock.clone(), self.runs.clone());
        Self::on(store, clock, runs, self.settings.clone(), None, None)
    }

    fn on(
        store: Arc<dyn Store>,
        clock: Arc<ManualClock>,
        runs: Arc<Mutex<BTreeMap<String, u32>>>,
        settings: Settings,
        fallback: Option<Arc<dyn ChatModel>>,
        node: Option<NodeParts>,
    ) -> Self {
        Self::with_policy(store, clock, runs, settings, (fallback, node), Policy::default())
    }

    fn with_policy(
        store: Arc<dyn Store>,
        clock: Arc<ManualClock>,
        runs: Arc<Mutex<BTreeMap<String, u32>>>,
        settings: Settings,
        (fallback, node): (Option<Arc<dyn ChatModel>>, Option<NodeParts>),
        policy: Policy,
    ) -> Self {
        let model = Arc::new(ScriptedModel::default());
        let parts = quarterdeck_runtime::RuntimeParts {
            clock: clock.clone(),
            node,
            policy,
            ..quarterdeck_runtime::RuntimeParts::new(store.clone())
        };
        let orchestrator = Orchestrator::new(parts);
        let agent = TextAgent::new(Parts {
            orchestrator: orchestrator.clone(),
            registry: Arc::new(registry(&runs)),
            model: model.clone(),
            fallback,
            prompts: Prompts::default(),
            settings: settings.clone(),
        });
        Self { model, agent, orchestrator, store, clock, runs, settings }
    }

    pub(crate) fn runs(&self, tool: &str) -> u32 {
        self.runs.lock().unwrap().get(tool).copied().unwrap_or(0)
    }

    pub(crate) async fn send(&self, text: &str) -> Result<Reader, Refusal> {
        self.agent.send_message(&ann(), Address::Chat("chat"), message(text)).await
    }

    /// ClientAction something and tells what came of it.
    pub(crate) async fn send_and_collect(&self, text: &str) -> String {
        event_lines(self.send(text).await.unwrap()).await
    }
}

pub(crate) fn node(name: &str) -> NodeParts {
    NodeParts { name: name.into(), address: format!("http://{name}.test") }
}

pub(crate) fn message(text: &str) -> Message {
    Message { id: None, idempotency_key: None, text: text.into() }
}

pub(crate) fn ann() -> User {
    User { client: Client::anonymous("ann"), situation: Situation::default() }
}

/// Everything that a reader is told.
pub(crate) async fn events(mut reader: Reader) -> Vec<StreamEvent> {
    let mut all = Vec::new();
    while let Some(events) = reader.next().await {
        all.extend(events);
    }
    all
}

/// The same as short lines.
pub(crate) async fn event_lines(reader: Reader) -> String {
    lines(&events(reader).await)
}

pub(crate) fn lines(events: &[StreamEvent]) -> String {
    let mut out = String::new();
    for event in events {
        let line = match event {
            StreamEvent::Started { .. } => "started".into(),
            StreamEvent::RoundStarted => "round".into(),
            StreamEvent::Text(text) => format!("text {text:?}"),
            StreamEvent::Thought(text) => format!("thought {text:?}"),
            StreamEvent::ToolCall(shown) => match &shown.call.arguments {
                CallArguments::Json(args) => format!("call {} {args}", shown.call.name),
                CallArguments::Broken(text) => format!("broken call {} {text:?}", shown.call.name),
            },
            StreamEvent::ConfirmationRequest { request, .. } => format!("asked: {}", request.preview),
            StreamEvent::ToolResult { response, .. } => format!("answer {}", outcome(&response.outcome)),
            StreamEvent::Progress { text, .. } => format!("progress {text:?}"),
            StreamEvent::PartialResult { response, .. } => format!("partial {}", json!(**response)["data"]),
            StreamEvent::LateToolResult { name, response, .. } => {
                format!("late {name} {}", outcome(&response.outcome))
            }
            StreamEvent::Data { name, value } => format!("data {name} {value}"),
            StreamEvent::Lagged { bytes } => format!("left out {bytes}"),
            StreamEvent::Failed(failure) => format!("failed {} {:?}", failure.kind, failure.message),
            StreamEvent::Finished { ending, .. } => format!("finished {ending:?}"),
        };
        out.push_str(&line);
        out.push('\n');
    }
    out
}

fn outcome(outcome: &Outcome) -> String {
    match outcome {
        Outcome::Success(data) => data.to_string(),
        Outcome::Failure(error) => format!("{}: {}", error.kind, error.message),
    }
}

/// The token of the question among events.
pub(crate) fn token(events: &[StreamEvent]) -> String {
    let asked = events.iter().find_map(|event| match event {
        StreamEvent::ConfirmationRequest { request, .. } => request.token.as_ref(),
        _ => None,
    });
    asked.expect("a confirmation request").expose().to_owned()
}

fn definition(tool: &str, more: Value) -> Value {
    let mut definition = json!({
        "toolId": tool, "version": "1.0.0", "description": "For tests.", "category": "action",
        "sideEffects": "writes", "idempotent": false, "requiresConfirmation": false,
        "allowedModes": ["text"], "latencyBudgetMs": 5000,
        "parameters": {
            "type": "object", "additionalProperties": false, "required": ["what"],
            "properties": { "what": { "type": "string", "description": "What." } },
        },
    });
    for (name, value) in more.as_object().unwrap() {
        definition[name] = value.clone();
    }
    definition
}

fn registry(runs: &Arc<Mutex<BTreeMap<String, u32>>>) -> Registry {
    let reads = json!({ "category": "retrieval", "sideEffects": "read_only", "idempotent": true });
    let tools = [
        ("look", reads),
        ("book", json!({})),
        ("pay", json!({ "requiresConfirmation": true })),
        ("slow_book", json!({})),
        ("block", json!({ "control": true, "capabilities": ["moderation"] })),
        ("speak", json!({ "allowedModes": ["voice"], "sideEffects": "none" })),
    ];
    let hash: &'static str = Box::leak(native_source_hash([("handler.rs", HANDLER)]).into_boxed_str());
    let handlers = tools.iter().map(|(id, _)| {
        let (id, runs) = (*id, runs.clone());
        NativeHandler::new(id, hash, move |args: Value, context| perform(id, args, context, runs.clone()))
    });
    registry_of(&tools, Arc::new(NativeHost::new(handlers)))
}

/// A registry of tools that differ from the ordinary one in what is said of them here.
pub(crate) fn registry_of(tools: &[(&str, Value)], host: Arc<dyn HandlerHost>) -> Registry {
    let files = tree("");
    let hash = native_source_hash([("handler.rs", HANDLER)]);
    for (id, more) in tools {
        let folder = id.replace('_', "-");
        files.write(&format!("{folder}/schema.json"), definition(id, more.clone()).to_string());
        files.write(&format!("{folder}/guide.md"), "# Tool\n\nDoes it. Use it when testing.\n");
        files.write(&format!("{folder}/handler.rs"), HANDLER);
    }
    let inspector = NativeInspector::new(tools.iter().map(|(id, _)| ((*id).to_owned(), hash.clone())));
    let options = Options::new(
        Inspectors::default().with(NATIVE_KIND, Arc::new(inspector)),
        Stamp { timestamp: "2026-01-13T09:00:00Z".into(), commit: None },
    );
    let compilation = compile(&Tree::read(files.path(), &options.inspectors).unwrap(), &options);
    let artifact = compilation.artifact.unwrap_or_else(|| panic!("{:?}", compilation.diagnostics));
    let hosts = Hosts::default().with(NATIVE_KIND, host);
    Registry::from_artifact(artifact, files.path(), hosts).unwrap()
}

async fn perform(
    tool: &'static str,
    args: Value,
    context: Arc<dyn Context>,
    runs: Arc<Mutex<BTreeMap<String, u32>>>,
) -> Result<Value, ToolError> {
    *runs.lock().unwrap().entry(tool.to_owned()).or_default() += 1;
    match tool {
        "look" if args["what"] == "nothing" => return Ok(json!({ "results": [] })),
        "look" => return Ok(json!({ "results": [args["what"]] })),
        "slow_book" => tokio::time::sleep(Duration::from_secs(2)).await,
        "pay" if args["what"] == "slowly" => tokio::time::sleep(Duration::from_secs(2)).await,
        "block" => {
            let args = vec![json!(60), json!("Enough for today.")];
            let call = CapabilityCall { capability: Capability::MODERATION, method: "block".into(), args };
            return Ok(context.request(call).await?);
        }
        _ => {}
    }
    Ok(json!({ "did": args["what"] }))
}
