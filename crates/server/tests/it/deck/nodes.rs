//! Several nodes, as operators and probes see them.

use std::sync::Arc;
use std::time::Duration;

use quarterdeck_runtime::audit::{AuditEvent, AuditSink};
use quarterdeck_runtime::{Clock, SystemClock};
use quarterdeck_server::Settings;
use quarterdeck_store::MemoryStore;
use serde_json::{Value, json};

use super::{assert_documented, client_with_call, get};
use crate::world::World;

async fn pair() -> [World; 2] {
    let store = Arc::<MemoryStore>::default();
    [World::node(&store, "a", Settings::default()).await, World::node(&store, "b", Settings::default()).await]
}

fn node<'a>(list: &'a Value, name: &str) -> &'a Value {
    list["nodes"].as_array().unwrap().iter().find(|node| node["name"] == name).unwrap()
}

#[tokio::test]
async fn a_node_that_stops_renewing_is_late_and_then_dead_within_fifteen_seconds() {
    let [a, b] = pair().await;
    let list = get(&a, "nodes").await;
    assert_eq!(
        (node(&list, "a")["isSelf"].as_bool(), node(&list, "b")["isSelf"].as_bool()),
        (Some(true), Some(false))
    );
    assert_eq!((&node(&list, "a")["state"], &node(&list, "b")["state"]), (&json!("alive"), &json!("alive")));
    for (seconds, state) in [(8, "late"), (7, "dead")] {
        a.advance_clock(Duration::from_secs(seconds));
        a.orchestrator.renew_node().await.unwrap();
        let list = get(&a, "nodes").await;
        assert_eq!(
            (&node(&list, "a")["state"], &node(&list, "b")["state"]),
            (&json!("alive"), &json!(state))
        );
    }
    b.orchestrator.renew_node().await.unwrap();
    assert_eq!(node(&get(&a, "nodes").await, "b")["state"], "alive");
    assert_eq!(get(&World::new().await, "nodes").await, json!({ "nodes": [] }));
}

#[tokio::test]
async fn a_node_that_may_not_write_is_not_ready_and_comes_back_by_itself() {
    let [a, _b] = pair().await;
    let ready = async || {
        let answer = a.get("/readyz").send().await;
        (answer.status, answer.json())
    };
    let (status, body) = ready().await;
    assert_eq!((status, &body["ready"], &body["degraded"]), (200, &json!(true), &json!(false)), "{body}");
    assert_eq!((&body["node"]["name"], &body["node"]["mayWrite"]), (&json!("a"), &json!(true)));
    a.advance_clock(Duration::from_secs(11));
    let (status, body) = ready().await;
    assert_eq!((status, &body["ready"], &body["storeWritable"]), (503, &json!(false), &json!(true)));
    assert!(body["reasons"][0].as_str().unwrap().contains("could not renew its row"), "{body}");
    a.orchestrator.renew_node().await.unwrap();
    assert_eq!(ready().await.0, 200);
    let store = a.store.clone();
    // Another process under its name takes its place for good.
    let second = World::node(&store, "a", Settings::default()).await;
    assert!(a.orchestrator.renew_node().await.is_err());
    let (status, body) = ready().await;
    assert_eq!((status, &body["node"]["fenced"]), (503, &json!(true)));
    assert!(body["reasons"].to_string().contains("another process runs as node a"), "{body}");
    assert_eq!(second.get("/readyz").send().await.status, 200);
}

#[tokio::test]
async fn a_server_without_a_node_says_so() {
    let world = World::new().await;
    assert_eq!(world.get("/readyz").send().await.json()["node"], Value::Null);
    assert_eq!(world.get("/metrics?format=json").send().await.json()["node"], Value::Null);
    assert!(!world.get("/metrics?format=prometheus").send().await.text().contains("node="));
}

#[tokio::test]
async fn every_series_has_the_name_of_the_node() {
    let [a, _b] = pair().await;
    client_with_call(&a).await;
    let text = a.get("/metrics?format=prometheus").send().await.text().to_owned();
    let lines = text.lines().filter(|line| line.starts_with("quarterdeck_"));
    let unnamed: Vec<_> = lines.filter(|line| !line.contains("node=\"a\"")).collect();
    assert!(unnamed.is_empty(), "{unnamed:?}");
    for line in [
        "quarterdeck_node_may_write{node=\"a\"} 1",
        "quarterdeck_node_leases_total{node=\"a\",event=\"taken\"}",
    ] {
        assert!(text.contains(line), "{line} in\n{text}");
    }
    assert_documented(&text);
    let json = a.get("/metrics?format=json").send().await.json();
    assert_eq!(json["node"]["name"], "a");
}

#[tokio::test]
async fn the_live_feed_shows_the_events_of_all_nodes() {
    let [a, b] = pair().await;
    let mut open = a.get("/api/deck/live").open().await;
    open.until(": here").await;
    // Until the other node is followed.
    let record = |number: u64| {
        let fields = json!({ "number": number }).as_object().cloned().unwrap();
        b.feed.record(AuditEvent { event: "there".into(), time: SystemClock.now(), fields });
    };
    {
        let mut seen = std::pin::pin!(open.until("\"nodeName\":\"b\""));
        let mut number = 0;
        loop {
            record(number);
            number += 1;
            if tokio::time::timeout(Duration::from_millis(50), &mut seen).await.is_ok() {
                break;
            }
            assert!(number < 400, "the other node is not followed");
        }
    }
    client_with_call(&a).await;
    open.until("\"nodeName\":\"a\"").await;
}

#[tokio::test]
async fn the_own_events_of_a_node_are_for_nodes_alone() {
    let [a, _b] = pair().await;
    assert_eq!(a.get("/api/nodes/feed").send().await.status, 401);
}

#[tokio::test]
async fn sessions_of_all_nodes_are_listed_and_ended_from_any() {
    let [a, b] = pair().await;
    let followed = b.orchestrator.clone();
    let listener = tokio::spawn(async move { followed.follow_changes().await });
    tokio::time::sleep(Duration::from_millis(50)).await;
    let (_, client, session) = client_with_call(&b).await;
    let list = get(&a, "sessions").await;
    let row = list["sessions"].as_array().unwrap().iter().find(|row| row["id"] == session).unwrap();
    assert_eq!(row["clientId"], client.as_str());
    assert!(row["node"].is_null() || row["node"] == "b", "{row}");
    let ended = a.ask("DELETE", &format!("/api/deck/sessions/{session}")).send().await;
    assert_eq!(ended.status, 204, "{}", ended.text());
    // What the other node still has in memory brings it back in no way.
    b.orchestrator.save_all();
    for world in [&a, &b] {
        let found = get(world, &format!("sessions/{session}")).await;
        assert_eq!(found["session"]["isActive"], false);
    }
    assert_eq!(b.ask("DELETE", &format!("/api/deck/sessions/{session}")).send().await.status, 404);
    listener.abort();
}
