//! A server with one tool and a scripted model.

use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, SystemTime};

use futures_util::{StreamExt, stream};
use quarterdeck_agents::Prompts;
use quarterdeck_agents::text::{Parts as TextParts, Settings as TextSettings, TextAgent};
use quarterdeck_agents::voice::{Parts as VoiceParts, Settings as VoiceSettings, SpeechEngines, VoiceAgent};
use quarterdeck_compiler::{Inspectors, NativeInspector, Options, Stamp, Tree, compile};
use quarterdeck_contracts::handler::{CapabilityCall, Context, NATIVE_KIND, NativeHandler};
use quarterdeck_contracts::{
    CallArguments, Capability, ChatError, ChatErrorKind, ChatEvent, ChatMessage, ChatModel, ChatRequest,
    ChatStream, Commit, ErrorType, Finish, ModelCall, ModelMessage, ModelPart, ModelReply, PartContent,
    Provider, Store, Table, ToolError, UpstreamMonitor, Usage, native_source_hash,
};
use quarterdeck_mcp_server::{McpParts, McpServer, McpSettings};
use quarterdeck_runtime::audit::AuditLog;
use quarterdeck_runtime::{
    AllowedDigests, Bundle, BundleFolder, Clock, Hosts, NativeHost, NodeParts, Orchestrator, Policy,
    Registry, RuntimeParts, SystemClock, VersionAdmin,
};
use quarterdeck_server::{
    ApiKey, App, AuditFeed, AuditLogHandle, Identity, LogLevels, Operations, RegistryChange, ServerParts,
    Settings, ToolChange, WatchFeed, serve,
};
use quarterdeck_store::MemoryStore;
use quarterdeck_testkit::{Tree as Files, tree};
use serde_json::{Value, json};
use tokio::net::TcpListener;
use tokio::sync::{Semaphore, oneshot};
use tokio::task::JoinHandle;

use crate::http::Ask;
use crate::voice::EchoModel;

pub(crate) const COOKIE_SECRET: &[u8] = b"thirty-two bytes for a test only";

pub(crate) const NODE_SECRET: &[u8] = b"another thirty-two bytes of a test";

/// What a server is to be.
struct Plan {
    settings: Settings,
    identity: Identity,
    speaker: Option<EchoModel>,
    more: Operations,
    store: Arc<MemoryStore>,
    /// The name of a node, and the address that the others reach it by, if it is another one.
    node: Option<(String, Option<SocketAddr>)>,
    policy: Policy,
}

impl Plan {
    fn new(settings: Settings, identity: Identity) -> Self {
        let (speaker, more) = (Some(EchoModel), Operations::default());
        Self {
            settings,
            identity,
            speaker,
            more,
            store: Arc::default(),
            node: None,
            policy: Policy::default(),
        }
    }
}

/// A running server.
pub(crate) struct World {
    pub(crate) address: SocketAddr,
    pub(crate) store: Arc<MemoryStore>,
    pub(crate) orchestrator: Orchestrator,
    /// The file of the audit log.
    pub(crate) audit_log: PathBuf,
    pub(crate) feed: Arc<AuditFeed>,
    pub(crate) app: Arc<App>,
    clock: Arc<ShiftedClock>,
    text: TextAgent,
    /// Each permit resumes a model that waits.
    pub(crate) resume: Arc<Semaphore>,
    stop: Option<oneshot::Sender<()>>,
    served: JoinHandle<()>,
    _folder: Files,
}

impl World {
    /// A server without configuration.
    pub(crate) async fn new() -> Self {
        Self::with(Settings::default()).await
    }

    pub(crate) async fn with(settings: Settings) -> Self {
        Self::with_identity(settings, Identity::new(COOKIE_SECRET, None, Vec::new())).await
    }

    pub(crate) async fn without_voice() -> Self {
        let identity = Identity::new(COOKIE_SECRET, None, Vec::new());
        Self::build(Plan { speaker: None, ..Plan::new(Settings::default(), identity) }).await
    }

