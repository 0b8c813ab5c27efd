//! A few tools whose effects can be counted, behind an MCP server.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use std::time::{Duration, SystemTime};

use quarterdeck_compiler::{Inspectors, NativeInspector, Options, Stamp, Tree, compile};
use quarterdeck_contracts::handler::{Context, NATIVE_KIND, NativeHandler};
use quarterdeck_contracts::{ToolError, native_source_hash};
use quarterdeck_mcp_server::{McpParts, McpServer, McpSettings};
use quarterdeck_runtime::audit::{AuditEvent, AuditSink};
use quarterdeck_runtime::{Clock, Hosts, NativeHost, Orchestrator, Registry, RuntimeParts};
use quarterdeck_testkit::{new_store, tree};
use serde_json::{Value, json};
use tokio::sync::Notify;

const HANDLER: &str = "pub async fn execute() {}\n";

/// What the handlers of one test did.
#[derive(Default)]
pub(crate) struct Effects {
    done: Mutex<BTreeMap<String, u32>>,
    /// Lets calls of `report`, `pay_later` and `slow_pay` end.
    pub(crate) gate: Notify,
    /// Says that one of them has begun.
    pub(crate) begun: Notify,
}

impl Effects {
    pub(crate) fn times(&self, what: &str) -> u32 {
        self.done.lock().unwrap().get(what).copied().unwrap_or(0)
    }

    pub(crate) fn in_all(&self) -> u32 {
        self.done.lock().unwrap().values().sum()
    }

    fn count(&self, what: &str) {
        *self.done.lock().unwrap().entry(what.to_owned()).or_default() += 1;
    }
}

/// A clock that tests move.
pub(crate) struct ManualClock(Mutex<Duration>);

impl ManualClock {
    pub(crate) fn advance(&self, by: Duration) {
        *self.0.lock().unwrap() += by;
    }
}

impl Clock for ManualClock {
    fn now(&self) -> SystemTime {
        SystemTime::UNIX_EPOCH + Duration::from_secs(1_768_294_800) + self.monotonic()
    }

    fn monotonic(&self) -> Duration {
        *self.0.lock().unwrap()
    }
}

/// The steps of confirmations, as the audit log has them.
#[derive(Default)]
pub(crate) struct ConfirmationSteps(Mutex<Vec<String>>);

impl ConfirmationSteps {
    pub(crate) fn take(&self) -> Vec<String> {
        std::mem::take(&mut *self.0.lock().unwrap())
    }
}

impl AuditSink for ConfirmationSteps {
    fn record(&self, event: AuditEvent) {
        if &*event.event == "confirmation" {
            let fields = json!(event.fields);
            self.0.lock().unwrap().push(fields["step"].as_str().unwrap().to_owned());
        }
    }
}

pub(crate) struct World {
    pub(crate) steps: Arc<ConfirmationSteps>,
    pub(crate) effects: Arc<Effects>,
    pub(crate) clock: Arc<ManualClock>,
    pub(crate) server: McpServer,
    pub(crate) orchestrator: Orchestrator,
}

impl World {
    pub(crate) fn new() -> Self {
        Self::with(McpSettings::default())
    }

    pub(crate) fn with(settings: McpSettings) -> Self {
        let effects = Arc::new(Effects::default());
        let clock = Arc::new(ManualClock(Mutex::default()));
        let steps = Arc::new(ConfirmationSteps::default());
        let orchestrator = Orchestrator::new(RuntimeParts {
            clock: clock.clone(),
            audit: steps.clone(),
            ..RuntimeParts::new(new_store())
        });
        let registry = Arc::new(registry(&effects));
        let parts = McpParts { orchestrator: orchestrator.clone(), registry, knowledge: None, settings };
        Self { steps, effects, clock, server: McpServer::new(parts), orchestrator }
    }
}

