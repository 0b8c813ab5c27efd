//! A hostile server, its tools as folders, and everything that stands between it and a model.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use quarterdeck_compiler::{Inspectors, Options, Stamp, Tree, compile};
use quarterdeck_contracts::{
    ErrorType, Mode, Outcome, ToolError, ToolResponse, UpstreamMonitor, UpstreamState, UpstreamTool,
    UpstreamView,
};
use quarterdeck_host_mcp::{
    BINDING_FILE, Binding, MCP_KIND, McpHost, McpInspector, PUBLISHED_FILE, PublishedTool, ServerName,
    StdioConfig, UpstreamConfig, UpstreamLimits, UpstreamTransport, published_to_text,
};
use quarterdeck_mcp_attacks::{BOOK, LOOKUP, published_tools};
use quarterdeck_runtime::audit::{AuditEvent, AuditSink};
use quarterdeck_runtime::{
    Answer, Call, Client, Connection, Hosts, Orchestrator, Registry, Reply, RuntimeParts, Session,
};
use quarterdeck_store::MemoryStore;
use quarterdeck_testkit::tree;
use serde_json::{Value, json};
use tempfile::TempDir;

use crate::notes::Notes;
use crate::until::until;

/// The tools of the registry. All but the first are the server's `book`.
pub(crate) const LOOK: &str = "look";
pub(crate) const BOOKING: &str = "booking";
/// The same, where the user is asked.
pub(crate) const ASKED_BOOKING: &str = "asked_booking";

pub(crate) const HOSTILE: &str = env!("CARGO_BIN_EXE_hostile-mcp-server");

/// A trail in memory.
#[derive(Default)]
pub(crate) struct AuditRecorder(Mutex<Vec<AuditEvent>>);

impl AuditRecorder {
    pub(crate) fn text(&self) -> String {
        self.0.lock().unwrap().iter().map(|it| format!("{} {}\n", it.event, json!(it.fields))).collect()
    }
}

impl AuditSink for AuditRecorder {
    fn record(&self, event: AuditEvent) {
        self.0.lock().unwrap().push(event);
    }
}

pub(crate) struct World {
    folder: TempDir,
    pub(crate) audit: Arc<AuditRecorder>,
    pub(crate) host: Arc<McpHost>,
    pub(crate) notes: Notes,
    registry: Registry,
    orchestrator: Orchestrator,
}

/// How a world differs from the usual one.
pub(crate) struct Settings {
    pub(crate) limits: UpstreamLimits,
    /// The hard stop of every call.
    pub(crate) timeout: Duration,
}

impl Default for Settings {
    fn default() -> Self {
        let limits = UpstreamLimits {
            min_backoff: Duration::from_millis(20),
            max_backoff: Duration::from_millis(200),
            stop_timeout: Duration::from_millis(300),
            ..UpstreamLimits::default()
        };
        Self { limits, timeout: Duration::from_secs(60) }
    }
}

impl World {
    /// A server over stdio.
    pub(crate) fn stdio(behaviour: &str) -> Self {
        Self::stdio_with(behaviour, Settings::default())
    }

    pub(crate) fn stdio_with(behaviour: &str, settings: Settings) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let notes = folder.path().join("notes.jsonl");
        let transport = UpstreamTransport::Stdio(StdioConfig {
            command: HOSTILE.to_owned(),
            args: vec![behaviour.to_owned(), notes.to_string_lossy().into_owned()],
            env: BTreeMap::new(),
            cwd: None,
        });
        Self::new(folder, transport, settings)
    }

    /// A server behind any transport, which writes its notes to `notes.jsonl` in the folder.
    pub(crate) fn new(folder: TempDir, transport: UpstreamTransport, settings: Settings) -> Self {
        let config = UpstreamConfig {
            name: ServerName::parse("hostile").unwrap(),
            transport,
            limits: settings.limits,
        };
        let host = Arc::new(McpHost::new([config]));
        let registry = registry(&host, settings.timeout);
        let audit = Arc::new(AuditRecorder::default());
        let parts = RuntimeParts { audit: audit.clone(), ..RuntimeParts::new(Arc::new(MemoryStore::new())) };
        let orchestrator = Orchestrator::new(parts);
        registry.observe_hosts(&orchestrator.host_observer());
        let notes = Notes(folder.path().join("notes.jsonl"));
        Self { folder, audit, host, notes, registry, orchestrator }
    }

    /// Ends everything but the folder with the notes.
    pub(crate) fn into_folder(self) -> TempDir {
        self.folder
    }

    pub(crate) async fn open(&self, client: &str) -> (Session, Connection) {
        let client = Client::anonymous(client);
        let session = self.orchestrator.open(client, Mode::Text, self.registry.snapshot()).await.unwrap();
        session.begin_turn(None);
        let connection = session.connect();
        (session, connection)
    }

    /// One call in a session of its own.
    pub(crate) async fn call(&self, tool: &str, what: &str) -> Arc<ToolResponse> {
        self.submit(Call::new(tool, json!({ "what": what }))).await
    }

    pub(crate) async fn submit(&self, call: Call) -> Arc<ToolResponse> {
        let (_session, connection) = self.open("ann").await;
        submit(&connection, call).await
    }

    /// The same once the server is there.
    pub(crate) async fn call_when_connected(&self, tool: &str, what: &str) -> Arc<ToolResponse> {
        self.connected().await;
        self.call(tool, what).await
    }

    pub(crate) async fn connected(&self) {
        until("the server is connected", || (self.view().state == UpstreamState::Connected).then_some(()))
            .await;
    }

    /// Waits for the connection that replaces a lost one.
    pub(crate) async fn reconnected(&self) {
        until("the server is connected again", || {
            let view = self.view();
            (view.restarts > 0 && view.state == UpstreamState::Connected).then_some(())
        })
        .await;
    }

    pub(crate) fn view(&self) -> UpstreamView {
        self.host.list().remove(0)
    }

    pub(crate) fn tool(&self, id: &str) -> UpstreamTool {
        self.view().tools.into_iter().find(|tool| tool.tool_id == id).unwrap()
    }
}

