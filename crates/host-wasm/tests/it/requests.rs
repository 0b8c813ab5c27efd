//! What a module asks the host for.

use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use quarterdeck_contracts::handler::{
    CancelReason, CapabilityError, CapabilityErrorCode, Context, HostError,
};
use quarterdeck_contracts::{Capability, ErrorType, Outcome};
use quarterdeck_testkit::FakeContext;
use serde_json::{Value, json};

use crate::world::{
    TEN_SECONDS, Unanswered, data, data_in, execute, failure, host, load, requesting, scripted, within,
};

async fn result_of(name: &str, args: Value) -> Value {
    let host = host();
    data(&requesting(&host, name, &args), json!({})).await
}

fn error(code: &str, message: &str) -> Value {
    json!({ "ok": false, "error": { "code": code, "message": message } })
}

#[tokio::test]
async fn capability_is_used_by_name_and_its_answer_resumes_the_module() {
    let host = host();
    let context = FakeContext::new();
    context.provide(Capability::KB, |method, args| Ok(json!({ "method": method, "args": args })));
    let searching = requesting(&host, "kb.search", &json!([{ "query": "ice" }]));
    let result = data_in(&searching, json!({}), context.clone()).await;
    let value = json!({ "method": "search", "args": [{ "query": "ice" }] });
    assert_eq!(result, json!({ "ok": true, "value": value }));
    let putting = requesting(&host, "store.put", &json!(["ship", "Fram"]));
    assert_eq!(data_in(&putting, json!({}), context.clone()).await["ok"], true);
    assert_eq!(context.recorded().store.get("ship"), Some(&json!("Fram")));
    let getting = requesting(&host, "store.get", &json!(["ship"]));
    assert_eq!(data_in(&getting, json!({}), context).await, json!({ "ok": true, "value": "Fram" }));
}

#[tokio::test]
async fn refusal_of_a_capability_is_a_result_that_can_be_passed_on() {
    let host = host();
    let context = FakeContext::new();
    context.provide(Capability::STORE, |_, _| {
        let refusal = CapabilityError::not_declared("\"capabilities\": [\"store\"]");
        Err(CapabilityError { retry_after_seconds: Some(1.5), ..refusal })
    });
    let getting = requesting(&host, "store.get", &json!(["k"]));
    let result = data_in(&getting, json!({}), context.clone()).await;
    assert_eq!(result["error"]["code"], "NOT_DECLARED");
    assert_eq!(result["error"]["retryAfter"], 1.5);
    let passing_on = load(
        &host,
        r#"(data (i32.const 1024) "store.get[]")
        (func (export "execute") (param i32 i32) (result i64)
          (drop (call $call (i32.const 1024) (i32.const 9) (i32.const 1033) (i32.const 2)))
          (i64.const 0))
        (func (export "resume") (param i32 i32 i32) (result i64) (call $answer (local.get 1) (local.get 2)))"#,
    );
    let answer = passing_on.run(json!({}), context.clone(), TEN_SECONDS).await.unwrap();
    let Outcome::Failure(error) = answer.outcome else { panic!("it is a failure") };
    assert_eq!(error.kind, ErrorType::Permanent);
    assert!(context.recorded().faults[0].message.starts_with("CapabilityError: add "));
}

#[tokio::test]
async fn unknown_names_and_bad_arguments_are_failed_results() {
    for name in ["kb.drop", "kb", "clock.now", "files.read", "", ".", "kb.search.all"] {
        assert_eq!(
            result_of(name, json!([])).await,
            error("NOT_AVAILABLE", &format!("{name} does not exist")),
            "{name}"
        );
    }
    assert_eq!(
        result_of(&"x".repeat(1_000), json!([])).await,
        error("NOT_AVAILABLE", "a request of this name does not exist")
    );
    assert_eq!(
        result_of("fetch", json!(["https://example.com"])).await,
        error(
            "INVALID_ARGUMENT",
            "fetch takes an object: `url`, and `method`, `headers` and `body` if need be"
        )
    );
    assert_eq!(
        result_of("kb.search", json!({ "query": "ice" })).await,
        error("INVALID_ARGUMENT", "the arguments of a request are a JSON list")
    );
    assert_eq!(
        result_of("sleep", json!(["long"])).await,
        error("INVALID_ARGUMENT", "sleep takes milliseconds")
    );
}

#[tokio::test]
async fn progress_partial_results_and_audit_go_to_the_context() {
    let host = host();
    let context = FakeContext::new();
    for (name, args, value) in [
        ("progress", json!(["half"]), json!(null)),
        ("emit", json!([{ "rows": 1 }]), json!(true)),
        ("audit.log", json!(["looked", { "n": 1 }]), json!(null)),
    ] {
        let result = data_in(&requesting(&host, name, &args), json!({}), context.clone()).await;
        assert_eq!(result, json!({ "ok": true, "value": value }), "{name}");
    }
    let recorded = context.recorded();
    assert_eq!(recorded.progress, ["half"]);
    assert_eq!(recorded.partial, [json!({ "rows": 1 })]);
    assert_eq!(recorded.audits, [("looked".to_owned(), json!({ "n": 1 }))]);
}

#[tokio::test]
async fn sleep_resumes_the_module_when_its_time_has_come() {
    let start = Instant::now();
    assert_eq!(result_of("sleep", json!([30])).await, json!({ "ok": true, "value": null }));
    assert!(start.elapsed() >= Duration::from_millis(30));
}

