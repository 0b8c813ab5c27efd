//! Versions of one native tool that differ in what they say of themselves, and a process around them.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};

use quarterdeck_compiler::{Inspectors, NativeInspector, Options, Stamp, Tree, compile};
use quarterdeck_contracts::handler::{Context, NATIVE_KIND, NativeHandler};
use quarterdeck_contracts::{Mode, Outcome, Store, ToolError, ToolResponse, native_source_hash};
use quarterdeck_runtime::{
    AllowedDigests, Bundle, BundleFolder, Call, Client, NativeHost, NodeParts, Orchestrator, Registry,
    Rollout, RuntimeParts, Session, VersionAdmin,
};
use quarterdeck_testkit::{new_store, tree};
use serde_json::{Value, json};

use crate::orchestrator::fixture::{AuditRecorder, ManualClock, submit_one};
use crate::probe_tool::hosts;

const HANDLER: &str = "pub async fn execute() {}\n";
pub(crate) const MAX_LOADED: usize = 4;

/// How often any handler of this test ran.
pub(crate) type Runs = Arc<AtomicU64>;

/// Bundles of five versions of the tools `say` and `ask`. Their handlers say which version they belong to.
pub(crate) fn bundles() -> &'static [Bundle] {
    static BUNDLES: OnceLock<Vec<Bundle>> = OnceLock::new();
    BUNDLES.get_or_init(|| (1..=5).map(bundle).collect())
}

fn bundle(number: u32) -> Bundle {
    let files = tree("");
    let hash = native_source_hash([("handler.rs", HANDLER)]);
    for (tool, confirms) in [("say", false), ("ask", true)] {
        let definition = json!({
            "toolId": tool, "version": format!("{number}.0.0"), "description": "For tests.", "category": "action",
            "sideEffects": "writes", "idempotent": false, "requiresConfirmation": confirms,
            "allowedModes": ["text", "voice"], "latencyBudgetMs": 5000, "timeoutMs": 30000,
            "parameters": { "type": "object", "additionalProperties": false, "properties": {} },
        });
        files.write(&format!("{tool}/schema.json"), definition.to_string());
        files.write(&format!("{tool}/guide.md"), "# Tool\n\nSays it. Use it when testing.\n");
        files.write(&format!("{tool}/handler.rs"), HANDLER);
    }
    let ids = ["say", "ask"].map(|id| (id.to_owned(), hash.clone()));
    let options = Options::new(
        Inspectors::default().with(NATIVE_KIND, Arc::new(NativeInspector::new(ids))),
        Stamp { timestamp: "2026-01-13T09:00:00Z".into(), commit: None },
    );
    let compilation = compile(&Tree::read(files.path(), &options.inspectors).unwrap(), &options);
    let artifact = compilation.artifact.unwrap_or_else(|| panic!("{:?}", compilation.diagnostics));
    Bundle::collect(artifact, files.path()).unwrap()
}

pub(crate) fn digest(number: usize) -> String {
    bundles()[number].digest().to_owned()
}

/// What outlives a process.
pub(crate) struct Disk {
    pub(crate) store: Arc<dyn Store>,
    pub(crate) folder: tempfile::TempDir,
    pub(crate) runs: Runs,
}

impl Disk {
    pub(crate) fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        Self { store: new_store(), folder, runs: Runs::default() }
    }

    pub(crate) fn bundle_file(&self, number: usize) -> std::path::PathBuf {
        self.folder.path().join(format!("{}.json", digest(number)))
    }
}

/// A process.
pub(crate) struct World {
    pub(crate) registry: Arc<Registry>,
    pub(crate) orchestrator: Orchestrator,
    pub(crate) admin: Arc<VersionAdmin>,
    pub(crate) audit: Arc<AuditRecorder>,
    pub(crate) clock: Arc<ManualClock>,
}

impl World {
    /// Started with a version, and whatever was loaded before.
    pub(crate) async fn start(disk: &Disk, base: usize) -> Self {
        Self::start_with(disk, base, AllowedDigests::Any).await
    }

