//! Background tasks of a client, and of all clients for operators.

use std::sync::Arc;
use std::time::Duration;

use quarterdeck_compiler::{Inspectors, NativeInspector, Options, Stamp, Tree, compile};
use quarterdeck_contracts::handler::{Context, NATIVE_KIND, NativeHandler};
use quarterdeck_contracts::{Mode, ToolError, native_source_hash};
use quarterdeck_runtime::{Call, Client, Hosts, NativeHost, Registry, Reply, Snapshot};
use quarterdeck_testkit::tree;
use serde_json::{Value, json};

use crate::world::World;

const HANDLER: &str = "pub async fn execute() {}\n";

/// One tool that goes on in the background until it is cancelled.
fn snapshot() -> Arc<Snapshot> {
    let files = tree("");
    files.write("linger/handler.rs", HANDLER);
    files.write("linger/guide.md", "# Linger\n\nTakes its time, for tests. Use it when testing.\n");
    let definition = json!({
        "toolId": "linger", "version": "1.0.0", "description": "Takes its time.", "category": "utility",
        "sideEffects": "none", "idempotent": true, "requiresConfirmation": false, "allowedModes": ["text"],
        "latencyBudgetMs": 100, "execution": "background",
        "parameters": { "type": "object", "additionalProperties": false, "properties": {} },
    });
    files.write("linger/schema.json", definition.to_string());
    let hash = native_source_hash([("handler.rs", HANDLER)]);
    let native = NativeInspector::new([("linger".to_owned(), hash.clone())]);
    let options = Options::new(
        Inspectors::default().with(NATIVE_KIND, Arc::new(native)),
        Stamp { timestamp: "2026-01-13T09:00:00Z".into(), commit: None },
    );
    let compilation = compile(&Tree::read(files.path(), &options.inspectors).unwrap(), &options);
    let artifact = compilation.artifact.unwrap_or_else(|| panic!("{:?}", compilation.diagnostics));
    let native = NativeHost::new([NativeHandler::new("linger", Box::leak(hash.into_boxed_str()), linger)]);
    let hosts = Hosts::default().with(NATIVE_KIND, Arc::new(native));
    Registry::from_artifact(artifact, files.path(), hosts).unwrap().snapshot()
}

async fn linger(_: Value, context: Arc<dyn Context>) -> Result<Value, ToolError> {
    context.progress("a third of it");
    context.emit(json!({ "third": 1 }));
    context.signal().cancelled().await;
    context.signal().check()?;
    Ok(Value::Null)
}

/// Starts a task of the client with this cookie; its id.
async fn start_task(world: &World, cookie: &str) -> String {
    let me = world.get("/api/me").with("cookie", cookie).send().await.json();
    let client = Client::anonymous(me["clientId"].as_str().unwrap());
    let session = world.orchestrator.open(client, Mode::Text, snapshot()).await.unwrap();
    session.begin_turn(None);
    let connection = session.connect();
    let reply = connection.submit(vec![Call::new("linger", json!({}))]).all().await.remove(0);
    let Reply::Answer(answer) = reply else { panic!("no confirmation is needed") };
    let id = answer.response.meta.background_task_id.clone().unwrap();
    answer.mark_delivered();
    id
}

/// The task once it looks as it should.
async fn task_when(world: &World, cookie: &str, path: &str, is_so: impl Fn(&Value) -> bool) -> Value {
    loop {
        let task = world.get(path).with("cookie", cookie).send().await.json();
        if is_so(&task) {
            return task;
        }
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
}

#[tokio::test]
async fn a_client_sees_and_cancels_its_own_tasks_only() {
    let world = World::new().await;
    let (cookie, stranger) = (world.new_client().await, world.new_client().await);
    let id = start_task(&world, &cookie).await;
    let path = format!("/api/tasks/{id}");
    let task = task_when(&world, &cookie, &path, |task| task["partial"]["third"] == 1).await;
    assert_eq!((&task["status"], &task["progress"]), (&json!("running"), &json!("a third of it")));
    let listed = world.get("/api/tasks").with("cookie", &cookie).send().await.json();
    assert_eq!(listed["tasks"][0]["id"], json!(id));
    let others = world.get("/api/tasks").with("cookie", &stranger).send().await.json();
    assert_eq!(others, json!({ "tasks": [] }));
    for ask in [world.get(&path), world.ask("DELETE", &path)] {
        let refused = ask.with("cookie", &stranger).send().await;
        assert_eq!((refused.refusal().0, refused.refusal().1), (404, "NOT_FOUND".into()));
    }

    let cancelled = world.ask("DELETE", &path).with("cookie", &cookie).send().await;
    assert_eq!(cancelled.status, 202);
    let task = task_when(&world, &cookie, &path, |task| task["status"] != "running").await;
    assert_eq!(task["status"], "cancelled");
    assert_eq!(task["response"]["error"]["type"], "CANCELLED");
    assert_eq!(world.ask("DELETE", &path).with("cookie", &cookie).send().await.status, 200);
}

#[tokio::test]
async fn operators_see_and_cancel_the_tasks_of_all_clients() {
    let world = World::new().await;
    let cookie = world.new_client().await;
    let id = start_task(&world, &cookie).await;
    let listed = world.get("/api/deck/tasks").send().await.json();
    assert_eq!((&listed["tasks"][0]["id"], &listed["isComplete"]), (&json!(id), &json!(true)));
    assert_eq!(listed["tasks"][0].get("progress"), None, "what a task says is its user's");
    let path = format!("/api/deck/tasks/{id}");
    assert_eq!(world.ask("DELETE", &path).send().await.status, 204);
    task_when(&world, &cookie, &format!("/api/tasks/{id}"), |task| task["status"] == "cancelled").await;
    assert_eq!(world.ask("DELETE", &path).send().await.refusal().0, 404);
    assert_eq!(world.ask("DELETE", "/api/deck/tasks/task_unknown").send().await.refusal().0, 404);
}
