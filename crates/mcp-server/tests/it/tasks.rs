//! Tools that go on in the background.

use std::time::Duration;

use quarterdeck_mcp_server::McpSettings;
use serde_json::{Value, json};

use crate::pipe::{Pipe, text};
use crate::post::Poster;
use crate::world::World;

fn knows_tasks() -> Value {
    json!({ "elicitation": {}, "extensions": { "io.modelcontextprotocol/tasks": {} } })
}

fn poster(world: &World, client: &str) -> Poster {
    Poster::new(world, client, knows_tasks())
}

async fn task(poster: &Poster, method: &str, id: &Value) -> Value {
    poster.post(method, id.as_str(), json!({ "taskId": id }), json!({})).await
}

/// The task, once it has ended.
async fn ended(poster: &Poster, id: &Value) -> Value {
    loop {
        let answer = task(poster, "tasks/get", id).await;
        if answer["result"]["status"] != "working" {
            return answer["result"].clone();
        }
        tokio::task::yield_now().await;
    }
}

#[tokio::test]
async fn a_client_that_knows_tasks_gets_a_handle_and_later_the_result() {
    let world = World::new();
    let ann = poster(&world, "ann");
    let answer = ann.call("report", json!({ "what": "sales" }), json!({}), json!({})).await;
    let created = &answer["result"];
    assert_eq!((&created["resultType"], &created["status"]), (&json!("task"), &json!("working")), "{answer}");
    assert_eq!(created["createdAt"], "2026-01-13T09:00:00Z");
    assert!(created["pollIntervalMs"].as_u64().unwrap() > 0 && created["ttlMs"].as_u64().unwrap() > 0);
    let id = created["taskId"].clone();
    world.effects.begun.notified().await;
    let working = task(&ann, "tasks/get", &id).await["result"].clone();
    assert_eq!((&working["status"], &working["statusMessage"]), (&json!("working"), &json!("half of it")));
    // A task of ours asks for nothing, so what is sent to it changes nothing.
    let update = json!({ "taskId": id, "inputResponses": { "confirm": { "action": "accept" } } });
    let updated = ann.post("tasks/update", id.as_str(), update, json!({})).await;
    assert!(updated.get("error").is_none(), "{updated}");
    world.effects.gate.notify_one();
    let done = ended(&ann, &id).await;
    assert_eq!(done["status"], "completed", "{done}");
    assert_eq!(done["result"]["structuredContent"], json!({ "did": "sales" }));
    assert_eq!(done["result"]["isError"], false);
    assert_eq!(world.effects.times("sales"), 1);
}

#[tokio::test]
async fn a_task_is_its_own_clients_alone() {
    let world = World::new();
    let (ann, bob) = (poster(&world, "ann"), poster(&world, "bob"));
    let answer = ann.call("chore", json!({ "what": "dishes" }), json!({}), json!({})).await;
    let id = answer["result"]["taskId"].clone();
    for id in [&id, &json!("task_0"), &json!("x".repeat(1_000))] {
        for method in ["tasks/get", "tasks/update", "tasks/cancel"] {
            let mut params = json!({ "taskId": id });
            if method == "tasks/update" {
                params["inputResponses"] = json!({});
            }
            let answer = bob.post(method, id.as_str(), params, json!({})).await;
            assert_eq!(answer["error"]["code"], -32602, "{method} {answer}");
        }
    }
    assert_eq!(task(&ann, "tasks/get", &id).await["result"]["status"], "working");
    world.effects.gate.notify_one();
    assert_eq!(ended(&ann, &id).await["status"], "completed");
}

#[tokio::test]
async fn a_cancelled_task_is_told_to_stop() {
    let world = World::new();
    let ann = poster(&world, "ann");
    let answer = ann.call("chore", json!({ "what": "dishes" }), json!({}), json!({})).await;
    let id = answer["result"]["taskId"].clone();
    world.effects.begun.notified().await;
    let stopped = task(&ann, "tasks/cancel", &id).await;
    assert!(stopped.get("error").is_none(), "{stopped}");
    assert_eq!(ended(&ann, &id).await["status"], "cancelled");
    assert_eq!((world.effects.times("dishes stopped"), world.effects.times("dishes")), (1, 0));
    // Again, it stays as it is.
    assert!(task(&ann, "tasks/cancel", &id).await.get("error").is_none());
}

#[tokio::test]
async fn a_task_that_needs_approval_begins_only_after_it() {
    let world = World::new();
    let ann = poster(&world, "ann");
    let args = json!({ "what": "rent" });
    let asked = ann.call("pay_later", args.clone(), json!({}), json!({})).await;
    let state = &asked["result"]["requestState"];
    assert!(state.is_string(), "{asked}");
    let approved = json!({
        "requestState": state, "inputResponses": { "confirm": { "action": "accept", "content": { "confirm": true } } },
    });
    let answer = ann.call("pay_later", args.clone(), approved.clone(), json!({})).await;
    let id = answer["result"]["taskId"].clone();
    assert_eq!(answer["result"]["resultType"], "task", "{answer}");
    world.effects.gate.notify_one();
    assert_eq!(ended(&ann, &id).await["result"]["structuredContent"], json!({ "did": "rent" }));
    assert!(text(&ann.call("pay_later", args, approved, json!({})).await).1);
    assert_eq!(world.effects.times("rent"), 1);
}

#[tokio::test]
async fn a_call_of_a_client_that_does_not_know_tasks_waits_for_its_tool() {
    let world = World::new();
    let ann = Poster::new(&world, "ann", json!({}));
    let call = tokio::spawn({
        let ann = ann.clone();
        async move { ann.call("report", json!({ "what": "sales" }), json!({}), json!({})).await }
    });
    world.effects.begun.notified().await;
    world.effects.gate.notify_one();
    assert_eq!(call.await.unwrap()["result"]["structuredContent"], json!({ "did": "sales" }));
    // It cannot ask for tasks either.
    let answer = task(&ann, "tasks/get", &json!("task_0")).await;
    assert_eq!(answer["error"]["code"], -32021, "{answer}");
}

#[tokio::test]
async fn what_takes_longer_than_the_bound_goes_on_and_the_client_is_told_so() {
    let world = World::with(McpSettings { task_wait: Duration::from_millis(20), ..McpSettings::default() });
    let ann = Poster::new(&world, "ann", json!({}));
    let answer = ann.call("chore", json!({ "what": "dishes" }), json!({}), json!({})).await;
    let (told, is_error) = text(&answer);
    assert!(!is_error && told.contains("goes on in the background"), "{told}");
    // A client that was promised data would look for it in a success.
    let promised = ann.call("report", json!({ "what": "sales" }), json!({}), json!({})).await;
    assert!(text(&promised).1 && promised["result"].get("structuredContent").is_none(), "{promised}");
    world.effects.gate.notify_waiters();
    while world.effects.in_all() < 2 {
        tokio::task::yield_now().await;
    }
    assert_eq!((world.effects.times("dishes"), world.effects.times("sales")), (1, 1));
}

#[tokio::test]
async fn a_client_that_takes_back_a_waiting_call_stops_its_task() {
    let world = World::new();
    let mut pipe = Pipe::open(&world, "ann", json!({})).await;
    let call = pipe.call("chore", json!({ "what": "dishes" })).await;
    world.effects.begun.notified().await;
    pipe.send(
        json!({ "jsonrpc": "2.0", "method": "notifications/cancelled", "params": { "requestId": call } }),
    )
    .await;
    while world.effects.times("dishes stopped") == 0 {
        tokio::task::yield_now().await;
    }
    assert_eq!(world.effects.times("dishes"), 0);
}
