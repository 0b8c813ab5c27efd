//! A server with a handful of native tools whose effects can be counted.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

use quarterdeck_compiler::{Inspectors, NativeInspector, Options, Stamp, Tree, compile, write_artifact};
use quarterdeck_contracts::handler::{Context, NATIVE_KIND, NativeHandler};
use quarterdeck_contracts::{ErrorType, ToolError, native_source_hash};
use quarterdeck_mcp_server::{McpParts, McpServer, McpSettings};
use quarterdeck_runtime::audit::{AuditEvent, AuditSink};
use quarterdeck_runtime::{Hosts, NativeHost, Orchestrator, Registry, RuntimeParts};
use quarterdeck_testkit::{Tree as Files, new_store, tree};
use serde_json::{Value, json};
use tokio::sync::Semaphore;

const HANDLER: &str = "pub async fn execute() {}\n";

/// A server, and what a test looks at.
pub(crate) struct World {
    pub(crate) server: McpServer,
    pub(crate) registry: Arc<Registry>,
    pub(crate) effects: Arc<Effects>,
    pub(crate) audit: Arc<AuditRecorder>,
    files: Files,
}

/// What the handlers have done.
#[derive(Default)]
pub(crate) struct Effects {
    done: Mutex<BTreeMap<String, u32>>,
    /// Each permit lets a handler end that waits.
    pub(crate) gate: Arc<Gate>,
}

pub(crate) struct Gate {
    /// One permit for each handler that has begun to wait.
    pub(crate) waiting: Semaphore,
    pub(crate) open: Semaphore,
}

impl Default for Gate {
    fn default() -> Self {
        Self { waiting: Semaphore::new(0), open: Semaphore::new(0) }
    }
}

impl Gate {
    async fn pass(&self) {
        self.waiting.add_permits(1);
        self.open.acquire().await.unwrap().forget();
    }

    /// Waits until one more handler has come to the gate.
    pub(crate) async fn wait_for_one(&self) {
        self.waiting.acquire().await.unwrap().forget();
    }
}

impl Effects {
    pub(crate) fn times(&self, what: &str) -> u32 {
        self.done.lock().unwrap().get(what).copied().unwrap_or(0)
    }

    fn count(&self, what: &str) {
        *self.done.lock().unwrap().entry(what.to_owned()).or_default() += 1;
    }
}

/// A trail in memory.
#[derive(Default)]
pub(crate) struct AuditRecorder(Mutex<Vec<AuditEvent>>);

impl AuditRecorder {
    pub(crate) fn count(&self, event: &str) -> usize {
        self.0.lock().unwrap().iter().filter(|it| &*it.event == event).count()
    }

    /// The values of a field in the events of one kind.
    pub(crate) fn field(&self, event: &str, field: &str) -> Vec<Value> {
        let events = self.0.lock().unwrap();
        events.iter().filter(|it| &*it.event == event).map(|it| it.fields[field].clone()).collect()
    }
}

impl AuditSink for AuditRecorder {
    fn record(&self, event: AuditEvent) {
        self.0.lock().unwrap().push(event);
    }
}

impl World {
    pub(crate) fn new() -> Self {
        Self::with(McpSettings::default())
    }

    pub(crate) fn with(settings: McpSettings) -> Self {
        let effects = Arc::<Effects>::default();
        let files = tree("");
        write_tools(&files, &tools());
        let path = files.join("tool_registry.json");
        let registry = Arc::new(Registry::load(&path, files.path(), hosts(&effects)).unwrap());
        let audit = Arc::<AuditRecorder>::default();
        let orchestrator =
            Orchestrator::new(RuntimeParts { audit: audit.clone(), ..RuntimeParts::new(new_store()) });
        let server =
            McpServer::new(McpParts { orchestrator, registry: registry.clone(), knowledge: None, settings });
        Self { server, registry, effects, audit, files }
    }

    /// Activates a registry in which a tool is described in other words.
    pub(crate) fn change_tools(&self) {
        let mut tools = tools();
        tools[0]["description"] = json!("Says the same again, louder.");
        write_tools(&self.files, &tools);
        self.registry.reload().unwrap();
    }
}

