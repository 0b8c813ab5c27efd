//! Modules that mean harm. Each ends its own call and nothing else.

use std::sync::Arc;
use std::time::{Duration, Instant};

use quarterdeck_contracts::handler::{Handler, HostError};
use quarterdeck_host_wasm::{HostConfig, WasmHost};
use quarterdeck_testkit::FakeContext;
use serde_json::json;

use crate::world::{
    answering, call, config, data, execute, failure, host, load, load_bytes, load_module, module, within,
};

/// How long after its deadline a handler that computes may still be told of, or hold its thread.
const MAX_DELAY: Duration = Duration::from_millis(20);
/// A machine that is busy with something else is late by itself, so the best of so many attempts counts.
const ATTEMPTS: usize = 5;

fn echo(host: &WasmHost) -> Arc<dyn Handler> {
    execute(host, "(call $wrap (local.get $text) (local.get $length))")
}

/// Runs a hostile `execute`, then ordinary calls on the same host.
async fn survive(body: &str) -> String {
    let host = host();
    let failed = failure(&execute(&host, body), json!({})).await;
    let echo = echo(&host);
    for n in 0..100 {
        assert_eq!(data(&echo, json!(n)).await["args"], n);
    }
    assert_eq!(host.stats().instances, 0);
    failed
}

async fn until_free(host: &WasmHost, all: usize) -> Duration {
    let start = Instant::now();
    while host.stats().free_threads < all || host.stats().instances > 0 {
        assert!(start.elapsed() < Duration::from_secs(10), "{:?}", host.stats());
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
    start.elapsed()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn endless_loop_is_stopped_within_20_ms_of_its_deadline() {
    let host = host();
    let all = host.stats().free_threads;
    let endless = execute(&host, "(loop $again (br $again)) (unreachable)");
    let mut delays = Vec::new();
    for _ in 0..ATTEMPTS {
        let start = Instant::now();
        let ended = endless.run(json!({}), FakeContext::new(), within(100)).await;
        let answered = start.elapsed().saturating_sub(Duration::from_millis(100));
        assert!(matches!(ended, Err(HostError::TimedOut { limit_ms: 100, computing: true })), "{ended:?}");
        delays.push(answered + until_free(&host, all).await);
    }
    assert!(delays.iter().min().is_some_and(|best| *best < MAX_DELAY), "{delays:?}");
}

#[tokio::test]
async fn endless_loop_does_not_hold_up_the_task_that_made_it() {
    // One thread for all tasks: whatever runs beside the loop runs on it.
    let host = host();
    let endless = execute(&host, "(loop $again (br $again)) (unreachable)");
    let echo = echo(&host);
    let looping = tokio::spawn(endless.run(json!({}), FakeContext::new(), within(300)));
    let start = Instant::now();
    for n in 0..50 {
        data(&echo, json!(n)).await;
        tokio::task::yield_now().await;
    }
    assert!(start.elapsed() < Duration::from_millis(250), "{:?}", start.elapsed());
    assert!(!looping.is_finished());
    assert!(matches!(looping.await.unwrap(), Err(HostError::TimedOut { computing: true, .. })));
}

#[tokio::test]
async fn loops_at_load_points_are_stopped_too() {
    let host = host();
    let rest = r#"(func (export "execute") (param i32 i32) (result i64) (i64.const 0))
        (func (export "resume") (param i32 i32 i32) (result i64) (i64.const 0))"#;
    for place in [
        r#"(func $spin (loop $again (br $again))) (start $spin)"#,
        r#"(func (export "_initialize") (loop $again (br $again)))"#,
    ] {
        let handler = load(&host, &format!("{place} {rest}"));
        let ended = handler.run(json!({}), FakeContext::new(), within(50)).await;
        assert!(matches!(ended, Err(HostError::TimedOut { computing: true, .. })), "{ended:?}");
    }
}

#[tokio::test]
async fn memory_bomb_is_told_as_the_limit_of_memory() {
    let failed = survive(
        "(loop $more
           (if (i32.eq (memory.grow (i32.const 16)) (i32.const -1)) (then (unreachable)))
           (memory.fill (i32.const 131072) (i32.const 7) (i32.const 1048576))
           (br $more))
         (unreachable)",
    )
    .await;
    assert_eq!(failed, "the handler went over its limit of memory");
}

#[tokio::test]
async fn module_that_gets_no_memory_may_go_on_without() {
    let host = host();
    let handler = execute(
        &host,
        "(if (i32.ne (memory.grow (i32.const 5000)) (i32.const -1)) (then (unreachable)))
         (call $wrap (local.get $text) (local.get $length))",
    );
    assert_eq!(data(&handler, json!(1)).await["args"], 1);
}

#[tokio::test]
async fn smaller_limit_of_memory_holds_as_well() {
    let host = WasmHost::new(HostConfig { memory_bytes: 1 << 20, ..config() });
    let handler = execute(
        &host,
        "(if (i32.eq (memory.grow (i32.const 15)) (i32.const -1)) (then (unreachable)))
         (call $wrap (local.get $text) (local.get $length))",
    );
    assert_eq!(failure(&handler, json!(1)).await, "the handler went over its limit of memory");
}

#[tokio::test]
async fn deep_recursion_is_told_as_the_limit_of_the_stack() {
    let failed = survive("(call $execute (local.get $text) (local.get $length))").await;
    assert_eq!(failed, "the handler went over its limit of stack");
}

#[tokio::test]
async fn table_grows_to_its_limit_and_no_further() {
    let host = host();
    let handler = load(
        &host,
        r#"(table $table 1 funcref)
        (func (export "execute") (param i32 i32) (result i64)
          (if (i32.ne (table.grow $table (ref.null func) (i32.const 20000)) (i32.const -1)) (then (unreachable)))
          (if (i32.eq (table.grow $table (ref.null func) (i32.const 19999)) (i32.const -1)) (then (unreachable)))
          (call $wrap (local.get 0) (local.get 1)))
        (func (export "resume") (param i32 i32 i32) (result i64) (unreachable))"#,
    );
    data(&handler, json!({})).await;
}

#[tokio::test]
async fn traps_name_the_function_that_they_happened_in() {
    assert_eq!(
        survive("(unreachable)").await,
        "the handler failed: wasm trap: wasm `unreachable` instruction executed, in `execute`"
    );
    assert_eq!(
        survive("(i64.load (i32.const -8))").await,
        "the handler failed: wasm trap: out of bounds memory access, in `execute`"
    );
    assert_eq!(
        survive("(i64.extend_i32_u (i32.div_u (local.get $text) (i32.const 0)))").await,
        "the handler failed: wasm trap: integer divide by zero, in `execute`"
    );
}

#[tokio::test]
async fn answers_outside_of_the_memory_are_refused() {
    for (address, length) in
        [(131_072, 1_u32), (131_071, 2), (u32::MAX, u32::MAX), (0, u32::MAX), (u32::MAX, 1)]
    {
        let body = format!(
            "(call $answer (i32.const {}) (i32.const {}))",
            address.cast_signed(),
            length.cast_signed()
        );
        let failed = survive(&body).await;
        assert_eq!(failed, "the handler failed: its answer lies outside its memory", "{address} {length}");
    }
}

#[tokio::test]
async fn pointers_given_to_the_host_must_lie_in_the_memory() {
    let cases = [
        (
            "(drop (call $call (i32.const -1) (i32.const 2) (i32.const 0) (i32.const 0)))",
            "the name of its request",
        ),
        (
            "(drop (call $call (i32.const 0) (i32.const 2) (i32.const 8) (i32.const -1)))",
            "the text of its request",
        ),
        ("(call $log (i32.const 0) (i32.const 131072) (i32.const 1))", "its line for the log"),
        ("(call $random (i32.const 131071) (i32.const 2))", "the place for its random bytes"),
    ];
    for (body, what) in cases {
        let failed = survive(&format!("{body} (i64.const 0)")).await;
        assert!(
            failed.starts_with(&format!("the handler failed: {what} lies outside its memory")),
            "{failed}"
        );
    }
}

#[tokio::test]
async fn room_that_is_none_is_refused() {
    for (returned, expected) in [
        ("0", "the handler failed: `allocate` has no room for"),
        ("-1", "the handler failed: the room that `allocate` returned lies outside its memory"),
        ("65535", "the handler failed: the room that `allocate` returned lies outside its memory"),
    ] {
        let text = format!(
            r#"(module (memory (export "memory") 1)
              (func (export "allocate") (param i32) (result i32) (i32.const {returned}))
              (func (export "execute") (param i32 i32) (result i64) (i64.const 0)))"#
        );
        let failed = failure(&load_module(&host(), &text).unwrap(), json!({})).await;
        assert!(failed.starts_with(expected), "{failed}");
    }
}

