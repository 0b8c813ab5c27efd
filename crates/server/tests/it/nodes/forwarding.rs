//! Requests that arrive at a node that does not have their session.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use futures_util::future::join_all;
use quarterdeck_server::Settings;
use quarterdeck_store::MemoryStore;
use serde_json::{Value, json};

use super::{pair, pair_behind_proxy};
use crate::http::Ask;
use crate::world::{EXECUTIONS, World};

fn message(id: &str, text: &str) -> Value {
    let parts = json!([{ "type": "text", "text": text }]);
    json!({ "id": "chat1", "messages": [{ "id": id, "role": "user", "parts": parts }] })
}

fn say(world: &World, cookie: &str, id: &str, text: &str) -> Ask {
    world.post("/api/chat", &message(id, text)).with("cookie", cookie)
}

#[tokio::test]
async fn a_running_answer_is_followed_shown_and_joined_at_another_node() {
    let [a, b] = pair(Settings::default()).await;
    let cookie = a.new_client().await;
    let mut running = say(&a, &cookie, "m1", "wait").open().await;
    running.until("You said").await;
    let mut resumed = b.get("/api/chat/chat1/stream").with("cookie", &cookie).open().await;
    resumed.until("You said").await;
    assert_eq!(resumed.head().header("content-type"), Some("text/event-stream"));
    assert_eq!(resumed.head().header("x-accel-buffering"), Some("no"));
    let shown = b.get("/api/sessions/chat1").with("cookie", &cookie).send().await;
    assert_eq!((shown.status, &shown.json()["isRunning"]), (200, &json!(true)));
    let mut joined = say(&b, &cookie, "m1", "wait").open().await;
    joined.until("You said").await;
    let busy = say(&b, &cookie, "m2", "hello").send().await;
    assert_eq!((busy.refusal().0, busy.refusal().1), (409, "CONFLICT".into()));
    assert_eq!(b.running_turns(), 0, "nothing runs at the node that passes on");
    a.resume.add_permits(1);
    for open in [&mut running, &mut resumed, &mut joined] {
        let whole = open.rest().await;
        assert!(whole.text().ends_with("data: [DONE]\n\n"), "{}", whole.text());
    }
    // The turn is over, so the next one may be anywhere.
    let next = say(&b, &cookie, "m2", "hello").send().await;
    assert_eq!(next.status, 200);
    assert_eq!(next.event("start")["messageMetadata"]["sessionId"], shown.json()["id"]);
    let shown = b.get("/api/sessions/chat1").with("cookie", &cookie).send().await.json();
    assert_eq!(shown["messages"].as_array().unwrap().len(), 4, "{shown}");
    let none = a.get("/api/chat/chat1/stream").with("cookie", &cookie).send().await;
    assert_eq!(none.status, 204);
}

