//! Resumes a session on disk and makes calls that write to the store and outside it.

use std::fs::OpenOptions;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use quarterdeck_compiler::{Inspectors, NativeInspector, Options, Stamp, Tree, compile};
use quarterdeck_contracts::handler::{CapabilityCall, Context, NATIVE_KIND, NativeHandler};
use quarterdeck_contracts::{Capability, Mode, Outcome, ToolError, native_source_hash};
use quarterdeck_runtime::audit::AuditLog;
use quarterdeck_runtime::{
    Call, Client, Hosts, NativeHost, Orchestrator, Registry, Reply, RuntimeParts, SessionError, Snapshot,
};
use quarterdeck_testkit::{open_store, tree};
use serde_json::{Value, json};

use crate::node_on;

const HANDLER: &str = "pub async fn execute() {}\n";
const SESSION: &str = "ses_that_is_killed";

/// Makes the calls one after another, each in its own turn, and prints each result once it is delivered.
pub(crate) fn run(folder: &str, store: &str, calls: &[&str]) {
    let (folder, store) = (PathBuf::from(folder), open_store(store));
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
    runtime.block_on(async {
        let audit =
            Arc::new(AuditLog::open(&folder.join("audit.jsonl"), "local", store.clone()).await.unwrap());
        let node = node_on(&*store);
        let orchestrator = Orchestrator::new(RuntimeParts { audit, node, ..RuntimeParts::new(store) });
        orchestrator.renew_node().await.unwrap();
        let (client, snapshot) = (Client::anonymous("ann"), snapshot(&folder));
        let session = match orchestrator.resume(SESSION, client.clone(), snapshot.clone()).await {
            Err(SessionError::NotFound) => orchestrator.open_as(SESSION, client, Mode::Text, snapshot).await,
            resumed => resumed,
        };
        let session = session.unwrap();
        let connection = session.connect();
        for id in calls {
            session.begin_turn(None);
            let call = Call::new("book", json!({ "what": id })).with_id(*id);
            for reply in connection.submit(vec![call]).all().await {
                let Reply::Answer(answer) = reply else { panic!("no confirmation is needed") };
                let result = match &answer.response.outcome {
                    Outcome::Success(_) => "done".to_owned(),
                    Outcome::Failure(error) if error.partial_side_effects == Some(true) => {
                        "unknown".to_owned()
                    }
                    Outcome::Failure(error) => panic!("{error}"),
                };
                answer.mark_delivered();
                println!("{id} {result}");
            }
        }
    });
}

/// Appends a line to a file, as a booking in another system would, and stores a value.
async fn book(args: Value, context: Arc<dyn Context>, outside: PathBuf) -> Result<Value, ToolError> {
    let what = args["what"].as_str().unwrap();
    let mut file = OpenOptions::new().create(true).append(true).open(outside).unwrap();
    file.write_all(format!("{what}\n").as_bytes()).unwrap();
    let put = CapabilityCall {
        capability: Capability::STORE,
        method: "put".into(),
        args: vec![json!(what), json!({ "booked": what })],
    };
    context.request(put).await?;
    Ok(json!({ "did": what }))
}

fn snapshot(folder: &Path) -> Arc<Snapshot> {
    let files = tree("");
    files.write("book/handler.rs", HANDLER);
    files.write("book/guide.md", "# Book\n\nBooks it. Use it when something is to be booked.\n");
    files.write(
        "book/schema.json",
        json!({
            "toolId": "book", "version": "1.0.0", "description": "Books.", "category": "action",
            "sideEffects": "writes", "idempotent": false, "requiresConfirmation": false, "allowedModes": ["text"],
            "latencyBudgetMs": 5000, "capabilities": ["store"],
            "parameters": {
                "type": "object", "additionalProperties": false, "required": ["what"],
                "properties": { "what": { "type": "string", "description": "What." } },
            },
        })
        .to_string(),
    );
    let hash = native_source_hash([("handler.rs", HANDLER)]);
    let inspector = NativeInspector::new([("book".to_owned(), hash.clone())]);
    let options = Options::new(
        Inspectors::default().with(NATIVE_KIND, Arc::new(inspector)),
        Stamp { timestamp: "2026-01-13T09:00:00Z".into(), commit: None },
    );
    let artifact =
        compile(&Tree::read(files.path(), &options.inspectors).unwrap(), &options).artifact.unwrap();
    let outside = folder.join("outside.txt");
    let native = NativeHandler::new("book", Box::leak(hash.into_boxed_str()), move |args, context| {
        book(args, context, outside.clone())
    });
    let hosts = Hosts::default().with(NATIVE_KIND, Arc::new(NativeHost::new([native])));
    Registry::from_artifact(artifact, files.path(), hosts).unwrap().snapshot()
}