fn definition(tool: &str, more: Value) -> Value {
    let mut definition = json!({
        "toolId": tool, "version": "1.0.0", "description": "For tests.", "category": "action",
        "sideEffects": "writes", "idempotent": false, "requiresConfirmation": false, "allowedModes": ["text"],
        "latencyBudgetMs": 5000, "capabilities": [],
        "parameters": {
            "type": "object", "additionalProperties": false, "required": ["what"],
            "properties": {
                "what": { "type": "string", "description": "What." },
                "note": { "type": "string", "description": "A note." },
            },
        },
    });
    for (name, value) in more.as_object().unwrap() {
        definition[name] = value.clone();
    }
    definition
}

fn definitions() -> Vec<Value> {
    let task = |more: Value| {
        let mut task = json!({ "execution": "background", "taskTimeoutMs": 3_600_000 });
        task.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        task
    };
    let returns = json!({
        "type": "object", "additionalProperties": false, "required": ["did"],
        "properties": { "did": { "type": "string", "description": "What was done." } },
    });
    vec![
        definition("look", json!({ "sideEffects": "read_only", "category": "utility" })),
        definition("pay", json!({ "requiresConfirmation": true, "preview": "Pay the {what}." })),
        definition("slow_pay", json!({ "requiresConfirmation": true })),
        definition("report", task(json!({ "returns": returns }))),
        definition("chore", task(json!({}))),
        definition("pay_later", task(json!({ "requiresConfirmation": true }))),
    ]
}

fn registry(effects: &Arc<Effects>) -> Registry {
    let files = tree("");
    let hash = native_source_hash([("handler.rs", HANDLER)]);
    let definitions = definitions();
    let id = |definition: &Value| definition["toolId"].as_str().unwrap().to_owned();
    for definition in &definitions {
        let folder = id(definition).replace('_', "-");
        files.write(&format!("{folder}/schema.json"), definition.to_string());
        files.write(&format!("{folder}/guide.md"), "# Tool\n\nDoes it. Use it when testing.\n");
        files.write(&format!("{folder}/handler.rs"), HANDLER);
    }
    let ids: Vec<String> = definitions.iter().map(id).collect();
    let inspector = NativeInspector::new(ids.iter().map(|id| (id.clone(), hash.clone())));
    let options = Options::new(
        Inspectors::default().with(NATIVE_KIND, Arc::new(inspector)),
        Stamp { timestamp: "2026-01-13T09:00:00Z".into(), commit: None },
    );
    let compilation = compile(&Tree::read(files.path(), &options.inspectors).unwrap(), &options);
    let artifact = compilation.artifact.unwrap_or_else(|| panic!("{:?}", compilation.diagnostics));
    let hash: &'static str = Box::leak(hash.into_boxed_str());
    let handlers = ids.into_iter().map(|id| {
        let (id, effects): (&'static str, _) = (Box::leak(id.into_boxed_str()), effects.clone());
        NativeHandler::new(id, hash, move |args: Value, context| perform(id, args, context, effects.clone()))
    });
    let hosts = Hosts::default().with(NATIVE_KIND, Arc::new(NativeHost::new(handlers)));
    Registry::from_artifact(artifact, files.path(), hosts).unwrap()
}

async fn perform(
    tool: &'static str,
    args: Value,
    context: Arc<dyn Context>,
    effects: Arc<Effects>,
) -> Result<Value, ToolError> {
    let what = args["what"].as_str().unwrap().to_owned();
    match tool {
        "look" => return Ok(json!({ "saw": what })),
        "report" | "chore" | "pay_later" | "slow_pay" => {
            context.progress("half of it");
            effects.begun.notify_one();
            let signal = context.signal();
            tokio::select! {
                () = effects.gate.notified() => {}
                _ = signal.cancelled() => {
                    effects.count(&format!("{what} stopped"));
                    signal.check()?;
                }
            }
        }
        _ => {}
    }
    effects.count(&what);
    Ok(json!({ "did": what }))
}