    pub(crate) async fn start_with(disk: &Disk, base: usize, allowed: AllowedDigests) -> Self {
        Self::start_node(disk, base, allowed, None).await
    }

    pub(crate) async fn start_node(
        disk: &Disk,
        base: usize,
        allowed: AllowedDigests,
        node: Option<&str>,
    ) -> Self {
        let runs = disk.runs.clone();
        let hash: &'static str = Box::leak(native_source_hash([("handler.rs", HANDLER)]).into_boxed_str());
        let handlers = ["say", "ask"].map(|id| {
            let runs = runs.clone();
            NativeHandler::new(id, hash, move |_: Value, context| say(context, runs.clone()))
        });
        let base = bundles()[base].clone();
        let registry =
            Registry::from_bundle(base.clone(), disk.folder.path(), hosts(NativeHost::new(handlers)));
        let registry = Arc::new(registry.unwrap());
        let (clock, audit) = (ManualClock::new(), Arc::new(AuditRecorder::default()));
        let orchestrator = Orchestrator::new(RuntimeParts {
            clock: clock.clone(),
            audit: audit.clone(),
            node: node.map(|name| NodeParts { name: name.into(), address: format!("http://{name}.test") }),
            ..RuntimeParts::new(disk.store.clone())
        });
        let folder = BundleFolder::new(disk.folder.path().to_owned(), 8);
        let admin = VersionAdmin::new(registry.clone(), orchestrator.clone(), folder, allowed, MAX_LOADED);
        admin.keep_base(&base);
        orchestrator.renew_node().await.unwrap();
        admin.restore().await.unwrap();
        Self { registry, orchestrator, admin: Arc::new(admin), audit, clock }
    }

    pub(crate) async fn open(&self, client: &str) -> Session {
        self.orchestrator.open(Client::anonymous(client), Mode::Text, &self.registry).await.unwrap()
    }

    pub(crate) async fn resume(&self, id: &str, client: &str) -> Session {
        self.orchestrator.resume(id, Client::anonymous(client), &self.registry).await.unwrap()
    }

    /// Loads a version and gives it to all new sessions.
    pub(crate) async fn activate(&self, number: usize) {
        let bundle = Some(bundles()[number].clone());
        let audience = quarterdeck_runtime::Audience::Everyone;
        self.admin.activate(&digest(number), bundle, audience).await.unwrap();
    }

    pub(crate) async fn set_rollout(&self, rules: Value) {
        let rollout: Rollout = serde_json::from_value(rules).unwrap();
        self.admin.set_rollout(rollout).await.unwrap();
    }

    /// Which versions are loaded.
    pub(crate) fn loaded(&self) -> Vec<usize> {
        let views = self.registry.versions();
        views.iter().map(|view| number_of(view.snapshot.content_hash())).collect()
    }
}

pub(crate) fn number_of(digest: &str) -> usize {
    bundles().iter().position(|bundle| bundle.digest() == digest).unwrap()
}

pub(crate) fn version_of(session: &Session) -> usize {
    number_of(session.snapshot().content_hash())
}

/// Calls a tool in a turn of its own. The answer must be of the session's version, by its stamp and by its handler.
pub(crate) async fn call(session: &Session) -> Arc<ToolResponse> {
    session.begin_turn(None);
    let response = submit_one(&session.connect(), Call::new("say", json!({}))).await;
    assert_eq!(&*response.meta.registry_version, session.snapshot().version());
    let Outcome::Success(said) = &response.outcome else { panic!("{response:?}") };
    assert_eq!(said["toolVersion"], format!("{}.0.0", version_of(session) + 1));
    assert_eq!(said["toolsVersion"], session.snapshot().version());
    response
}

async fn say(context: Arc<dyn Context>, runs: Runs) -> Result<Value, ToolError> {
    runs.fetch_add(1, Ordering::Relaxed);
    tokio::task::yield_now().await;
    let facts = context.facts();
    Ok(json!({ "toolVersion": facts.tool.version, "toolsVersion": facts.session.tools_version }))
}
