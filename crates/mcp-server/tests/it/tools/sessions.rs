//! Which session a request belongs to, and when it ends.

use std::time::Duration;

use quarterdeck_mcp_server::McpSettings;
use serde_json::json;

use super::client::Generation;
use super::world::World;

async fn eventually(is_so: impl Fn() -> bool) {
    while !is_so() {
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}

#[tokio::test]
async fn a_connection_is_a_session_and_ends_with_it() {
    let world = World::new();
    let client = world.connect("ann", Generation::Handshake).await;
    client.call("echo", "a").await;
    client.call("echo", "b").await;
    assert_eq!(world.audit.count("session_start"), 1);
    client.service.cancel().await.unwrap();
    eventually(|| world.audit.count("session_end") == 1).await;
    assert_eq!(world.audit.field("session_end", "reason"), [json!("client_closed")]);
}

#[tokio::test]
async fn a_client_without_a_handshake_finds_its_session_by_identity_and_hint() {
    let world = World::new();
    for client in ["ann", "ann", "bob"] {
        let client = world.connect(client, Generation::Stateless).await;
        client.call("echo", "a").await;
    }
    assert_eq!(world.audit.count("session_start"), 2, "one for each client");
    let client = world.connect("ann", Generation::Stateless).await;
    for hint in ["x", "y", "x"] {
        client.call_with("echo", "a", json!({ "quarterdeck/session": hint })).await.unwrap();
    }
    assert_eq!(world.audit.count("session_start"), 4);
    for wrong in [json!(1), json!(""), json!("x".repeat(129))] {
        assert!(client.call_with("echo", "a", json!({ "quarterdeck/session": wrong })).await.is_err());
    }
}

#[tokio::test]
async fn a_client_with_too_many_connections_loses_the_session_that_it_used_least() {
    let world = World::with(McpSettings { max_sessions_per_client: 2, ..McpSettings::default() });
    let first = world.connect("ann", Generation::Handshake).await;
    let _second = world.connect("ann", Generation::Handshake).await;
    let _third = world.connect("ann", Generation::Handshake).await;
    eventually(|| world.audit.count("session_end") == 1).await;
    first.call("echo", "a").await;
    assert_eq!(world.audit.count("session_start"), 4, "it gets another one if it comes back");
}

#[tokio::test]
async fn a_client_whose_sessions_are_all_at_work_gets_no_other() {
    let world = World::with(McpSettings { max_sessions_per_client: 1, ..McpSettings::default() });
    let client = world.connect("ann", Generation::Handshake).await;
    let running = client.call("book_slowly", "a boat");
    let meanwhile = async {
        world.effects.gate.wait_for_one().await;
        let refused = world.try_connect("ann", Generation::Handshake).await.err().unwrap();
        assert!(refused.contains("sessions with calls that run"), "{refused}");
        let stateless = world.connect("ann", Generation::Stateless).await;
        let refused = stateless.call("echo", "a").await;
        assert_eq!(refused.meta.unwrap()["quarterdeck/error"]["type"], "RATE_LIMIT");
        world.connect("bob", Generation::Handshake).await.call("echo", "b").await;
        world.effects.gate.open.add_permits(1);
    };
    let (result, ()) = tokio::join!(running, meanwhile);
    assert_eq!(result.is_error, Some(false));
}

#[tokio::test]
async fn hints_beyond_the_limit_replace_the_session_that_was_used_least() {
    let world = World::with(McpSettings { max_sessions_per_client: 2, ..McpSettings::default() });
    let client = world.connect("ann", Generation::Stateless).await;
    for hint in ["a", "b", "c", "d"] {
        client.call_with("echo", "x", json!({ "quarterdeck/session": hint })).await.unwrap();
    }
    eventually(|| world.audit.count("session_end") == 2).await;
}

#[tokio::test]
async fn a_session_that_nothing_is_asked_of_ends() {
    let world = World::with(McpSettings { idle_timeout: Duration::ZERO, ..McpSettings::default() });
    let client = world.connect("ann", Generation::Stateless).await;
    client.call("echo", "x").await;
    world.server.end_idle_sessions();
    eventually(|| world.audit.count("session_end") == 1).await;
    client.call("echo", "x").await;
    assert_eq!(world.audit.count("session_start"), 2, "the next request opens another");
}