fn write_tools(files: &Files, tools: &[Value]) {
    for tool in tools {
        let id = tool["toolId"].as_str().unwrap();
        let folder = id.replace('_', "-");
        files.write(&format!("{folder}/handler.rs"), HANDLER);
        files.write(&format!("{folder}/schema.json"), tool.to_string());
        files.write(
            &format!("{folder}/guide.md"),
            format!("# {id}\n\nDoes what it is told, for tests. Use it when nothing else will do.\n"),
        );
    }
    let hash = native_source_hash([("handler.rs", HANDLER)]);
    let ids = tools.iter().map(|tool| (tool["toolId"].as_str().unwrap().to_owned(), hash.clone()));
    let options = Options::new(
        Inspectors::default().with(NATIVE_KIND, Arc::new(NativeInspector::new(ids))),
        Stamp { timestamp: "2026-01-13T09:00:00Z".into(), commit: None },
    );
    let compilation = compile(&Tree::read(files.path(), &options.inspectors).unwrap(), &options);
    let artifact = compilation.artifact.unwrap_or_else(|| panic!("{:?}", compilation.diagnostics));
    write_artifact(&artifact, &files.join("tool_registry.json")).unwrap();
}

fn definition(id: &str, more: Value) -> Value {
    let mut definition = json!({
        "toolId": id, "version": "1.2.3", "description": "Does what it is told.", "category": "utility",
        "sideEffects": "read_only", "idempotent": true, "requiresConfirmation": false, "allowedModes": ["text"],
        "latencyBudgetMs": 60_000,
        "parameters": {
            "type": "object", "additionalProperties": false,
            "properties": { "what": { "type": "string", "maxLength": 100, "description": "What." } },
        },
    });
    for (key, value) in more.as_object().unwrap() {
        definition[key] = value.clone();
    }
    definition
}

fn writes(more: Value) -> Value {
    let mut fields = json!({ "category": "action", "sideEffects": "writes", "idempotent": false });
    for (key, value) in more.as_object().unwrap() {
        fields[key] = value.clone();
    }
    fields
}

fn tools() -> Vec<Value> {
    let returns =
        json!({ "type": "object", "required": ["said"], "properties": { "said": { "type": "string" } } });
    vec![
        definition("echo", json!({ "returns": returns })),
        definition("book", writes(json!({}))),
        definition("book_slowly", writes(json!({}))),
        definition("pay", writes(json!({ "requiresConfirmation": true }))),
        definition("steps", json!({})),
        definition("wait", json!({})),
        definition("speak", json!({ "allowedModes": ["voice"] })),
        definition("members", json!({ "availability": { "authenticated": true } })),
    ]
}

fn hosts(effects: &Arc<Effects>) -> Hosts {
    let hash: &'static str = Box::leak(native_source_hash([("handler.rs", HANDLER)]).into_boxed_str());
    let handlers = tools().into_iter().map(|tool| {
        let id: &'static str = Box::leak(tool["toolId"].as_str().unwrap().to_owned().into_boxed_str());
        let effects = effects.clone();
        NativeHandler::new(id, hash, move |args: Value, context: Arc<dyn Context>| {
            execute(id, args, context, effects.clone())
        })
    });
    Hosts::default().with(NATIVE_KIND, Arc::new(NativeHost::new(handlers)))
}

async fn execute(
    id: &'static str,
    args: Value,
    context: Arc<dyn Context>,
    effects: Arc<Effects>,
) -> Result<Value, ToolError> {
    let what = args["what"].as_str().unwrap_or_default().to_owned();
    match id {
        "echo" if what == "fail" => Err(ToolError::new(ErrorType::Conflict, "The slot is taken.")),
        "echo" => {
            effects.count(&what);
            Ok(json!({ "said": what }))
        }
        "book_slowly" => {
            effects.gate.pass().await;
            effects.count(&what);
            Ok(json!({ "booked": what }))
        }
        "steps" => {
            for step in ["first", "second"] {
                context.progress(step);
                effects.gate.pass().await;
            }
            context.progress("last");
            Ok(json!({ "said": what }))
        }
        "wait" => {
            effects.gate.waiting.add_permits(1);
            let _stopped = CountsCancelled(effects, context);
            std::future::pending().await
        }
        _ => {
            effects.count(&what);
            Ok(json!({ "booked": what }))
        }
    }
}

/// Counts a handler that is stopped because its signal says so.
struct CountsCancelled(Arc<Effects>, Arc<dyn Context>);

impl Drop for CountsCancelled {
    fn drop(&mut self) {
        if self.1.signal().is_cancelled() {
            self.0.count("cancelled");
        }
    }
}