    /// A node that shares a store with others. Its row names the address that the others reach it by.
    pub(crate) async fn node(store: &Arc<MemoryStore>, name: &str, settings: Settings) -> Self {
        Self::node_behind(store, name, settings, None).await
    }

    /// A node that the others reach by another address than its own.
    pub(crate) async fn node_behind(
        store: &Arc<MemoryStore>,
        name: &str,
        settings: Settings,
        proxy: Option<SocketAddr>,
    ) -> Self {
        let keys = vec![ApiKey::new("ann", "sesame")];
        let identity = Identity::new(COOKIE_SECRET, None, keys);
        let node = Some((name.to_owned(), proxy));
        let world = Self::build(Plan { store: store.clone(), node, ..Plan::new(settings, identity) }).await;
        world.orchestrator.renew_node().await.unwrap();
        world
    }

    pub(crate) async fn with_identity(settings: Settings, identity: Identity) -> Self {
        Self::build(Plan::new(settings, identity)).await
    }

    /// A server that follows its folders.
    pub(crate) async fn watching(settings: Settings, watch: WatchFeed) -> Self {
        let identity = Identity::new(COOKIE_SECRET, None, Vec::new());
        let more = Operations { watch: Some(watch), ..Operations::default() };
        Self::build(Plan { more, ..Plan::new(settings, identity) }).await
    }

    /// A server that has imported tools of others.
    pub(crate) async fn with_upstreams(settings: Settings, upstreams: Arc<dyn UpstreamMonitor>) -> Self {
        let identity = Identity::new(COOKIE_SECRET, None, Vec::new());
        let more = Operations { upstreams: Some(upstreams), ..Operations::default() };
        Self::build(Plan { more, ..Plan::new(settings, identity) }).await
    }

    /// A server whose log can be changed.
    pub(crate) async fn with_log_levels(settings: Settings, levels: LogLevels) -> Self {
        let identity = Identity::new(COOKIE_SECRET, None, Vec::new());
        let more = Operations { log_levels: Some(Arc::new(levels)), ..Operations::default() };
        Self::build(Plan { more, ..Plan::new(settings, identity) }).await
    }

    /// A server that keeps conversations for operators.
    pub(crate) async fn keeping_conversations(retention: Duration) -> Self {
        let identity = Identity::new(COOKIE_SECRET, None, Vec::new());
        let policy = Policy { transcript_retention: Some(retention), ..Policy::default() };
        Self::build(Plan { policy, ..Plan::new(Settings::default(), identity) }).await
    }

    async fn build(plan: Plan) -> Self {
        let Plan { settings, identity, speaker, more, store, node, policy } = plan;
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let node_secret = node.as_ref().map(|_| NODE_SECRET.to_vec());
        let node = node.map(|(name, proxy)| {
            let address = format!("http://{}", proxy.unwrap_or(address));
            NodeParts { name, address }
        });
        let clock = Arc::new(ShiftedClock::default());
        let folder = tree("");
        let path = folder.join("audit.jsonl");
        let name = node.as_ref().map_or("test", |node| &node.name).to_owned();
        let log = Arc::new(AuditLog::open(&path, &name, store.clone()).await.unwrap());
        let feed = Arc::new(AuditFeed::new(log));
        let orchestrator = Orchestrator::new(RuntimeParts {
            clock: clock.clone(),
            audit: feed.clone(),
            node,
            policy,
            ..RuntimeParts::new(store.clone())
        });
        let registry = Arc::new(registry());
        let versions = VersionAdmin::new(
            registry.clone(),
            orchestrator.clone(),
            BundleFolder::new(folder.join("versions"), 8),
            AllowedDigests::Any,
            3,
        );
        let resume = Arc::new(Semaphore::new(0));
        let text = text_agent(&orchestrator, &registry, &resume);
        let voice = speaker.map(|model| voice_agent(&orchestrator, &registry, model));
        let audit =
            Some(AuditLogHandle { feed: feed.clone(), path: path.clone(), node: name, seal_file: None });
        let versions = Some(Arc::new(versions));
        let operations = Operations { audit, change: Some(registry_change()), versions, ..more };
        let parts = ServerParts {
            text: text.clone(),
            voice,
            mcp: Some(McpServer::new(McpParts {
                orchestrator: orchestrator.clone(),
                registry: registry.clone(),
                knowledge: None,
                settings: McpSettings::default(),
            })),
            orchestrator: orchestrator.clone(),
            registry,
            identity,
            operations,
            settings,
            node_secret,
        };
        let app = App::new(parts);
        let (stop, stopped) = oneshot::channel();
        let served = tokio::spawn(serve(app.clone(), listener, async move {
            let _ = stopped.await;
        }));
        let stop = Some(stop);
        Self {
            address,
            store,
            orchestrator,
            audit_log: path,
            feed,
            app,
            clock,
            text,
            resume,
            stop,
            served,
            _folder: folder,
        }
    }

