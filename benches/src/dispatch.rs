//! One call through the registry: validation, handler, envelope.

use std::sync::Arc;
use std::time::{Duration, Instant};

use quarterdeck_compiler::{Inspectors, NativeInspector, Options, Stamp, Tree, compile};
use quarterdeck_contracts::handler::{
    Context, HandlerFiles, HandlerHost, HandlerToLoad, Limits, NATIVE_KIND, NativeHandler,
};
use quarterdeck_contracts::{Metadata, ToolError, ToolResponse, native_source_hash, parse_json};
use quarterdeck_host_js::{HostConfig, JS_KIND, JsHost, JsInspector};
use quarterdeck_runtime::{Hosts, NativeHost, Registry, Snapshot};
use quarterdeck_schema::Schema;
use quarterdeck_testkit::{FakeContext, Tree as Files, tree};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use tokio::runtime::{Builder, Runtime};

use crate::fixtures::{Fixtures, VARIANTS};
use crate::rounds::{PerCall, measure, measure_async, measure_given};

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
    world.runtime.block_on(measure_given(
        calls,
        |call| values[call % VARIANTS].clone(),
        async |_, args| assert!(world.call(args).await.is_ok()),
    ))
}

/// A native handler, from the arguments' text to the envelope's.
pub(crate) fn texts(fixtures: &Fixtures, calls: usize) -> PerCall {
    let world = World::native(fixtures);
    world
        .runtime
        .block_on(measure_async(calls, async |call| world.text(&fixtures.texts[call % VARIANTS]).await))
}

/// A JavaScript handler in an instance of its own, from text to text, calls back to back: `ns` is the median of the time on
/// the call path, `cpu_ns` all that the process spends for a call.
pub(crate) fn javascript(fixtures: &Fixtures, export: &str, calls: usize) -> PerCall {
    let world = World::javascript(fixtures, export);
    world.runtime.block_on(async {
        let wall = world.median_path(fixtures, calls, Duration::ZERO).await;
        let back_to_back =
            measure_async(calls, async |call| world.text(&fixtures.texts[call % VARIANTS]).await).await;
        PerCall { wall, cpu: back_to_back.cpu }
    })
}

/// The same with a rest of a millisecond before each call.
pub(crate) fn javascript_after_rest(fixtures: &Fixtures, calls: usize) -> PerCall {
    let world = World::javascript(fixtures, "execute");
    let rest = Duration::from_millis(1);
    let wall = world.runtime.block_on(world.median_path(fixtures, calls, rest));
    PerCall { wall, cpu: wall }
}

/// A hundred JavaScript handlers in turn, from parsed arguments to the answer.
pub(crate) fn javascript_in_turn(fixtures: &Fixtures, calls: usize) -> PerCall {
    const HANDLERS: usize = 100;
    let host = JsHost::new(HostConfig::default()).expect("the engine starts");
    let metadata: Metadata = serde_json::from_value(definition(&fixtures.schema)).expect("it is complete");
    let handlers: Vec<_> = (0..HANDLERS)
        .map(|number| {
            let source = format!("export const execute = async ({{ args }}) => ({{ ok: true, data: {{ {number}: args.query }} }});");
            let files = HandlerFiles::from([("tool/handler.js".to_owned(), source.into_bytes())]);
            let handler = HandlerToLoad { metadata: &metadata, entry: "tool/handler.js", files: &files };
            host.load(handler).expect("it loads")
        })
        .collect();
    let values = fixtures.values();
    let runtime = Builder::new_current_thread().enable_all().build().expect("a runtime can be made");
    runtime.block_on(measure_given(
        calls,
        |call| values[call % VARIANTS].clone(),
        async |call, args| {
            let limits = Limits { timeout: Duration::from_secs(10) };
            let answer = handlers[call % HANDLERS].run(args, FakeContext::new(), limits).await;
            assert!(answer.is_ok(), "{answer:?}");
        },
    ))
}

pub(crate) struct World {
    pub(crate) runtime: Runtime,
    pub(crate) registry: Arc<Registry>,
    pub(crate) snapshot: Arc<Snapshot>,
    context: Arc<dyn Context>,
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

    /// The median of the time on the call path, with a rest before each call.
    async fn median_path(&self, fixtures: &Fixtures, calls: usize, rest: Duration) -> Duration {
        let mut times = Vec::with_capacity(calls);
        for call in 0..calls {
            match rest.is_zero() {
                // As a server does, which sends the answer before it takes the next call.
                true => tokio::task::yield_now().await,
                false => tokio::time::sleep(rest).await,
            }
            let start = Instant::now();
            self.text(&fixtures.texts[call % VARIANTS]).await;
            times.push(start.elapsed());
        }
        times.sort();
        times[calls / 2]
    }

    pub(crate) fn native(fixtures: &Fixtures) -> Self {
        Self::new(fixtures, "handler.rs", NATIVE)
    }

    fn javascript(fixtures: &Fixtures, export: &str) -> Self {
        let source = format!("{}\n{JSON_HANDLER}", fixtures.handler);
        let source = source
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
        let hosts =
            Hosts::default().with(JS_KIND, host).with(NATIVE_KIND, Arc::new(NativeHost::new([native])));
        let registry = Registry::from_artifact(artifact, files.path(), hosts).expect("the artifact is sound");
        let snapshot = registry.snapshot();
        let registry = Arc::new(registry);
        let runtime = Builder::new_current_thread().enable_all().build().expect("a runtime can be made");
        Self { runtime, registry, snapshot, context: FakeContext::new(), _files: files }
    }
}

pub(crate) fn definition(parameters: &Value) -> Value {
    json!({
        "toolId": "kb_search", "version": "1.0.0", "description": "Looks something up.", "category": "retrieval",
        "sideEffects": "read_only", "idempotent": true, "requiresConfirmation": false,
        "allowedModes": ["text", "voice"], "latencyBudgetMs": 800, "parameters": parameters,
    })
}

/// Reads and writes the JSON of 500 objects.
const JSON_HANDLER: &str = "\
const OBJECTS = Array.from({ length: 500 }, (_, i) => ({ id: i, name: `record ${i}`, tags: ['ice', 'drift'], score: i / 7 }));
export async function executeJson() {
  return { ok: true, data: JSON.parse(JSON.stringify(OBJECTS)).length };
}
";

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
    let mut title = args.query;
    title.truncate(title.floor_char_boundary(20));
    let hit = Hit { id: "doc-1", title, score: 0.9 };
    Ok(Hits { hits: [hit], total: 1, session: context.facts().session.id.clone() })
}
