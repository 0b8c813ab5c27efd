//! Threads, instances, and the places for calls.

use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use futures_util::future::join_all;
use quarterdeck_contracts::HandlerAnswer;
use quarterdeck_contracts::handler::HostError;
use quarterdeck_host_js::{HostConfig, JsHost};
use quarterdeck_testkit::FakeContext;
use serde_json::json;

use crate::world::{AnswerMode, Slow, TEN_SECONDS, config, host, load, within};

const ASKING: &str =
    "export const execute = async ({ context }) => ({ ok: true, data: await context.kb.search({ q: 1 }) });";

/// Waits until something holds, which happens soon after and not at once.
async fn soon(what: &str, holds: impl Fn() -> bool) {
    let start = Instant::now();
    while !holds() {
        assert!(start.elapsed() < Duration::from_secs(10), "{what}");
        tokio::time::sleep(Duration::from_millis(2)).await;
    }
}

#[tokio::test]
async fn two_hundred_calls_wait_on_two_threads() {
    let host = JsHost::new(HostConfig { max_threads: 2, ..config() }).unwrap();
    let handler = load(&host, ASKING);
    let calls = (0..200).map(|_| {
        handler.run(json!({}), Slow::new(AnswerMode::After(Duration::from_millis(100))), TEN_SECONDS)
    });
    let start = Instant::now();
    for answer in join_all(calls).await {
        assert_eq!(answer.unwrap(), HandlerAnswer::success(json!([{ "q": 1 }])));
    }
    assert!(start.elapsed() < Duration::from_secs(5), "they waited together: {:?}", start.elapsed());
}

#[tokio::test]
async fn nested_calls_do_not_deadlock_one_thread() {
    let host = JsHost::new(HostConfig { max_threads: 1, ..config() }).unwrap();
    let handler = load(
        &host,
        "export const execute = async ({ context }) => ({ ok: true, data: await context.callTool('x', {}) });",
    );
    let calls = (0..50)
        .map(|_| handler.run(json!({}), Slow::new(AnswerMode::Calling(handler.clone(), 3)), TEN_SECONDS));
    for answer in join_all(calls).await {
        answer.unwrap();
    }
}

#[tokio::test]
async fn more_calls_than_places_are_refused_at_once() {
    let host = JsHost::new(HostConfig { max_calls: 2, ..config() }).unwrap();
    let handler = load(&host, ASKING);
    let waiting =
        || handler.run(json!({}), Slow::new(AnswerMode::After(Duration::from_millis(50))), TEN_SECONDS);
    let results = join_all([waiting(), waiting(), waiting()]).await;
    assert!(results[0].is_ok() && results[1].is_ok());
    assert!(matches!(results[2], Err(HostError::Busy { .. })));
    assert!(waiting().await.is_ok());
}

#[tokio::test]
async fn dropped_calls_let_go_of_everything() {
    let host = JsHost::new(config()).unwrap();
    let waiting = load(&host, ASKING);
    let context = Slow::new(AnswerMode::Never);
    let calls: Vec<_> =
        (0..20).map(|_| tokio::spawn(waiting.run(json!({}), context.clone(), TEN_SECONDS))).collect();
    soon("all wait", || context.open.load(Ordering::SeqCst) == 20).await;
    assert_eq!(host.stats().calls, 20);
    for call in &calls {
        call.abort();
    }
    soon("instances and requests are gone", || {
        context.open.load(Ordering::SeqCst) == 0 && host.stats().calls == 0
    })
    .await;

    let endless = load(&host, "export const execute = () => { while (true) {} };");
    let call = tokio::spawn(endless.run(json!({}), FakeContext::new(), within(60_000)));
    tokio::time::sleep(Duration::from_millis(30)).await;
    call.abort();
    soon("the loop is stopped", || host.stats().calls == 0).await;
}

#[tokio::test]
async fn a_dropped_host_stops_what_computes() {
    let host = host();
    let handler = load(&host, "export const execute = () => { while (true) {} };");
    let running = tokio::spawn(handler.run(json!({}), FakeContext::new(), within(60_000)));
    tokio::time::sleep(Duration::from_millis(30)).await;
    let start = Instant::now();
    tokio::task::spawn_blocking(move || drop(host)).await.unwrap();
    assert!(start.elapsed() < Duration::from_secs(2), "it is dropped at once: {:?}", start.elapsed());
    assert!(running.await.unwrap().is_err());
    assert!(handler.run(json!({}), FakeContext::new(), TEN_SECONDS).await.is_err());
}

#[tokio::test]
async fn the_deadline_ends_a_wait() {
    let host = host();
    let handler = load(&host, ASKING);
    let context = Slow::new(AnswerMode::Never);
    let error = handler.run(json!({}), context.clone(), within(50)).await.unwrap_err();
    assert!(matches!(error, HostError::TimedOut { limit_ms: 50, computing: false }), "{error}");
    assert_eq!(context.open.load(Ordering::SeqCst), 0);
}