pub(crate) async fn submit(connection: &Connection, call: Call) -> Arc<ToolResponse> {
    match connection.submit(vec![call]).all().await.remove(0) {
        Reply::Answer(answer) => receive(answer),
        Reply::AwaitingConfirmation { .. } => panic!("the call waits for the user"),
    }
}

pub(crate) fn receive(answer: Answer) -> Arc<ToolResponse> {
    let response = answer.response.clone();
    answer.mark_delivered();
    response
}

pub(crate) fn error(response: &Arc<ToolResponse>) -> &ToolError {
    match &response.outcome {
        Outcome::Success(data) => panic!("a success: {:.500}", data.to_string()),
        Outcome::Failure(error) => error,
    }
}

pub(crate) fn kind(response: &Arc<ToolResponse>) -> Option<ErrorType> {
    match &response.outcome {
        Outcome::Success(_) => None,
        Outcome::Failure(error) => Some(error.kind),
    }
}

/// Everything that a model would read of it.
pub(crate) fn for_model(response: &Arc<ToolResponse>) -> String {
    serde_json::to_string(&response.for_model()).unwrap()
}

/// Asserts that a response is the honest answer about something.
#[track_caller]
pub(crate) fn assert_honest(response: &Arc<ToolResponse>, tool: &str, what: &str) {
    assert_eq!(kind(response), None, "{}", for_model(response));
    assert!(for_model(response).contains(&format!("{tool} {what}")), "{}", for_model(response));
}

/// Asserts that a write may or may not have happened, and that the model is told so.
#[track_caller]
pub(crate) fn assert_outcome_unknown(response: &Arc<ToolResponse>) {
    let error = error(response);
    assert_eq!(error.kind, ErrorType::Internal, "{error}");
    assert_eq!(error.details.as_ref().unwrap()["outcome"], "unknown");
    assert_eq!(error.partial_side_effects, Some(true));
    assert!(!error.retryable);
}

fn registry(host: &Arc<McpHost>, timeout: Duration) -> Registry {
    let files = tree("");
    let reads = json!({ "category": "retrieval", "sideEffects": "read_only", "idempotent": true });
    let asks = json!({ "requiresConfirmation": true });
    for (id, name, more) in [(LOOK, LOOKUP, reads), (BOOKING, BOOK, json!({})), (ASKED_BOOKING, BOOK, asks)] {
        let folder = id.replace('_', "-");
        files.write(&format!("{folder}/schema.json"), definition(id, name, timeout, &more).to_string());
        files.write(&format!("{folder}/guide.md"), "# Tool\n\nDoes it. Use it when testing.\n");
        files.write(&format!("{folder}/{BINDING_FILE}"), binding(name).to_text());
        files.write(&format!("{folder}/{PUBLISHED_FILE}"), published_to_text(&published(name)));
    }
    let options = Options::new(
        Inspectors::default().with(MCP_KIND, Arc::new(McpInspector::default())),
        Stamp { timestamp: "2026-01-13T09:00:00Z".into(), commit: None },
    );
    let compilation = compile(&Tree::read(files.path(), &options.inspectors).unwrap(), &options);
    let artifact = compilation.artifact.unwrap_or_else(|| panic!("{:?}", compilation.diagnostics));
    let hosts = Hosts::default().with(MCP_KIND, host.clone());
    Registry::from_artifact(artifact, files.path(), hosts).unwrap()
}

fn published(name: &str) -> PublishedTool {
    let tool = published_tools().into_iter().find(|tool| tool["name"] == name).unwrap();
    serde_json::from_value(tool).unwrap()
}

fn binding(name: &str) -> Binding {
    Binding {
        server: ServerName::parse("hostile").unwrap(),
        tool: name.to_owned(),
        digest: published(name).digest(),
    }
}

fn definition(id: &str, name: &str, timeout: Duration, more: &Value) -> Value {
    let mut definition = json!({
        "toolId": id, "version": "1.0.0", "description": "For tests.", "category": "action",
        "sideEffects": "writes", "idempotent": false, "requiresConfirmation": false,
        "allowedModes": ["text"], "latencyBudgetMs": 1_000,
        "timeoutMs": u64::try_from(timeout.as_millis()).unwrap(),
        "parameters": published(name).input_schema,
    });
    for (name, value) in more.as_object().unwrap() {
        definition[name] = value.clone();
    }
    definition
}
