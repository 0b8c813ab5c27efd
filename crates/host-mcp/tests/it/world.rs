//! What the tests share: a host with one server, its tools, and what it reports.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use quarterdeck_contracts::handler::{
    Context, Handler, HandlerFiles, HandlerHost, HandlerToLoad, HostError, HostEvent, HostObserver, Limits,
};
use quarterdeck_contracts::{
    HandlerAnswer, Metadata, Outcome, ToolError, UpstreamEvent, UpstreamMonitor, UpstreamState, UpstreamView,
};
use quarterdeck_host_mcp::{
    Binding, McpHost, PublishedTool, ServerName, StdioConfig, ToolDigest, UpstreamConfig, UpstreamLimits,
    UpstreamTransport, published_to_text,
};
use quarterdeck_outbound::SecretText;
use quarterdeck_testkit::FakeContext;
use serde_json::{Value, json};

use crate::stdio_server::{self, NOTES};

pub(crate) const MINUTE: Limits = Limits { timeout: Duration::from_secs(60) };
const SERVER: &str = "desk";

/// A host with one server.
pub(crate) struct World {
    pub(crate) host: McpHost,
    events: Arc<Events>,
    folder: tempfile::TempDir,
}

/// A tool that writes, or one that does not.
#[derive(Clone, Copy, PartialEq)]
pub(crate) enum Kind {
    Reads,
    Writes,
    WritesIdempotently,
}

#[derive(Default)]
struct Events(Mutex<Vec<UpstreamEvent>>);

impl HostObserver for Events {
    fn observe(&self, event: HostEvent) {
        if let HostEvent::Upstream { server, event } = event {
            assert_eq!(server, SERVER);
            self.0.lock().unwrap().push(event);
        }
    }
}

pub(crate) fn limits() -> UpstreamLimits {
    UpstreamLimits {
        min_backoff: Duration::from_millis(20),
        max_backoff: Duration::from_millis(100),
        start_timeout: Duration::from_secs(60),
        ..UpstreamLimits::default()
    }
}

impl World {
    /// With the server of the SDK.
    pub(crate) fn stdio() -> Self {
        Self::stdio_with(limits())
    }

    pub(crate) fn stdio_with(limits: UpstreamLimits) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let notes = folder.path().join("notes");
        let program = std::env::current_exe().unwrap();
        let test = "stdio_server::serves_where_it_is_started_as_a_server";
        let config = StdioConfig {
            command: program.to_str().unwrap().into(),
            args: [test, "--exact", "--nocapture", "--test-threads=2"].map(str::to_owned).to_vec(),
            env: BTreeMap::from([(NOTES.to_owned(), SecretText::from(notes.to_str().unwrap()))]),
            cwd: None,
        };
        Self::with(UpstreamTransport::Stdio(config), limits, folder)
    }

    pub(crate) fn with_transport(transport: UpstreamTransport) -> Self {
        Self::with(transport, limits(), tempfile::tempdir().unwrap())
    }

    pub(crate) fn with_limits(transport: UpstreamTransport, limits: UpstreamLimits) -> Self {
        Self::with(transport, limits, tempfile::tempdir().unwrap())
    }

    fn with(transport: UpstreamTransport, limits: UpstreamLimits, folder: tempfile::TempDir) -> Self {
        let name = ServerName::parse(SERVER).unwrap();
        let host = McpHost::new([UpstreamConfig { name, transport, limits }]);
        let events = Arc::new(Events::default());
        host.observe(events.clone());
        Self { host, events, folder }
    }

    /// A tool as the server of the SDK publishes it at first.
    pub(crate) fn tool(&self, name: &str, kind: Kind) -> Arc<dyn Handler> {
        let published =
            stdio_server::published().iter().map(PublishedTool::from).find(|tool| tool.name == name);
        self.load(&published.unwrap(), kind)
    }

    pub(crate) fn load(&self, published: &PublishedTool, kind: Kind) -> Arc<dyn Handler> {
        self.load_with(&published.name, &published.digest(), Some(published), kind)
    }

    pub(crate) fn load_with(
        &self,
        name: &str,
        digest: &ToolDigest,
        published: Option<&PublishedTool>,
        kind: Kind,
    ) -> Arc<dyn Handler> {
        let server = ServerName::parse(SERVER).unwrap();
        let binding = Binding { server, tool: name.to_owned(), digest: digest.clone() };
        let mut files = HandlerFiles::default();
        files.insert("tool/handler.mcp.json".to_owned(), binding.to_text().into_bytes());
        if let Some(published) = published {
            files.insert("tool/published.json".to_owned(), published_to_text(published).into_bytes());
        }
        let metadata = metadata(name, kind);
        self.host
            .load(HandlerToLoad { metadata: &metadata, entry: "tool/handler.mcp.json", files: &files })
            .unwrap()
    }

    /// What the server was asked, in order.
    pub(crate) fn notes(&self) -> Vec<String> {
        let text = std::fs::read_to_string(self.folder.path().join("notes")).unwrap_or_default();
        text.lines().map(str::to_owned).collect()
    }

    pub(crate) fn view(&self) -> UpstreamView {
        self.host.list().remove(0)
    }

    pub(crate) fn events(&self) -> Vec<UpstreamEvent> {
        self.events.0.lock().unwrap().clone()
    }

    /// Ends when something holds. Tests have a limit of their own for one that never does.
    pub(crate) async fn until(&self, holds: impl Fn(&Self) -> bool) {
        while !holds(self) {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    }

    pub(crate) async fn until_connected(&self) {
        self.until(|world| world.view().state == UpstreamState::Connected).await;
    }
}

fn metadata(name: &str, kind: Kind) -> Metadata {
    let effects = if kind == Kind::Reads { "read_only" } else { "writes" };
    serde_json::from_value(json!({
        "toolId": name, "version": "1.0.0", "description": "A tool.", "category": "action",
        "sideEffects": effects, "idempotent": kind != Kind::Writes, "requiresConfirmation": false,
        "allowedModes": ["text"], "latencyBudgetMs": 100,
    }))
    .unwrap()
}

pub(crate) async fn call(handler: &Arc<dyn Handler>, args: Value) -> HandlerAnswer {
    call_in(handler, args, FakeContext::new()).await
}

pub(crate) async fn call_in(
    handler: &Arc<dyn Handler>,
    args: Value,
    context: Arc<FakeContext>,
) -> HandlerAnswer {
    handler.run(args, context, MINUTE).await.unwrap()
}

pub(crate) async fn call_within(
    handler: &Arc<dyn Handler>,
    timeout: Duration,
) -> Result<HandlerAnswer, HostError> {
    let context: Arc<dyn Context> = FakeContext::new();
    handler.run(json!({}), context, Limits { timeout }).await
}

pub(crate) fn data(answer: HandlerAnswer) -> Value {
    match answer.outcome {
        Outcome::Success(data) => data,
        Outcome::Failure(error) => panic!("failed: {error:?}"),
    }
}

pub(crate) fn error(answer: HandlerAnswer) -> ToolError {
    match answer.outcome {
        Outcome::Failure(error) => error,
        Outcome::Success(data) => panic!("succeeded: {data}"),
    }
}

pub(crate) fn reason(error: &ToolError) -> &str {
    error.details.as_ref().and_then(|details| details["reason"].as_str()).unwrap_or_default()
}
