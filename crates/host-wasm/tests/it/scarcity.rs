//! Many calls at once, and calls that are given up.

use std::fs;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use quarterdeck_contracts::handler::{Handler, HostError};
use quarterdeck_host_wasm::{HostConfig, WasmHost};
use quarterdeck_testkit::FakeContext;
use serde_json::json;

use crate::world::{Unanswered, config, data, execute, host, requesting, within};

/// Memory of this process that is in use, in KiB; nothing where the system does not tell.
fn resident_kib() -> Option<usize> {
    let status = fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find(|line| line.starts_with("VmRSS:"))?;
    line.split_whitespace().nth(1)?.parse().ok()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[expect(clippy::print_stdout, reason = "the figures are the point")]
async fn a_thousand_calls_wait_at_once() {
    const CALLS: usize = 1_000;
    let host = WasmHost::new(HostConfig { max_calls: 1_400, ..HostConfig::default() });
    let context = Unanswered::new();
    let handler = requesting(&host, "kb.search", &json!(["ice"]));
    let echo = execute(&host, "(call $wrap (local.get $text) (local.get $length))");
    data(&echo, json!(0)).await;
    let before = resident_kib();
    let start = Instant::now();
    let calls: Vec<_> =
        (0..CALLS).map(|_| tokio::spawn(handler.run(json!({}), context.clone(), within(60_000)))).collect();
    while context.open.load(Ordering::SeqCst) < CALLS {
        assert!(start.elapsed() < Duration::from_secs(30), "{:?}", host.stats());
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
    let parked = start.elapsed();
    assert_eq!(host.stats().instances, CALLS);
    if let (Some(before), Some(now)) = (before, resident_kib()) {
        let each = now.saturating_sub(before) / CALLS;
        println!("{CALLS} calls wait after {parked:?}, with {each} KiB each");
        assert!(each < 256, "{each} KiB");
    }
    assert_eq!(data(&echo, json!(1)).await["args"], 1, "others are called meanwhile");
    calls.iter().for_each(|call| call.abort());
    for call in calls {
        assert!(call.await.unwrap_err().is_cancelled());
    }
    assert_eq!((context.open.load(Ordering::SeqCst), host.stats().instances), (0, 0));
}

#[tokio::test]
async fn one_handler_leaves_a_quarter_of_the_slots_to_the_others() {
    let host = host();
    let context = Unanswered::new();
    let waiting = requesting(&host, "kb.search", &json!(["ice"]));
    let calls: Vec<_> =
        (0..24).map(|_| tokio::spawn(waiting.run(json!({}), context.clone(), within(60_000)))).collect();
    while context.open.load(Ordering::SeqCst) < 24 {
        tokio::task::yield_now().await;
    }
    let refused = waiting.run(json!({}), context.clone(), within(1_000)).await;
    assert!(matches!(refused, Err(HostError::Busy { retry_after_ms: 250 })), "{refused:?}");
    let echo = execute(&host, "(call $wrap (local.get $text) (local.get $length))");
    assert_eq!(data(&echo, json!(1)).await["args"], 1);
    calls.iter().for_each(|call| call.abort());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn handlers_that_compute_share_the_threads() {
    let host = WasmHost::new(HostConfig { max_threads: 4, max_threads_per_handler: 2, ..config() });
    let endless = execute(&host, "(loop $again (br $again)) (unreachable)");
    let calls: Vec<_> =
        (0..10).map(|_| tokio::spawn(endless.run(json!({}), FakeContext::new(), within(400)))).collect();
    tokio::time::sleep(Duration::from_millis(100)).await;
    assert_eq!(host.stats().free_threads, 2, "one handler has two of four");
    // Computes beyond its time slice, on a thread that is left.
    let slow = execute(
        &host,
        "(local $i i32)
         (loop $again
           (local.set $i (i32.add (local.get $i) (i32.const 1)))
           (br_if $again (i32.lt_u (local.get $i) (i32.const 20000000))))
         (call $wrap (local.get $text) (local.get $length))",
    );
    assert_eq!(data(&slow, json!(1)).await["args"], 1);
    for call in calls {
        assert!(matches!(call.await.unwrap(), Err(HostError::TimedOut { computing: true, .. })));
    }
    settles(&host, 4).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn call_that_is_given_up_stops_computing() {
    let host = host();
    let all = host.stats().free_threads;
    let endless = execute(&host, "(loop $again (br $again)) (unreachable)");
    let call = tokio::spawn(endless.run(json!({}), FakeContext::new(), within(60_000)));
    tokio::time::sleep(Duration::from_millis(50)).await;
    assert_eq!(host.stats().free_threads, all - 1);
    call.abort();
    settles(&host, all).await;
}

#[tokio::test]
async fn call_that_was_never_polled_leaves_nothing() {
    let host = host();
    let echo = execute(&host, "(call $wrap (local.get $text) (local.get $length))");
    drop(echo.run(json!({}), FakeContext::new(), within(100)));
    assert_eq!(host.stats().instances, 0);
}

#[tokio::test]
async fn host_can_be_dropped_before_its_handlers() {
    let host = host();
    let echo: Arc<dyn Handler> = execute(&host, "(call $wrap (local.get $text) (local.get $length))");
    drop(host);
    assert_eq!(data(&echo, json!(1)).await["args"], 1);
}

/// Waits until every thread is free and every instance is gone.
async fn settles(host: &WasmHost, threads: usize) {
    let start = Instant::now();
    while host.stats().free_threads < threads || host.stats().instances > 0 {
        assert!(start.elapsed() < Duration::from_secs(5), "{:?}", host.stats());
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
}