    pub(crate) fn get(&self, target: &str) -> Ask {
        self.ask("GET", target)
    }

    pub(crate) fn post(&self, target: &str, body: &Value) -> Ask {
        self.ask("POST", target).json(body)
    }

    pub(crate) fn ask(&self, method: &str, target: &str) -> Ask {
        Ask::new(self.address, method, target)
    }

    /// The cookie of a new client.
    pub(crate) async fn new_client(&self) -> String {
        self.get("/api/me").send().await.cookie().unwrap()
    }

    /// The client id of a cookie.
    pub(crate) async fn client_of(&self, cookie: &str) -> String {
        let me = self.get("/api/me").with("cookie", cookie).send().await.json();
        me["clientId"].as_str().unwrap().to_owned()
    }

    /// Blocks a client for an hour.
    pub(crate) async fn block(&self, client: &str) {
        let row = json!({ "untilMs": now_ms() + 3_600_000, "message": "Please calm down." });
        self.store.commit(Commit::default().put(Table::Blocks, client, row)).await.unwrap();
    }

    pub(crate) fn advance_clock(&self, by: Duration) {
        self.clock.0.fetch_add(by.as_millis() as u64, Ordering::Relaxed);
    }

    pub(crate) fn running_turns(&self) -> usize {
        self.text.running_turns()
    }

    pub(crate) fn stop(&mut self) {
        self.stop.take().unwrap().send(()).unwrap();
    }

    pub(crate) async fn wait_until_stopped(self) {
        self.served.await.unwrap();
    }
}

fn text_agent(orchestrator: &Orchestrator, registry: &Arc<Registry>, resume: &Arc<Semaphore>) -> TextAgent {
    TextAgent::new(TextParts {
        orchestrator: orchestrator.clone(),
        registry: registry.clone(),
        model: Arc::new(ScriptedModel { resume: resume.clone() }),
        fallback: None,
        prompts: Prompts::default(),
        settings: TextSettings { reader_timeout: Duration::from_secs(1), ..TextSettings::default() },
    })
}

fn voice_agent(orchestrator: &Orchestrator, registry: &Arc<Registry>, model: EchoModel) -> VoiceAgent {
    VoiceAgent::new(VoiceParts {
        orchestrator: orchestrator.clone(),
        registry: registry.clone(),
        model: Arc::new(model),
        engines: SpeechEngines::default(),
        prompts: Prompts::default(),
        settings: VoiceSettings::default(),
    })
}

fn registry_change() -> RegistryChange {
    let what = "`do` is required".to_owned();
    let change = ToolChange { tool: "probe".into(), effect: "breaks".into(), what, example: Some(json!({})) };
    RegistryChange { previous: "1.0.0badcafe".into(), is_breaking: true, changes: vec![change] }
}

