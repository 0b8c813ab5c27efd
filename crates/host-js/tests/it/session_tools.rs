//! The built-in tools that control a session, by the engine that runs them. What depends on the session and the client
//! cannot be said in their case files.

use std::fs;
use std::path::Path;
use std::sync::Arc;

use quarterdeck_contracts::handler::Context;
use quarterdeck_contracts::{HandlerAnswer, Outcome, ToolError};
use quarterdeck_testkit::FakeContext;
use serde_json::{Value, json};

use crate::world::{TEN_SECONDS, host, load};

async fn run(folder: &str, args: Value, context: Arc<dyn Context>) -> HandlerAnswer {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tools").join(folder).join("handler.js");
    let source = fs::read_to_string(path).unwrap();
    let host = host();
    load(&host, &source).run(args, context, TEN_SECONDS).await.unwrap()
}

fn failure(answer: HandlerAnswer) -> ToolError {
    match answer.outcome {
        Outcome::Failure(error) => error,
        Outcome::Success(data) => panic!("it succeeded with {data}"),
    }
}

fn goodbye() -> Value {
    json!({ "duration_seconds": 300, "farewell_message": "Goodbye." })
}

#[tokio::test]
async fn ignore_user_sends_a_message_blocks_and_ends_the_call() {
    let context = FakeContext::new();
    let answer = run("ignore-user", goodbye(), context.clone()).await;
    let until = 1_768_295_100_000_u64;
    assert_eq!(
        json!(answer),
        json!({
            "ok": true,
            "data": { "timeoutUntil": until, "duration": 300 },
            "intents": [
                { "type": "END_VOICE_SESSION", "after": "farewell_spoken" },
                { "type": "SUPPRESS_AUDIO", "value": true },
            ],
        })
    );
    let effects = context.recorded();
    let message = json!({ "type": "timeout", "durationSeconds": 300, "timeoutUntil": until, "farewellMessage": "Goodbye." });
    assert_eq!(effects.messages, [message]);
    assert_eq!(effects.blocks, [(json!(300), json!("Goodbye."))]);
    let audited = json!({ "durationSeconds": 300, "timeoutUntil": until });
    assert_eq!(effects.audits, [("user_timeout".to_owned(), audited)]);
}

#[tokio::test]
async fn a_fraction_of_a_second_is_rounded_up() {
    let context = FakeContext::new();
    let args = json!({ "duration_seconds": 30.001, "farewell_message": "Goodbye." });
    let answer = json!(run("ignore-user", args, context.clone()).await);
    assert_eq!(answer["data"], json!({ "timeoutUntil": 1_768_294_831_000_u64, "duration": 31 }));
    assert_eq!(context.recorded().blocks, [(json!(31), json!("Goodbye."))]);
}

#[tokio::test]
async fn user_who_is_gone_is_not_blocked() {
    let context = FakeContext::new();
    context.disconnect();
    let error = failure(run("ignore-user", goodbye(), context.clone()).await);
    assert_eq!((error.kind.as_str(), error.retryable), ("TRANSIENT", true));
    assert_eq!(context.recorded().blocks, []);
}

#[tokio::test]
async fn ended_session_is_not_blocked() {
    let context = FakeContext::in_ended_session();
    let error = failure(run("ignore-user", goodbye(), context.clone()).await);
    assert_eq!(error.kind.as_str(), "SESSION_INACTIVE");
    assert_eq!(context.recorded().messages, Vec::<Value>::new());
}

#[tokio::test]
async fn a_voice_session_is_issued_under_an_id_that_the_client_gets_too() {
    let context = FakeContext::new();
    let answer = run("start-voice-session", json!({ "pending_request": "Ice." }), context.clone()).await;
    let answer = json!(answer);
    let id = &answer["data"]["session_id"];
    assert_eq!(id.as_str().map(str::len), Some(36));
    assert_eq!(
        context.recorded().messages,
        [json!({ "type": "voice_session_start", "sessionId": id, "pendingRequest": "Ice." })]
    );
}

#[tokio::test]
async fn a_voice_session_without_a_request_says_null() {
    for args in [json!({ "pending_request": "" }), json!({})] {
        let context = FakeContext::new();
        let answer = json!(run("start-voice-session", args, context.clone()).await);
        assert_eq!(answer["data"]["pending_request"], Value::Null);
        assert_eq!(context.recorded().messages[0]["pendingRequest"], Value::Null);
    }
}

#[tokio::test]
async fn a_second_voice_session_is_refused_and_one_without_a_client_is_not_issued() {
    let args = json!({ "pending_request": "" });
    let error = failure(run("start-voice-session", args.clone(), FakeContext::in_voice()).await);
    assert_eq!(error.kind.as_str(), "SESSION_ACTIVE");

    let context = FakeContext::new();
    context.disconnect();
    let error = failure(run("start-voice-session", args, context).await);
    assert_eq!((error.kind.as_str(), error.retryable), ("TRANSIENT", true));
}
