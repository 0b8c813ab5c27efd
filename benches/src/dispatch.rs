//! One call through the registry: validation, handler, envelope.

use std::sync::Arc;
use std::time::{Duration, Instant};

use quarterdeck_compiler::{Inspectors, NativeInspector, Options, Stamp, Tree, compile};
use quarterdeck_contracts::handler::{Context, NATIVE_KIND, NativeHandler};
use quarterdeck_contracts::{ToolError, ToolResponse, native_source_hash, parse_json};
use quarterdeck_host_js::{HostConfig, JS_KIND, JsHost, JsInspector};
use quarterdeck_runtime::{Hosts, NativeHost, Registry, Snapshot};
use quarterdeck_schema::Schema;
use quarterdeck_testkit::{FakeContext, Tree as Files, tree};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use tokio::runtime::{Builder, Runtime};

use crate::fixtures::{Fixtures, VARIANTS};
use crate::rounds::{PerCall, measure, measure_async};

/// Validation alone.
pub(crate) fn validate(fixtures: &Fixtures, calls: usize) -> PerCall {
    let schema = Schema::compile(&fixtures.schema).expect("the schema compiles");
    let mut values = fixtures.values();
    measure(calls, |call| {
        assert!(schema.admit(&mut values[call % VARIANTS]).is_ok());
    })
}

/// A native handler, from parsed arguments to the envelope.
pub(crate) fn objects(fixtures: &Fixtures, calls: usize) -> PerCall {
    let (world, values) = (World::native(fixtures), fixtures.values());
    world.runtime.block_on(measure_async(calls, async |call| {
        assert!(world.call(values[call % VARIANTS].clone()).await.is_ok());
    }))
}

/// A native handler, from the arguments' text to the envelope's.
pub(crate) fn texts(fixtures: &Fixtures, calls: usize) -> PerCall {
    let world = World::native(fixtures);
    world
        .runtime
        .block_on(measure_async(calls, async |call| world.text(&fixtures.texts[call % VARIANTS]).await))
}

/// A JavaScript handler in a fresh engine, from text to text.
///
/// `ns` is the time on the call path, with pooled engines ready as they are between calls that are not back to back;
/// `cpu_ns` is all that the process spends for a call when they are back to back, creating and dropping engines included.
pub(crate) fn javascript(fixtures: &Fixtures, export: &str, calls: usize) -> PerCall {
    let world = World::javascript(fixtures, export);
    world.runtime.block_on(async {
        let mut times = Vec::with_capacity(calls);
        for call in 0..calls {
            // Taking an engine orders the next, which takes a few milliseconds.
            for _ in 0..20 {
                if world.host.stats().pooled >= HostConfig::default().pooled_per_handler {
                    break;
                }
                tokio::time::sleep(Duration::from_micros(500)).await;
            }
            let start = Instant::now();
            world.text(&fixtures.texts[call % VARIANTS]).await;
            times.push(start.elapsed());
        }
        times.sort();
        let back_to_back =
            measure_async(calls, async |call| world.text(&fixtures.texts[call % VARIANTS]).await).await;
        PerCall { wall: times[calls / 2], cpu: back_to_back.cpu }
    })
}

pub(crate) struct World {
    pub(crate) runtime: Runtime,
    pub(crate) registry: Arc<Registry>,
    pub(crate) snapshot: Arc<Snapshot>,
    context: Arc<dyn Context>,
    host: Arc<JsHost>,
    /// The handlers on disk, for as long as they may be read.
    _files: Files,
}

impl World {
    async fn call(&self, args: Value) -> ToolResponse {
        self.snapshot.execute("kb_search", args, self.context.clone()).await
    }

    /// From text to text, as a transport would.
    async fn text(&self, args: &str) {
        let args = parse_json(args).expect("the arguments are JSON");
        let text = serde_json::to_string(&self.call(args).await).expect("an envelope is JSON");
        assert!(text.starts_with("{\"ok\":true"), "{text}");
    }

    pub(crate) fn native(fixtures: &Fixtures) -> Self {
        Self::new(fixtures, "handler.rs", NATIVE)
    }

    fn javascript(fixtures: &Fixtures, export: &str) -> Self {
        let source = fixtures
            .handler
            .replace("session: context.sessionId", "session: context.session.id")
            .replace("async function execute(", "async function executeTrivial(");
        let chosen = if export == "execute" { "executeTrivial" } else { export };
        // The peers' handler answers without an envelope; ours must have one.
        let wrapped = format!(
            "{}\nexport async function execute(call) {{\n  const answer = await {chosen}(call);\n  \
             return 'data' in answer ? answer : {{ ok: true, data: answer }};\n}}\n",
            source.replace("export ", "")
        );
        Self::new(fixtures, "handler.js", &wrapped)
    }

    fn new(fixtures: &Fixtures, handler: &str, source: &str) -> Self {
        let files = tree("");
        files.write("kb-search/schema.json", definition(&fixtures.schema).to_string());
        files.write(
            "kb-search/guide.md",
            "# Search\n\nLooks something up. Use it when a question is asked.\n",
        );
        files.write(&format!("kb-search/{handler}"), source);
        let hash = native_source_hash([("handler.rs", NATIVE)]);
        let inspector = NativeInspector::new([("kb_search".to_owned(), hash.clone())]);
        let options = Options::new(
            Inspectors::default().with(JS_KIND, Arc::new(JsInspector)).with(NATIVE_KIND, Arc::new(inspector)),
            Stamp { timestamp: "2026-01-13T09:00:00Z".into(), commit: None },
        );
        let tree = Tree::read(files.path(), &options.inspectors).expect("the folder was made a moment ago");
        let compilation = compile(&tree, &options);
        let artifact = compilation.artifact.unwrap_or_else(|| panic!("{:?}", compilation.diagnostics));
        let native = NativeHandler::new("kb_search", Box::leak(hash.into_boxed_str()), search);
        let host = Arc::new(JsHost::new(HostConfig::default()).expect("the engine starts"));
        let hosts = Hosts::default()
            .with(JS_KIND, host.clone())
            .with(NATIVE_KIND, Arc::new(NativeHost::new([native])));
        let registry = Registry::from_artifact(artifact, files.path(), hosts).expect("the artifact is sound");
        let snapshot = registry.snapshot();
        let registry = Arc::new(registry);
        let runtime = Builder::new_current_thread().enable_all().build().expect("a runtime can be made");
        Self { runtime, registry, snapshot, context: FakeContext::new(), host, _files: files }
    }
}

fn definition(parameters: &Value) -> Value {
    json!({
        "toolId": "kb_search", "version": "1.0.0", "description": "Looks something up.", "category": "retrieval",
        "sideEffects": "read_only", "idempotent": true, "requiresConfirmation": false,
        "allowedModes": ["text", "voice"], "latencyBudgetMs": 800, "parameters": parameters,
    })
}

/// What stands in the folder for the function below.
const NATIVE: &str = "pub async fn execute() {}\n";

#[derive(Deserialize)]
struct Args {
    query: String,
}

#[derive(Serialize)]
struct Hits {
    hits: [Hit; 1],
    total: u64,
    session: String,
}

#[derive(Serialize)]
struct Hit {
    id: &'static str,
    title: String,
    score: f64,
}

async fn search(args: Args, context: Arc<dyn Context>) -> Result<Hits, ToolError> {
    let hit = Hit { id: "doc-1", title: args.query.chars().take(20).collect(), score: 0.9 };
    Ok(Hits { hits: [hit], total: 1, session: context.facts().session.id.clone() })
}