/// The system's time, in milliseconds since 1970.
pub(crate) fn now_ms() -> u64 {
    SystemClock.now().duration_since(SystemTime::UNIX_EPOCH).unwrap().as_millis() as u64
}

/// The system clock plus an offset in milliseconds.
#[derive(Default)]
struct ShiftedClock(AtomicU64);

impl Clock for ShiftedClock {
    fn now(&self) -> SystemTime {
        SystemClock.now() + Duration::from_millis(self.0.load(Ordering::Relaxed))
    }

    fn monotonic(&self) -> Duration {
        SystemClock.monotonic() + Duration::from_millis(self.0.load(Ordering::Relaxed))
    }
}

const HANDLER: &str = "pub async fn execute() {}\n";

/// One tool that needs approval and returns its arguments, or fails if it is told to.
fn registry() -> Registry {
    let hash = native_source_hash([("handler.rs", HANDLER)]);
    let native = NativeHost::new([NativeHandler::new("probe", Box::leak(hash.into_boxed_str()), probe)]);
    let hosts = Hosts::default().with(NATIVE_KIND, Arc::new(native));
    let registry = Registry::from_bundle(bundle("1.2.3"), Path::new("tools"), hosts).unwrap();
    registry.lock();
    registry
}

/// The tools with a version of the tool `probe`.
pub(crate) fn bundle(version: &str) -> Bundle {
    let files = tree(
        r#"
        //- probe/guide.md
        # Probe

        Gives back what it was called with, for tests. Use it when nothing else will do.
        "#,
    );
    files.write("probe/handler.rs", HANDLER);
    let definition = json!({
        "toolId": "probe", "version": version, "description": "Does what it is told.", "category": "action",
        "sideEffects": "writes", "idempotent": false, "requiresConfirmation": true, "allowedModes": ["text"],
        "latencyBudgetMs": 100, "capabilities": ["moderation"],
        "parameters": {
            "type": "object", "additionalProperties": false, "required": ["do"],
            "properties": { "do": { "type": "string", "description": "What." } },
        },
    });
    files.write("probe/schema.json", definition.to_string());
    let hash = native_source_hash([("handler.rs", HANDLER)]);
    let native = NativeInspector::new([("probe".to_owned(), hash)]);
    let options = Options::new(
        Inspectors::default().with(NATIVE_KIND, Arc::new(native)),
        Stamp { timestamp: "2026-01-13T09:00:00Z".into(), commit: Some("a1b2c3d4".into()) },
    );
    let compilation = compile(&Tree::read(files.path(), &options.inspectors).unwrap(), &options);
    let artifact = compilation.artifact.unwrap_or_else(|| panic!("{:?}", compilation.diagnostics));
    Bundle::collect(artifact, files.path()).unwrap()
}

/// How often the tool was told to count, in this process.
pub(crate) static EXECUTIONS: AtomicU64 = AtomicU64::new(0);

async fn probe(args: Value, context: Arc<dyn Context>) -> Result<Value, ToolError> {
    match args["do"].as_str().unwrap_or_default() {
        "block me" => {
            let args = vec![json!(3_600), json!("Please calm down.")];
            let call = CapabilityCall { capability: Capability::MODERATION, method: "block".into(), args };
            Ok(context.request(call).await?)
        }
        "count" => {
            EXECUTIONS.fetch_add(1, Ordering::SeqCst);
            Ok(json!({ "did": "count" }))
        }
        "find nothing" => Err(ToolError::new(ErrorType::NotFound, "There is none.")),
        "break" => Err(ToolError::new(ErrorType::Permanent, "It broke.")),
        // `show ID` is how a tool shows a file of the session.
        show if show.starts_with("show ") => {
            let file = json!({ "id": show[5..], "media_type": "image/png", "width": 12, "height": 8, "alt": "A <b>fox</b>" });
            Ok(json!({ "files": [file, { "id": "../../etc/passwd", "media_type": "image/png" }, 7] }))
        }
        _ => Ok(json!({ "did": args["do"] })),
    }
}