#[tokio::test]
async fn signal_resumes_the_module_when_the_call_should_stop() {
    let host = host();
    let context = FakeContext::new();
    let handler = requesting(&host, "signal", &json!([]));
    let running = tokio::spawn({
        let context = context.clone();
        async move { data_in(&handler, json!({}), context).await }
    });
    tokio::time::sleep(Duration::from_millis(20)).await;
    assert!(!running.is_finished());
    context.signal().cancel(CancelReason::Stopped);
    let value = json!({ "message": "The call was cancelled.", "isDeadline": false });
    assert_eq!(running.await.unwrap(), json!({ "ok": true, "value": value }));
}

#[tokio::test]
async fn deadline_passes_while_a_request_is_open() {
    let host = host();
    let context = Unanswered::new();
    let handler = requesting(&host, "kb.search", &json!(["ice"]));
    let ended = handler.run(json!({}), context.clone(), within(50)).await;
    assert!(matches!(ended, Err(HostError::TimedOut { limit_ms: 50, computing: false })), "{ended:?}");
    assert_eq!((context.open.load(Ordering::SeqCst), host.stats().instances), (0, 0));
}

#[tokio::test]
async fn module_that_waits_for_nothing_ends_at_once() {
    let host = host();
    let start = Instant::now();
    let failed = failure(&execute(&host, "(i64.const 0)"), json!({})).await;
    assert_eq!(failed, "the handler failed: it waits, and has no request open");
    assert!(start.elapsed() < Duration::from_secs(1));
}

#[tokio::test]
async fn request_that_is_not_waited_for_is_done_before_the_answer() {
    let host = host();
    let handler = load(
        &host,
        r#"(data (i32.const 1024) "store.put[\"k\",1]")
        (func (export "execute") (param i32 i32) (result i64)
          (drop (call $call (i32.const 1024) (i32.const 9) (i32.const 1033) (i32.const 7)))
          (call $wrap (local.get 0) (local.get 1)))
        (func (export "resume") (param i32 i32 i32) (result i64) (unreachable))"#,
    );
    let context = FakeContext::new();
    data_in(&handler, json!({}), context.clone()).await;
    assert_eq!(context.recorded().store.get("k"), Some(&json!(1)));
}

/// Counts how often `$call` gave an id, and answers with that number.
const COUNTING: &str = r#"(data (i32.const 1024) "kb.search[]")
    (global $given (mut i32) (i32.const 0))
    (func $ask (result i32)
      (call $call (i32.const 1024) (i32.const 9) (i32.const 1033) (i32.const 2)))
    (func $decimal (param $n i32) (result i64)
      (local $at i32)
      (local.set $at (i32.const 2048))
      (loop $digit
        (local.set $at (i32.sub (local.get $at) (i32.const 1)))
        (i32.store8 (local.get $at) (i32.add (i32.const 48) (i32.rem_u (local.get $n) (i32.const 10))))
        (local.set $n (i32.div_u (local.get $n) (i32.const 10)))
        (br_if $digit (local.get $n)))
      (call $wrap (local.get $at) (i32.sub (i32.const 2048) (local.get $at))))"#;

#[tokio::test]
async fn requests_are_refused_beyond_256_open_ones() {
    let host = host();
    let handler = load(
        &host,
        &format!(
            r#"{COUNTING}
            (func (export "execute") (param i32 i32) (result i64)
              (loop $again
                (if (call $ask)
                  (then (global.set $given (i32.add (global.get $given) (i32.const 1))) (br $again))))
              (call $decimal (global.get $given)))
            (func (export "resume") (param i32 i32 i32) (result i64) (unreachable))"#
        ),
    );
    let context = FakeContext::new();
    context.provide(Capability::KB, |_, _| Ok(json!(null)));
    assert_eq!(data_in(&handler, json!({}), context).await, 256);
}

#[tokio::test]
async fn requests_are_refused_beyond_four_mebibytes_of_open_arguments() {
    let host = host();
    let handler = load(
        &host,
        &format!(
            r#"{COUNTING}
            (func (export "execute") (param i32 i32) (result i64)
              (drop (memory.grow (i32.const 20)))
              (loop $again
                (if (call $call (i32.const 1024) (i32.const 9) (i32.const 8192) (i32.const 1000000))
                  (then (global.set $given (i32.add (global.get $given) (i32.const 1))) (br $again))))
              (call $decimal (global.get $given)))
            (func (export "resume") (param i32 i32 i32) (result i64) (unreachable))"#
        ),
    );
    assert_eq!(data(&handler, json!({})).await, 4);
}

#[tokio::test]
async fn requests_are_refused_beyond_10_000_of_one_call() {
    let host = host();
    let go_on = r#"(if (call $ask)
        (then (global.set $given (i32.add (global.get $given) (i32.const 1))) (return (i64.const 0))))
        (call $decimal (global.get $given))"#;
    let handler = load(
        &host,
        &format!(
            r#"{COUNTING}
            (func (export "execute") (param i32 i32) (result i64) {go_on})
            (func (export "resume") (param i32 i32 i32) (result i64)
              (global.set $next (i32.const 65536)) {go_on})"#
        ),
    );
    let context = FakeContext::new();
    context.provide(Capability::KB, |_, _| Ok(json!(null)));
    assert_eq!(data_in(&handler, json!({}), context).await, 10_000);
}

#[tokio::test]
async fn results_come_one_at_a_time_as_they_complete() {
    // The script asks twice, waits twice, and then answers with the text at 45.
    let host = host();
    let context = FakeContext::new();
    context.provide(Capability::KB, |_, _| {
        Err(CapabilityError::new(CapabilityErrorCode::NotAvailable, "no index"))
    });
    let script = json!([1, 16, 9, 25, 7, 1, 32, 9, 41, 5, 0, 0, 0, 0, 0, (46_u64 << 32) | 20]);
    assert_eq!(data_in(&scripted(&host), script, context).await, 7);
}
