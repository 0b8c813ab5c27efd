//! Resumes a session on disk, takes turns in it and starts background tasks, until there are no more turns to take.

use std::fs::OpenOptions;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use quarterdeck_compiler::{Inspectors, NativeInspector, Options, Stamp, Tree, compile};
use quarterdeck_contracts::handler::{NATIVE_KIND, NativeHandler};
use quarterdeck_contracts::{Mode, Store, Table, ToolError, native_source_hash};
use quarterdeck_runtime::{
    Call, Client, Hosts, NativeHost, Orchestrator, Registry, Reply, RuntimeParts, Session, SessionError,
    Snapshot, TaskStatus,
};
use quarterdeck_testkit::{open_store, tree};
use serde_json::{Value, json};

use crate::node_on;

const HANDLER: &str = "pub async fn execute() {}\n";
const SESSION: &str = "ses_that_is_killed";
const TOOLS: [(&str, bool); 2] = [("once", false), ("again", true)];

/// Takes turns, each with a task of either tool, and prints what was told and started. With `until_ended` it starts
/// nothing, and ends when every task has and was told.
pub(crate) fn run(folder: &str, store: &str, round: &str, until_ended: bool) {
    let (folder, store) = (PathBuf::from(folder), open_store(store));
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
    runtime.block_on(async {
        let node = node_on(&*store);
        let orchestrator = Orchestrator::new(RuntimeParts { node, ..RuntimeParts::new(store.clone()) });
        orchestrator.renew_node().await.unwrap();
        let (client, snapshot) = (Client::anonymous("ann"), snapshot(&folder));
        orchestrator.recover_tasks(snapshot.clone()).await.unwrap();
        let session = match orchestrator.resume(SESSION, client.clone(), snapshot.clone()).await {
            Err(SessionError::NotFound) => orchestrator.open_as(SESSION, client, Mode::Text, snapshot).await,
            resumed => resumed,
        };
        let session = session.unwrap();
        println!("ready");
        for turn in 0.. {
            take_turn(&session, &*store, &format!("{round}-{turn:03}")).await;
            let tasks = orchestrator.client_tasks("ann").await.unwrap();
            if until_ended {
                if tasks.iter().all(|task| task.status != TaskStatus::Running) {
                    break;
                }
                tokio::time::sleep(Duration::from_millis(5)).await;
                continue;
            }
            start_tasks(&session, &format!("{round}-{turn:03}")).await;
            tokio::time::sleep(Duration::from_millis(3)).await;
        }
        // What ended with the last look is told in one more turn.
        take_turn(&session, &*store, &format!("{round}-end")).await;
    });
}

/// Stores what the model is told in one commit with the mark that it was.
async fn take_turn(session: &Session, store: &dyn Store, name: &str) {
    let start = session.begin_turn(None);
    let key = format!("s/{SESSION}/{name}");
    store.commit(start.told.put(Table::History, key, json!(start.notes))).await.unwrap();
}

async fn start_tasks(session: &Session, name: &str) {
    let connection = session.connect();
    let calls = TOOLS.map(|(tool, _)| Call::new(tool, json!({ "what": format!("{tool}-{name}") })));
    for reply in connection.submit(calls.into()).all().await {
        let Reply::Answer(answer) = reply else { panic!("no confirmation is needed") };
        // When as many tasks run as may, it is refused.
        if let Some(id) = answer.response.meta.background_task_id.clone() {
            println!("{id}");
        }
        answer.mark_delivered();
    }
}

/// Appends a line to a file, as work in another system would.
async fn work(args: Value, outside: PathBuf) -> Result<Value, ToolError> {
    let what = args["what"].as_str().unwrap();
    let mut file = OpenOptions::new().create(true).append(true).open(outside).unwrap();
    file.write_all(format!("{what}\n").as_bytes()).unwrap();
    tokio::time::sleep(Duration::from_millis(4)).await;
    Ok(json!({ "did": what }))
}

fn snapshot(folder: &Path) -> Arc<Snapshot> {
    let files = tree("");
    for (tool, idempotent) in TOOLS {
        files.write(&format!("{tool}/handler.rs"), HANDLER);
        files.write(&format!("{tool}/guide.md"), "# Work\n\nDoes it. Use it when something is to be done.\n");
        files.write(
            &format!("{tool}/schema.json"),
            json!({
                "toolId": tool, "version": "1.0.0", "description": format!("Does something {tool}."),
                "category": "action", "sideEffects": "writes", "idempotent": idempotent,
                "requiresConfirmation": false, "allowedModes": ["text"], "latencyBudgetMs": 5000,
                "execution": "background", "taskTimeoutMs": 60_000,
                "parameters": {
                    "type": "object", "additionalProperties": false, "required": ["what"],
                    "properties": { "what": { "type": "string", "description": "What." } },
                },
            })
            .to_string(),
        );
    }
    let hash = native_source_hash([("handler.rs", HANDLER)]);
    let inspector = NativeInspector::new(TOOLS.map(|(tool, _)| (tool.to_owned(), hash.clone())));
    let options = Options::new(
        Inspectors::default().with(NATIVE_KIND, Arc::new(inspector)),
        Stamp { timestamp: "2026-01-13T09:00:00Z".into(), commit: None },
    );
    let artifact =
        compile(&Tree::read(files.path(), &options.inspectors).unwrap(), &options).artifact.unwrap();
    let hash: &'static str = Box::leak(hash.into_boxed_str());
    let handlers = TOOLS.map(|(tool, _)| {
        let outside = folder.join("outside.txt");
        NativeHandler::new(tool, hash, move |args, _| work(args, outside.clone()))
    });
    let hosts = Hosts::default().with(NATIVE_KIND, Arc::new(NativeHost::new(handlers)));
    Registry::from_artifact(artifact, files.path(), hosts).unwrap().snapshot()
}
