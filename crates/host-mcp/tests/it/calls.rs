//! Calls that are answered.

use std::sync::Arc;
use std::time::Duration;

use quarterdeck_contracts::handler::{CancelReason, Context, HostError};
use quarterdeck_contracts::{ErrorType, UpstreamState};
use quarterdeck_host_mcp::UpstreamLimits;
use quarterdeck_testkit::FakeContext;
use serde_json::json;

use crate::world::{Kind, MINUTE, World, call, call_within, data, error, limits, reason};

#[tokio::test(flavor = "multi_thread")]
async fn sessions_share_one_process_and_each_gets_its_own_answer() {
    let world = World::stdio();
    let echo = world.tool("echo", Kind::Reads);
    assert_eq!(data(call(&echo, json!({ "text": "first" })).await), json!({ "text": "first" }));
    let calls = (0..100).map(|n| {
        let echo = echo.clone();
        tokio::spawn(async move { (n, data(call(&echo, json!({ "text": format!("call {n}") })).await)) })
    });
    for answered in calls.collect::<Vec<_>>() {
        let (n, data) = answered.await.unwrap();
        assert_eq!(data, json!({ "text": format!("call {n}") }));
    }
    let view = world.view();
    assert_eq!((view.calls, view.failures, view.restarts), (101, 0, 0));
    let server = view.server.unwrap();
    assert_eq!((&*server.name, &*server.version), ("test-server", "1.2.3"));
    assert_eq!(world.notes().len(), 101, "every call was sent once");
}

#[tokio::test(flavor = "multi_thread")]
async fn structured_content_is_the_data_of_a_tool_with_an_output_schema() {
    let world = World::stdio();
    let sum = world.tool("sum", Kind::Reads);
    assert_eq!(data(call(&sum, json!({ "a": 2, "b": 3 })).await), json!({ "sum": 5 }));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_failure_of_the_tool_is_marked_as_the_servers_words() {
    let world = World::stdio();
    let failed = error(call(&world.tool("fail", Kind::Writes), json!({})).await);
    assert_eq!((failed.kind, &*failed.message), (ErrorType::Permanent, "desk says: no such⏎room"));
    assert_eq!((failed.retryable, failed.partial_side_effects), (false, Some(true)));
}

#[tokio::test(flavor = "multi_thread")]
async fn progress_is_passed_on_and_a_stop_reaches_the_server() {
    let world = World::stdio();
    let slow = world.tool("slow", Kind::Writes);
    let context = FakeContext::new();
    let running = tokio::spawn({
        let (slow, context) = (slow.clone(), context.clone());
        async move { slow.run(json!({}), context, MINUTE).await.unwrap() }
    });
    world.until(|_| !context.recorded().progress.is_empty()).await;
    assert_eq!(context.recorded().progress, ["desk: half⏎way"]);
    context.signal().cancel(CancelReason::Stopped);
    let stopped = error(running.await.unwrap());
    assert_eq!((stopped.kind, stopped.partial_side_effects), (ErrorType::Cancelled, Some(true)));
    world.until(|world| world.notes().contains(&"cancelled".to_owned())).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_call_that_is_dropped_is_cancelled_at_the_server() {
    let world = World::stdio();
    let slow = world.tool("slow", Kind::Reads);
    let context: Arc<dyn Context> = FakeContext::new();
    let running = tokio::spawn(slow.run(json!({}), context, MINUTE));
    world.until(|world| world.notes().iter().any(|note| note.starts_with("slow"))).await;
    running.abort();
    world.until(|world| world.notes().contains(&"cancelled".to_owned())).await;
    assert_eq!(world.view().calls, 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_deadline_holds_and_a_write_that_met_it_may_have_been_done() {
    let world = World::stdio();
    let (reads, writes) = (world.tool("slow", Kind::Reads), world.tool("slow", Kind::Writes));
    world.until_connected().await;
    let late = Duration::from_millis(300);
    assert!(matches!(call_within(&reads, late).await, Err(HostError::TimedOut { limit_ms: 300, .. })));
    let unknown = error(call_within(&writes, late).await.unwrap());
    assert_eq!((unknown.kind, reason(&unknown)), (ErrorType::Internal, "deadline"));
    assert_eq!(unknown.details.unwrap()["outcome"], "unknown");
    let idempotent = world.tool("slow", Kind::WritesIdempotently);
    assert!(matches!(call_within(&idempotent, late).await, Err(HostError::TimedOut { .. })));
    assert_eq!(world.view().failures, 3);
}

#[tokio::test(flavor = "multi_thread")]
async fn calls_beyond_the_servers_places_wait_and_then_are_refused() {
    let world = World::stdio_with(UpstreamLimits { max_concurrent_calls: 1, ..limits() });
    let (slow, echo) = (world.tool("slow", Kind::Reads), world.tool("echo", Kind::Reads));
    world.until_connected().await;
    let context: Arc<dyn Context> = FakeContext::new();
    let holding = tokio::spawn(slow.run(json!({}), context, MINUTE));
    world.until(|world| world.notes().iter().any(|note| note.starts_with("slow"))).await;
    let waited = call_within(&echo, Duration::from_millis(200)).await;
    assert!(matches!(waited, Err(HostError::Busy { .. })), "{waited:?}");
    let waiting: Vec<_> = (0..30)
        .map(|_| {
            let context: Arc<dyn Context> = FakeContext::new();
            tokio::spawn(echo.run(json!({ "text": "later" }), context, MINUTE))
        })
        .collect();
    world.until(|_| waiting.iter().filter(|call| call.is_finished()).count() == 22).await;
    holding.abort();
    let mut answered = 0;
    for waited in waiting {
        match waited.await.unwrap() {
            Ok(answer) => {
                assert_eq!(data(answer), json!({ "text": "later" }));
                answered += 1;
            }
            Err(refused) => assert!(matches!(refused, HostError::Busy { .. }), "{refused:?}"),
        }
    }
    assert_eq!(answered, 8, "those that waited");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_host_that_is_stopped_calls_nothing() {
    let world = World::stdio();
    let echo = world.tool("echo", Kind::Reads);
    data(call(&echo, json!({ "text": "hello" })).await);
    world.host.stop().await;
    assert_eq!(error(call(&echo, json!({})).await).kind, ErrorType::Unavailable);
    assert_ne!(world.view().state, UpstreamState::Connected);
}
