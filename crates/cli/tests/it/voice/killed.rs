//! The server is killed while a write is under way, or right after it.

use std::time::Duration;

use serde_json::{Value, json};

use super::page::Page;
use super::voice_model::VoiceModel;

/// A greeting, a booking that takes `ms`, and thanks.
fn booking(ms: u64) -> Value {
    let call = json!({ "id": "function-call-4711", "name": "book", "args": { "what": "room", "ms": ms } });
    json!([
        { "begins": "text", "steps": [{ "say": "Hello." }] },
        { "begins": "text", "containing": "room", "steps": [{ "call": call }, { "await": "answers" }, { "say": "So much for that." }] },
        { "begins": "text", "containing": "thank", "steps": [{ "say": "You are welcome." }] },
    ])
}

#[tokio::test(flavor = "multi_thread")]
async fn what_was_done_before_a_crash_is_not_done_again_and_its_answer_is_not_lost() {
    for model in VoiceModel::each(&booking(400)).await {
        assert_kept(&model).await;
    }
}

async fn assert_kept(model: &VoiceModel) {
    let site = model.site();
    let server = site.serve();
    let mut page = Page::connect(&server).await;
    page.exchange("Good day", "Hello.").await;
    page.send_text("Book the room").await;
    page.wait_for("tool_call").await;
    model.stop_reading();
    let committed = page.wait_for("committed").await;
    assert_eq!(committed["count"], 1);
    server.kill();
    model.resume_reading();

    let server = site.serve();
    let mut page = page.reconnect(&server).await;
    assert_eq!(model.answer_after_restart().await, json!({ "output": { "did": "room", "count": 1 } }));
    page.exchange("Many thanks", "You are welcome.").await;
    model.assert_clean();
    server.stop();
    assert_eq!((site.count_runs("ran", "room"), site.stored_count("book").await), (1, 1));
}

#[tokio::test(flavor = "multi_thread")]
async fn what_a_crash_has_interrupted_is_not_tried_again_and_is_not_said_to_be_done() {
    for model in VoiceModel::each(&booking(10_000)).await {
        assert_not_repeated(&model).await;
    }
}

async fn assert_not_repeated(model: &VoiceModel) {
    let site = model.site();
    let server = site.serve();
    let mut page = Page::connect(&server).await;
    page.exchange("Good day", "Hello.").await;
    page.send_text("Book the room").await;
    page.wait_for("progress").await;
    model.stop_reading();
    server.kill();
    model.resume_reading();

    let server = site.serve();
    let mut page = page.reconnect(&server).await;
    let answer = model.answer_after_restart().await;
    let error = &answer["error"];
    assert_eq!(
        (&error["type"], &error["details"]["outcome"]),
        (&json!("INTERNAL"), &json!("unknown")),
        "{answer}"
    );
    assert_eq!(error["partialSideEffects"], true, "{answer}");
    page.exchange("Many thanks", "You are welcome.").await;
    model.assert_clean();
    server.stop();
    assert_eq!(site.stored_count("book").await, 0, "half of it is not real");
    assert!(site.count_runs("ran", "room") <= 1, "{:#?}", site.trail("ran"));
}

#[tokio::test(flavor = "multi_thread")]
async fn approval_counts_once_across_a_crash() {
    let turns = json!([
        { "begins": "text", "steps": [
            { "call": { "id": "function-call-4712", "name": "pay", "args": { "what": "rent" } } },
            { "await": "answers" },
            { "say": "Please look at your screen." },
        ] },
        { "begins": "anything", "steps": [{ "say": "So it is." }] },
        { "begins": "anything", "steps": [{ "say": "So it is." }] },
    ]);
    for model in VoiceModel::each(&turns).await {
        assert_approved_once(&model).await;
    }
}

async fn assert_approved_once(model: &VoiceModel) {
    let site = model.site();
    let server = site.serve();
    let mut page = Page::connect(&server).await;
    page.send_text("Pay the rent").await;
    let token = page.wait_for("confirmation_request").await["token"].clone();
    page.wait_for("turn_complete").await;
    let yes = json!({ "type": "confirm", "token": token, "approve": true });
    page.send(&yes).await;
    page.wait_for("committed").await;
    // The audit log is written beside the call, and a line that is not in the file yet does not survive the kill.
    while site.count_runs("ran", "rent") == 0 {
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    server.kill();

    let server = site.serve();
    let mut page = page.reconnect(&server).await;
    page.send(&yes).await;
    let error = page.wait_for("error").await;
    let kind = error["error"]["type"].as_str().unwrap();
    assert!(kind.starts_with("CONFIRMATION_"), "{error}");
    server.stop();
    assert_eq!((site.count_runs("ran", "rent"), site.stored_count("pay").await), (1, 1));
}