#[tokio::test]
async fn a_client_that_leaves_stops_the_answer_at_the_other_node() {
    let [a, b] = pair(Settings::default()).await;
    let cookie = a.new_client().await;
    let mut running = say(&a, &cookie, "m1", "wait").open().await;
    running.until("You said").await;
    let mut joined = say(&b, &cookie, "m1", "wait").open().await;
    joined.until("You said").await;
    drop(running);
    tokio::time::sleep(Duration::from_millis(200)).await;
    assert_eq!(a.running_turns(), 1, "it is still followed through the other node");
    drop(joined);
    while a.running_turns() > 0 {
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
}

#[tokio::test]
async fn a_conversation_is_deleted_at_another_node_while_it_is_answered() {
    let [a, b] = pair(Settings::default()).await;
    let cookie = a.new_client().await;
    let mut running = say(&a, &cookie, "m1", "wait").open().await;
    running.until("You said").await;
    assert_eq!(b.ask("DELETE", "/api/sessions/chat1").with("cookie", &cookie).send().await.status, 204);
    a.resume.add_permits(1);
    running.rest().await;
    for world in [&a, &b] {
        assert_eq!(world.get("/api/sessions/chat1").with("cookie", &cookie).send().await.status, 404);
    }
}

#[tokio::test]
async fn another_client_gets_nothing_from_the_other_node() {
    let [a, b] = pair(Settings::default()).await;
    let (ann, ben) = (a.new_client().await, a.new_client().await);
    let mut running = say(&a, &ann, "m1", "wait").open().await;
    running.until("You said").await;
    let session = a.get("/api/sessions/chat1").with("cookie", &ann).send().await.json()["id"].clone();
    let target = format!("/api/sessions/{}", session.as_str().unwrap());
    assert_eq!(b.get(&target).with("cookie", &ann).send().await.status, 200);
    for ask in [b.get(&target).with("cookie", &ben), b.get(&target), b.ask("DELETE", &target)] {
        assert_eq!(ask.send().await.status, 404);
    }
    let body = json!({ "sessionId": session, "message": "hello" });
    assert_eq!(b.post("/api/chat", &body).with("cookie", &ben).send().await.status, 404);
    a.resume.add_permits(1);
}

#[tokio::test]
async fn a_message_that_is_passed_on_is_counted_once() {
    let [a, b] = pair(Settings { messages_per_minute: 2, ..Settings::default() }).await;
    let cookie = a.new_client().await;
    let mut running = say(&a, &cookie, "m1", "wait").open().await;
    running.until("You said").await;
    let mut joined = say(&b, &cookie, "m1", "wait").open().await;
    joined.until("You said").await;
    assert_eq!(say(&b, &cookie, "m1", "wait").send().await.status, 429);
    a.resume.add_permits(1);
}

/// The token of a call that waits for approval.
async fn ask_for_approval(world: &World, cookie: &str) -> Value {
    let asked = say(world, cookie, "m1", "call count").send().await;
    asked.event("data-confirmation")["data"]["token"].clone()
}

#[tokio::test]
async fn a_hundred_clicks_over_two_nodes_run_a_call_once() {
    let nodes = pair(Settings { connections_per_address: 1_000, ..Settings::default() }).await;
    let cookie = nodes[0].new_client().await;
    let token = ask_for_approval(&nodes[0], &cookie).await;
    let click = json!({ "token": token, "approve": true });
    let clicks = (0..100)
        .map(|number| nodes[number % 2].post("/api/confirmations", &click).with("cookie", &cookie).send());
    let answers = join_all(clicks).await;
    assert_eq!(EXECUTIONS.load(Ordering::SeqCst), 1);
    let done = answers.iter().filter(|answer| answer.status == 200).count();
    assert!(done >= 1, "{:?}", answers.iter().map(|answer| answer.status).collect::<Vec<_>>());
    for answer in &answers {
        assert!(matches!(answer.status, 200 | 400 | 503), "{} {}", answer.status, answer.text());
    }
}

#[tokio::test]
async fn an_approval_in_the_chat_of_another_node_continues_the_turn() {
    let [a, b] = pair(Settings::default()).await;
    let cookie = a.new_client().await;
    let token = ask_for_approval(&a, &cookie).await;
    let approval = json!({ "id": token, "approved": true });
    let part = json!({ "type": "dynamic-tool", "toolCallId": "1", "state": "approval-responded", "approval": approval });
    let body = json!({ "id": "chat1", "messages": [{ "id": "m", "role": "assistant", "parts": [part] }] });
    let decided = b.post("/api/chat", &body).with("cookie", &cookie).send().await;
    assert_eq!(decided.status, 200, "{}", decided.text());
    assert_eq!(
        decided.event("tool-output-available")["output"]["data"]["did"],
        "count",
        "{}",
        decided.text()
    );
    assert_eq!(EXECUTIONS.load(Ordering::SeqCst), 1);
}

#[tokio::test]
async fn a_stream_whose_node_dies_breaks_off_and_is_not_taken_for_complete() {
    let ([a, b], mut proxy) = pair_behind_proxy(Settings::default()).await;
    let cookie = a.new_client().await;
    let mut running = say(&a, &cookie, "m1", "wait").open().await;
    running.until("You said").await;
    let mut joined = say(&b, &cookie, "m1", "wait").open().await;
    joined.until("You said").await;
    proxy.cut();
    let cut = joined.raw_rest().await;
    assert!(!cut.ends_with("0\r\n\r\n") && !cut.contains("[DONE]"), "{cut}");
    let refused = say(&b, &cookie, "m1", "wait").send().await;
    assert_eq!((refused.refusal().0, refused.refusal().1), (503, "TRANSIENT".into()));
    assert!(refused.refusal().2.contains("Nothing was done"), "{}", refused.refusal().2);
    assert!(refused.header("retry-after").is_some());
    a.resume.add_permits(1);
    assert!(running.rest().await.text().ends_with("data: [DONE]\n\n"), "the node itself goes on");
}

#[tokio::test]
async fn a_node_whose_place_another_process_has_taken_cannot_be_reached() {
    let store = Arc::<MemoryStore>::default();
    let ([a, b], proxy) = pair_behind_proxy(Settings::default()).await;
    let cookie = a.new_client().await;
    let mut running = say(&a, &cookie, "m1", "wait").open().await;
    running.until("You said").await;
    let restarted = World::node(&store, "a", Settings::default()).await;
    proxy.redirect(restarted.address);
    let refused = say(&b, &cookie, "m1", "wait").send().await;
    assert_eq!((refused.refusal().0, refused.refusal().1), (503, "TRANSIENT".into()));
    assert!(refused.refusal().2.contains("Nothing was done"), "{}", refused.refusal().2);
    a.resume.add_permits(1);
}

#[tokio::test]
async fn a_request_between_nodes_is_not_accepted_again() {
    let ([a, b], proxy) = pair_behind_proxy(Settings::default()).await;
    let cookie = a.new_client().await;
    let mut running = say(&a, &cookie, "m1", "wait").open().await;
    running.until("You said").await;
    assert_eq!(b.get("/api/sessions/chat1").with("cookie", &cookie).send().await.status, 200);
    let recorded = proxy.received().pop().unwrap();
    let text = String::from_utf8(recorded.clone()).unwrap();
    assert!(text.to_ascii_lowercase().contains("x-quarterdeck-node: qdn1 b "), "{text}");
    for (world, status) in [(&a, 401), (&b, 421)] {
        let replayed = crate::http::raw(world.address, &recorded).await;
        assert_eq!(replayed.head().status, status);
    }
    // Another request with the same signature.
    let changed = text.replacen("GET ", "DELETE ", 1);
    assert_eq!(crate::http::raw(a.address, changed.as_bytes()).await.head().status, 401);
    a.resume.add_permits(1);
}

#[tokio::test]
async fn a_completion_is_joined_at_another_node_and_one_that_is_lost_is_not_repeated() {
    let ([a, b], mut proxy) = pair_behind_proxy(Settings::default()).await;
    let cookie = a.new_client().await;
    let body = json!({ "messages": [{ "role": "user", "content": "wait" }] });
    let ask = |world: &World| {
        world.post("/v1/chat/completions", &body).with("cookie", &cookie).with("x-stainless-retry-count", "1")
    };
    let first = tokio::spawn(ask(&a).send());
    while a.running_turns() == 0 {
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    let second = tokio::spawn(ask(&b).send());
    while proxy.received().is_empty() {
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    tokio::time::sleep(Duration::from_millis(100)).await;
    proxy.cut();
    let lost = second.await.unwrap();
    assert_eq!((lost.refusal().0, lost.refusal().1), (502, "server_error".into()));
    assert!(lost.refusal().2.contains("not known"), "{}", lost.refusal().2);
    assert_eq!(lost.header("x-should-retry"), Some("false"));
    a.resume.add_permits(1);
    assert_eq!(first.await.unwrap().json()["choices"][0]["message"]["content"], "You said: wait");
}

#[tokio::test]
async fn a_node_that_may_not_write_refuses_new_turns_and_says_when_to_come_back() {
    let store = Arc::<MemoryStore>::default();
    let a = World::node(&store, "a", Settings::default()).await;
    let cookie = a.new_client().await;
    assert_eq!(say(&a, &cookie, "m1", "hello").send().await.status, 200);
    // Another process of the same name takes its place.
    let later = World::node(&store, "a", Settings::default()).await;
    assert!(a.orchestrator.renew_node().await.is_err());
    let refused = say(&a, &cookie, "m2", "hello").send().await;
    assert_eq!((refused.refusal().0, refused.refusal().1), (503, "TRANSIENT".into()));
    assert!(refused.refusal().2.starts_with("The database cannot be reached."), "{}", refused.refusal().2);
    assert_eq!(refused.header("retry-after"), Some("5"));
    assert_eq!(a.get("/healthz").send().await.status, 200);
    assert_eq!(say(&later, &cookie, "m2", "hello").send().await.status, 200);
}
