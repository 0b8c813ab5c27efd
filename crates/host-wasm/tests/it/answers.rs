//! What a module is given, and what its answer comes to.

use quarterdeck_contracts::handler::LogLevel;
use quarterdeck_contracts::{ErrorType, Outcome};
use quarterdeck_testkit::FakeContext;
use serde_json::json;

use crate::world::{TEN_SECONDS, answering, call, data, execute, failure, host, load, load_module, module};

#[tokio::test]
async fn handler_answers_with_what_it_was_given() {
    let host = host();
    let echo = execute(&host, "(call $wrap (local.get $text) (local.get $length))");
    let given = data(&echo, json!({ "text": "Grüße", "n": 1.5 })).await;
    assert_eq!(given["args"], json!({ "text": "Grüße", "n": 1.5 }));
    assert_eq!(given["context"]["clientId"], "client_1");
    assert_eq!(given["context"]["tool"]["id"], "tool");
}

#[tokio::test]
async fn large_arguments_make_the_memory_grow() {
    let host = host();
    let echo = execute(&host, "(call $wrap (local.get $text) (local.get $length))");
    let text = "x".repeat(900_000);
    assert_eq!(data(&echo, json!(text)).await["args"], json!(text));
}

#[tokio::test]
async fn failure_and_intents_are_those_of_an_envelope() {
    let host = host();
    let failing = answering(
        &host,
        br#"{"ok":false,"error":{"type":"NOT_FOUND","message":"There is no such ship.","retryable":false}}"#,
    );
    let Outcome::Failure(error) = call(&failing, json!({})).await.unwrap().outcome else {
        panic!("it is a failure")
    };
    assert_eq!((error.kind, error.message.as_str()), (ErrorType::NotFound, "There is no such ship."));
    let intending = answering(&host, br#"{"ok":true,"intents":[{"type":"END_VOICE_SESSION"}]}"#);
    assert_eq!(call(&intending, json!({})).await.unwrap().intents.len(), 1);
}

#[tokio::test]
async fn clock_log_and_randomness_are_the_calls_own() {
    let host = host();
    let handler = execute(
        &host,
        r#"(local $i i32)
        (call $log (i32.const 2) (local.get $text) (i32.const 7))
        (call $random (i32.const 1024) (i32.const 8))
        (if (i64.eqz (i64.load (i32.const 1024))) (then (unreachable)))
        (if (i64.ne (call $now) (i64.const 1768294800000)) (then (unreachable)))
        (call $wrap (local.get $text) (local.get $length))"#,
    );
    let context = FakeContext::new();
    handler.run(json!({}), context.clone(), TEN_SECONDS).await.unwrap();
    assert_eq!(context.recorded().logs, [(LogLevel::Warn, r#"{"args""#.to_owned())]);
}

#[tokio::test]
async fn what_is_not_an_answer_is_told_as_that() {
    let host = host();
    let cases: [(&[u8], &str); 6] = [
        (b"\xff\xfe", "the handler failed: the answer is not UTF-8 from byte 0 on"),
        (
            b"{",
            "the handler failed: the answer cannot be read as JSON: EOF while parsing an object at line 1 column 1",
        ),
        (b"[]", "the handler's answer is malformed: "),
        (br#"{"data":1}"#, "the handler's answer is malformed: "),
        (
            br#"{"ok":false,"error":{"code":"NO_SUCH_CODE","message":"m"}}"#,
            "the handler's answer is malformed: ",
        ),
        (
            br#"{"ok":true}{"ok":true}"#,
            "the handler failed: the answer cannot be read as JSON: trailing characters",
        ),
    ];
    for (answer, expected) in cases {
        let failed = failure(&answering(&host, answer), json!({})).await;
        assert!(failed.starts_with(expected), "{failed}");
    }
}

#[tokio::test]
async fn initialize_runs_once_before_execute() {
    let host = host();
    let handler = load(
        &host,
        r#"(global $set_up (mut i32) (i32.const 0))
        (func (export "_initialize") (global.set $set_up (i32.add (global.get $set_up) (i32.const 1))))
        (func (export "execute") (param i32 i32) (result i64)
          (if (i32.ne (global.get $set_up) (i32.const 1)) (then (unreachable)))
          (call $wrap (local.get 0) (local.get 1)))
        (func (export "resume") (param i32 i32 i32) (result i64) (unreachable))"#,
    );
    for _ in 0..3 {
        data(&handler, json!({})).await;
    }
}

#[tokio::test]
async fn handlers_with_the_same_bytes_are_compiled_once() {
    let host = host();
    let text = |n: u32| {
        module(&format!(
            r#"(func (export "execute") (param i32 i32) (result i64) (i64.const {n}))
            (func (export "resume") (param i32 i32 i32) (result i64) (i64.const 0))"#
        ))
    };
    let one = load_module(&host, &text(1)).unwrap();
    let same = load_module(&host, &text(1)).unwrap();
    assert_eq!(host.stats().modules, 1);
    let other = load_module(&host, &text(2)).unwrap();
    assert_eq!(host.stats().modules, 2);
    drop((one, same));
    assert_eq!(host.stats().modules, 1, "code is kept as long as a handler has it");
    drop(other);
}

#[test]
fn module_that_does_not_meet_the_interface_is_not_loaded() {
    let refusal = load_module(&host(), "(module)").err().unwrap().to_string();
    assert_eq!(refusal, "the handler cannot be loaded: it does not export `memory`");
}