/// Follows the user's message: `call …` calls the tool (`call bad` with invalid arguments), `wait` pauses in the middle
/// of the answer, `pour 5` streams much text, `fail KIND` fails at once, `half KIND` in the middle, `call then fail` after
/// its call, `never` says nothing, and anything else is echoed.
struct ScriptedModel {
    resume: Arc<Semaphore>,
}

impl ChatModel for ScriptedModel {
    fn declarations(&self) -> Provider {
        Provider::Openai
    }

    fn name(&self) -> &str {
        "scripted/1"
    }

    fn window(&self) -> usize {
        128_000
    }

    fn ask(&self, request: ChatRequest) -> ChatStream {
        let told = match request.messages.last() {
            Some(ChatMessage::User { text }) => text.clone(),
            _ => "I was answered.".to_owned(),
        };
        if request
            .messages
            .iter()
            .any(|message| matches!(message, ChatMessage::User { text } if text == "call then fail"))
            && matches!(request.messages.last(), Some(ChatMessage::Tools { .. }))
        {
            return Box::pin(stream::iter([failed("overloaded")]));
        }
        if let Some(kind) = told.strip_prefix("fail ") {
            return Box::pin(stream::iter([failed(kind)]));
        }
        if let Some(kind) = told.strip_prefix("half ") {
            return Box::pin(stream::iter([Ok(ChatEvent::Text("Well, ".into())), failed(kind)]));
        }
        if told == "never" {
            return Box::pin(stream::pending());
        }
        if let Some(what) = told.strip_prefix("call ") {
            let what = if what == "bad" { json!(7) } else { json!(what) };
            let arguments = CallArguments::Json(json!({ "do": what }));
            let call = ModelCall { id: Some("1".into()), name: "probe".into(), arguments };
            return Box::pin(stream::iter([done(PartContent::Call(call))]));
        }
        if let Some(count) = told.strip_prefix("pour ") {
            return pour(count.parse().unwrap(), self.resume.clone());
        }
        let resume = (told == "wait").then(|| self.resume.clone());
        let begun = stream::iter([Ok(ChatEvent::Text("You said: ".into()))]);
        let ended = stream::once(async move {
            if let Some(resume) = resume {
                resume.acquire().await.unwrap().forget();
            }
            Ok(ChatEvent::Text(told))
        });
        let whole = stream::iter([done(PartContent::Text("said".into()))]);
        Box::pin(begun.chain(ended).chain(whole))
    }
}

/// Waits, then streams so many thousand characters.
fn pour(count: usize, resume: Arc<Semaphore>) -> ChatStream {
    let wait = stream::once(async move {
        resume.acquire().await.unwrap().forget();
        Ok(ChatEvent::Text("It pours: ".into()))
    });
    let pieces = (0..count).map(|number| Ok(ChatEvent::Text(format!("{number:0>1000}"))));
    Box::pin(wait.chain(stream::iter(pieces)).chain(stream::iter([done(PartContent::Text("poured".into()))])))
}

fn failed(kind: &str) -> Result<ChatEvent, ChatError> {
    let kind: ChatErrorKind = serde_json::from_value(kind.into()).unwrap();
    let retry_after = (kind == ChatErrorKind::RateLimited).then(|| Duration::from_millis(16_500));
    Err(ChatError { kind, model: "scripted/1".into(), detail: "told to".into(), retry_after, context: None })
}

fn done(part: PartContent) -> Result<ChatEvent, ChatError> {
    let message = ModelMessage { by: "scripted/1".into(), parts: vec![ModelPart::new(part)] };
    let usage = Usage::new(3, 2);
    Ok(ChatEvent::Done(ModelReply { message, finish: Finish::Stop, usage }))
}