#[tokio::test]
async fn answer_over_the_limit_is_not_read() {
    let host = host();
    let handler = execute(
        &host,
        "(drop (memory.grow (i32.const 32))) (call $answer (i32.const 0) (i32.const 1048577))",
    );
    assert_eq!(failure(&handler, json!({})).await, "the handler went over its limit of answer size");
}

#[tokio::test]
async fn deeply_nested_answer_is_an_error() {
    let host = host();
    let answer = format!("{{\"ok\":true,\"data\":{}{}}}", "[".repeat(5_000), "]".repeat(5_000));
    let failed = failure(&answering(&host, answer.as_bytes()), json!({})).await;
    assert!(failed.contains("recursion limit"), "{failed}");
}

#[tokio::test]
async fn too_many_random_bytes_at_once_are_refused() {
    let failed = survive("(call $random (i32.const 0) (i32.const 65537)) (i64.const 0)").await;
    assert!(
        failed.starts_with("the handler failed: it asked for more than 65536 random bytes at once"),
        "{failed}"
    );
}

#[tokio::test]
async fn log_ends_at_its_quota_with_one_warning() {
    let host = host();
    let handler = execute(
        &host,
        "(local $i i32)
         (loop $again
           (call $log (i32.const 1) (local.get $text) (i32.const 10))
           (local.set $i (i32.add (local.get $i) (i32.const 1)))
           (br_if $again (i32.lt_u (local.get $i) (i32.const 100000))))
         (call $wrap (local.get $text) (local.get $length))",
    );
    let context = FakeContext::new();
    handler.run(json!({}), context.clone(), within(10_000)).await.unwrap();
    let logs = context.recorded().logs;
    assert_eq!(logs.len(), (64 << 10) / 42 + 1);
    assert_eq!(logs.last().unwrap().1, "the call went over its limit for log output; the rest is dropped");
}

#[tokio::test]
async fn what_is_no_module_is_not_loaded() {
    let host = host();
    for bytes in [vec![], b"\0asm".to_vec(), vec![0; 100], vec![0; 2 << 20]] {
        assert!(matches!(load_bytes(&host, bytes), Err(HostError::Unloadable(_))));
    }
    let truncated = wat::parse_str(module("")).unwrap();
    for length in 0..truncated.len() {
        assert!(load_bytes(&host, truncated[..length].to_vec()).is_err());
    }
    assert!(call(&echo(&host), json!({})).await.is_ok());
}
