use std::sync::Arc;

use expect_test::{Expect, expect};
use quarterdeck_testkit::FakeContext;
use serde_json::{Value, json};

use crate::probe_tool::{built, load};

async fn call(tool: &str, args: Value) -> Value {
    let snapshot = load(&built()).unwrap().snapshot();
    let mut response = json!(snapshot.execute(tool, args, FakeContext::new()).await);
    response["meta"]["duration"] = json!("…");
    response["meta"]["registryVersion"] = json!("…");
    response
}

async fn check(args: Value, expected: Expect) {
    let mut response = call("probe", args).await;
    response.as_object_mut().unwrap().remove("meta");
    expected.assert_eq(&response.to_string());
}

#[tokio::test]
async fn an_answer_is_stamped() {
    assert_eq!(
        call("probe", json!({ "do": "echo", "times": 1 })).await,
        json!({
            "ok": true,
            "data": { "did": { "do": "echo", "times": 1 } },
            "meta": {
                "toolId": "probe", "toolVersion": "1.2.3", "registryVersion": "…", "responseSchemaVersion": "1.1.0",
                "duration": "…", "timestamp": "2026-01-13T09:00:00.000Z",
            },
        })
    );
}

#[tokio::test]
async fn defaults_are_filled_in_before_the_handler_runs() {
    check(json!({ "do": "echo" }), expect![[r#"{"ok":true,"data":{"did":{"do":"echo","times":3}}}"#]]).await;
}

#[tokio::test]
async fn arguments_that_the_schema_refuses_never_reach_the_handler() {
    check(json!({ "times": 50, "limit": 1 }), expect![[r#"{"ok":false,"error":{"type":"VALIDATION","message":"do is required; unknown parameter \"limit\"; known are \"do\", \"times\"; times must be ≤ 10 (got 50)","retryable":false,"details":[{"path":"","keyword":"required","message":"do is required"},{"path":"","keyword":"additionalProperties","message":"unknown parameter \"limit\"; known are \"do\", \"times\""},{"path":"/times","keyword":"maximum","message":"times must be ≤ 10 (got 50)"}],"partialSideEffects":false}}"#]]).await;
    check(json!({ "do": "echo", "times": "3" }), expect![[r#"{"ok":false,"error":{"type":"VALIDATION","message":"times must be an integer (got \"3\")","retryable":false,"details":[{"path":"/times","keyword":"type","message":"times must be an integer (got \"3\")"}],"partialSideEffects":false}}"#]]).await;
    check(json!([]), expect![[r#"{"ok":false,"error":{"type":"VALIDATION","message":"the arguments must be an object (got an array of 0 items)","retryable":false,"details":[{"path":"","keyword":"type","message":"the arguments must be an object (got an array of 0 items)"}],"partialSideEffects":false}}"#]]).await;
}

#[tokio::test]
async fn a_tool_that_does_not_exist_is_an_answer() {
    let response = call("porbe", json!({})).await;
    assert_eq!(response["error"]["type"], "NOT_FOUND");
    assert_eq!(response["error"]["retryable"], false);
    assert_eq!(response["meta"]["toolId"], "porbe");
}

#[tokio::test]
async fn a_panic_is_an_answer_that_says_nothing_about_the_inside() {
    check(json!({ "do": "panic" }), expect![[r#"{"ok":false,"error":{"type":"INTERNAL","message":"probe failed because of a fault inside it.","retryable":false,"partialSideEffects":true}}"#]]).await;
}

#[tokio::test(start_paused = true)]
async fn a_handler_that_runs_past_its_time_is_transient_and_may_have_written() {
    check(json!({ "do": "sleep" }), expect![[r#"{"ok":false,"error":{"type":"TRANSIENT","message":"probe did not answer in time.","retryable":true,"details":{"reason":"deadline","computing":false},"partialSideEffects":true}}"#]]).await;
}

#[tokio::test]
async fn an_answer_that_breaks_returns_is_internal() {
    check(json!({ "do": "lie" }), expect![[r#"{"ok":false,"error":{"type":"INTERNAL","message":"probe failed because of a fault inside it.","retryable":false,"partialSideEffects":true}}"#]]).await;
}

#[tokio::test]
async fn a_handler_decides_about_its_own_failures() {
    check(json!({ "do": "fail" }), expect![[r#"{"ok":false,"error":{"type":"CONFLICT","message":"The slot is taken.","retryable":true,"partialSideEffects":false}}"#]]).await;
}

#[tokio::test]
async fn a_handler_cannot_raise_a_confirmation() {
    check(json!({ "do": "confirm" }), expect![[r#"{"ok":false,"error":{"type":"INTERNAL","message":"probe failed because of a fault inside it.","retryable":false,"partialSideEffects":true}}"#]]).await;
}

#[tokio::test]
async fn a_capability_that_is_not_declared_is_refused_with_the_missing_line() {
    check(json!({ "do": "search" }), expect![[r#"{"ok":false,"error":{"type":"PERMANENT","message":"add \"capabilities\": [\"kb\"] to schema.json to use this","retryable":false,"details":{"code":"NOT_DECLARED"},"partialSideEffects":false}}"#]]).await;
}

#[tokio::test]
async fn a_handler_gets_the_facts_of_its_own_tool_from_the_definition() {
    let response = call("probe", json!({ "do": "facts" })).await;
    assert_eq!(
        response["data"]["did"]["tool"],
        json!({ "id": "probe", "version": "1.2.3", "idempotent": false })
    );
    assert_eq!(response["data"]["did"]["capabilities"], json!(["store"]));
}

#[tokio::test]
async fn a_session_answers_from_its_snapshot_while_calls_run_in_parallel() {
    let snapshot = load(&built()).unwrap().snapshot();
    let calls = (0..200).map(|number| {
        let snapshot = Arc::clone(&snapshot);
        tokio::spawn(async move {
            let args = json!({ "do": "echo", "times": number % 10 + 1 });
            json!(snapshot.execute("probe", args, FakeContext::new()).await)["data"]["did"]["times"].clone()
        })
    });
    for (number, call) in calls.enumerate() {
        assert_eq!(call.await.unwrap(), json!(number % 10 + 1));
    }
}
