//! Servers that end, or never begin.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use quarterdeck_contracts::{ErrorType, UpstreamEvent, UpstreamState};
use quarterdeck_host_mcp::{StdioConfig, UpstreamTransport};
use serde_json::json;

use crate::world::{Kind, World, call, data, error, reason};

fn notes_of(world: &World, name: &str) -> usize {
    world.notes().iter().filter(|note| note.starts_with(name)).count()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_that_dies_in_a_write_leaves_its_outcome_unknown_and_is_not_asked_again() {
    let world = World::stdio();
    let die = world.tool("die", Kind::Writes);
    world.until_connected().await;
    let unknown = error(call(&die, json!({})).await);
    assert_eq!((unknown.kind, unknown.retryable), (ErrorType::Internal, false));
    assert_eq!(unknown.partial_side_effects, Some(true));
    assert_eq!(unknown.details.unwrap()["outcome"], "unknown");
    world.until(|world| world.view().restarts == 1).await;
    assert_eq!(notes_of(&world, "die"), 1, "it was sent once");
    let idempotent = error(call(&world.tool("die", Kind::WritesIdempotently), json!({})).await);
    assert_eq!((idempotent.kind, idempotent.retryable), (ErrorType::Internal, false));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_that_dies_in_a_read_may_be_asked_again() {
    let world = World::stdio();
    let die = world.tool("die", Kind::Reads);
    let lost = error(call(&die, json!({})).await);
    assert_eq!((lost.kind, lost.retryable, reason(&lost)), (ErrorType::Transient, true, "connection_lost"));
    assert_eq!(notes_of(&world, "die"), 1, "but nothing is sent twice by itself");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_lost_server_answers_every_call_under_way_and_comes_back() {
    let world = World::stdio();
    let (slow, die, echo) =
        (world.tool("slow", Kind::Reads), world.tool("die", Kind::Reads), world.tool("echo", Kind::Reads));
    world.until_connected().await;
    let under_way: Vec<_> = (0..20)
        .map(|_| {
            let slow = slow.clone();
            tokio::spawn(async move { error(call(&slow, json!({})).await).kind })
        })
        .collect();
    world.until(|world| notes_of(world, "slow") == 20).await;
    let begun = Instant::now();
    error(call(&die, json!({})).await);
    for answered in under_way {
        assert_eq!(answered.await.unwrap(), ErrorType::Transient);
    }
    assert!(begun.elapsed() < Duration::from_secs(30), "long before their deadline");
    world.until(|world| world.view().restarts == 1).await;
    assert_eq!(data(call(&echo, json!({ "text": "back" })).await), json!({ "text": "back" }));
    let kinds: Vec<_> = world
        .events()
        .iter()
        .filter_map(|event| match event {
            UpstreamEvent::Connected(_) => Some("connected"),
            UpstreamEvent::Lost { .. } => Some("lost"),
            UpstreamEvent::Restarted { restarts: 1, .. } => Some("restarted"),
            _ => None,
        })
        .collect();
    assert_eq!(kinds, ["connected", "lost", "restarted"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_that_does_not_start_makes_its_tools_unavailable_at_once() {
    let command = "/nonexistent/mcp-server".to_owned();
    let config = StdioConfig { command, args: Vec::new(), env: BTreeMap::new(), cwd: None };
    let world = World::with_transport(UpstreamTransport::Stdio(config));
    let echo = world.tool("echo", Kind::Writes);
    let refused = error(call(&echo, json!({})).await);
    assert_eq!((refused.kind, reason(&refused)), (ErrorType::Unavailable, "server_down"));
    assert_eq!(refused.partial_side_effects, Some(false));
    assert!(!refused.message.contains("nonexistent"), "a model is not told of paths: {}", refused.message);
    let view = world.view();
    assert_eq!((view.state, view.calls), (UpstreamState::Disconnected, 0));
    assert!(view.trouble.unwrap().contains("`/nonexistent/mcp-server` was not found"));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_that_says_nothing_is_given_up_after_its_time_to_start() {
    let config = StdioConfig {
        command: "/bin/sh".into(),
        args: vec!["-c".into(), "echo not a message; exec sleep 1000".into()],
        env: BTreeMap::new(),
        cwd: None,
    };
    let limits = quarterdeck_host_mcp::UpstreamLimits {
        start_timeout: Duration::from_millis(200),
        ..crate::world::limits()
    };
    let world = World::with_limits(UpstreamTransport::Stdio(config), limits);
    let refused = error(call(&world.tool("echo", Kind::Reads), json!({})).await);
    assert_eq!(reason(&refused), "server_down");
    assert!(world.view().trouble.unwrap().contains("`start_timeout_seconds` is the limit"));
}
