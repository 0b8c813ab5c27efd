//! Calls from start to end, and the chat meanwhile.

use std::time::Duration;

use serde_json::{Value, json};
use tokio::time::Instant;

use super::page::{Page, Read};
use crate::world::World;

#[tokio::test]
async fn a_call_is_started_used_and_ended() {
    let world = World::new().await;
    let (mut page, ready) = Page::calling(&world, &world.new_client().await).await;
    let pcm16 = |rate: u32| json!({ "encoding": "pcm16", "rate": rate, "channels": 1 });
    assert_eq!(ready["audio"], json!({ "input": pcm16(16_000), "output": pcm16(24_000) }));
    assert_eq!((&ready["provider"], &ready["resumed"]), (&json!("echo/1"), &json!(false)));
    assert_eq!(ready["resumeToken"].as_str().unwrap().len(), 64);
    page.check_echo().await;
    page.send_json(&json!({ "type": "text", "text": "hello" })).await;
    for role in ["user", "assistant"] {
        let said = page.until("transcript").await;
        assert_eq!((&said["role"], &said["text"]), (&json!(role), &json!("hello")));
    }
    page.until("turn_complete").await;
    page.send_json(&json!({ "type": "dance" })).await;
    let error = page.until("error").await["error"].clone();
    assert_eq!((&error["type"], &error["retryable"]), (&json!("VALIDATION"), &json!(false)));
    page.send_json(&json!({ "type": "ping" })).await;
    page.until("pong").await;
    page.send_json(&json!({ "type": "stop" })).await;
    assert_eq!(page.until("session_end").await["reason"], "user_hung_up");
    assert_eq!(page.read().await, Read::Closed(Some(1000)));
}

#[tokio::test]
async fn a_page_without_binary_messages_uses_base64() {
    let world = World::new().await;
    let mut page = Page::open(&world, "/voice", &[]).await;
    page.start(json!({ "audio": "base64" })).await;
    for spelling in [r#"{"type":"audio","data":"AQIDBAUG"}"#, r#"{ "data": "AQIDBAUG", "type": "audio" }"#] {
        page.socket.send_text(spelling);
        page.socket.flush().await.unwrap();
        assert_eq!(page.until("audio").await["data"], "AQIDBAUG");
    }
}

#[tokio::test]
async fn a_lost_connection_is_resumed_with_its_token() {
    let world = World::new().await;
    let (ann, ben) = (world.new_client().await, world.new_client().await);
    let (page, ready) = Page::calling(&world, &ann).await;
    let again = json!({ "sessionId": ready["sessionId"], "resumeToken": ready["resumeToken"] });
    drop(page);
    let mut page = Page::open(&world, "/voice", &[("cookie", &ann)]).await;
    let resumed = page.start(again.clone()).await;
    assert_eq!((&resumed["sessionId"], &resumed["resumed"]), (&ready["sessionId"], &json!(true)));
    page.check_echo().await;
    // Another one with the same token takes the call over.
    let mut elsewhere = Page::open(&world, "/voice", &[("cookie", &ann)]).await;
    assert_eq!(elsewhere.start(again.clone()).await["sessionId"], ready["sessionId"]);
    assert_eq!(page.ending().await, (None, Some(4001)));
    elsewhere.check_echo().await;
    // Another client gets its own session.
    let mut other = Page::open(&world, "/voice", &[("cookie", &ben)]).await;
    let other = other.start(again).await;
    assert_eq!(other["resumed"], false);
    assert_ne!(other["sessionId"], ready["sessionId"]);
}

#[tokio::test]
async fn a_wrong_resume_token_starts_a_new_session() {
    let world = World::new().await;
    let ann = world.new_client().await;
    let (page, ready) = Page::calling(&world, &ann).await;
    drop(page);
    for token in [json!("0".repeat(64)), json!("é"), json!(null)] {
        let mut page = Page::open(&world, "/voice", &[("cookie", &ann)]).await;
        let other = page.start(json!({ "sessionId": ready["sessionId"], "resumeToken": token })).await;
        assert_eq!(other["resumed"], false, "{token}");
        assert_ne!(other["sessionId"], ready["sessionId"], "{token}");
    }
}

#[tokio::test]
async fn the_chat_is_paused_during_a_call() {
    let world = World::new().await;
    let (ann, ben) = (world.new_client().await, world.new_client().await);
    let hello = json!({ "message": "hello" });
    let completion = json!({ "messages": [{ "role": "user", "content": "hello" }] });
    let chat = |cookie: &str, path: &str, body: &Value| world.post(path, body).with("cookie", cookie).send();
    let (mut page, _) = Page::calling(&world, &ann).await;
    let refused = chat(&ann, "/api/chat", &hello).await;
    let message = "You are in a call. End it to use the chat.";
    assert_eq!(refused.refusal(), (409, "CONFLICT".into(), message.into()));
    assert_eq!(
        (refused.json()["error"]["retryable"].clone(), refused.header("retry-after")),
        (json!(true), Some("5"))
    );
    assert_eq!(chat(&ann, "/v1/chat/completions", &completion).await.refusal().0, 409);
    assert_eq!(chat(&ben, "/api/chat", &hello).await.status, 200, "other clients are not affected");
    page.send_json(&json!({ "type": "stop" })).await;
    page.until("session_end").await;
    assert_eq!(page.read().await, Read::Closed(Some(1000)));
    assert_eq!(chat(&ann, "/api/chat", &hello).await.status, 200);
    assert_eq!(chat(&ann, "/v1/chat/completions", &completion).await.status, 200);
}

#[tokio::test]
async fn a_blocked_caller_gets_a_timeout_message() {
    let world = World::new().await;
    let ann = world.new_client().await;
    world.block(&world.client_of(&ann).await).await;
    let mut page = Page::open(&world, "/voice", &[("cookie", &ann)]).await;
    page.send_json(&json!({ "type": "start" })).await;
    let blocked = page.until("timeout").await;
    assert_eq!(blocked["farewellMessage"], "Please calm down.");
    assert!((3_590..=3_600).contains(&blocked["durationSeconds"].as_u64().unwrap()), "{blocked}");
    assert_eq!(page.ending().await, (None, Some(1008)));
}

#[tokio::test(start_paused = true)]
async fn a_silent_connection_is_dropped_and_its_call_ends_later() {
    let world = World::new().await;
    let ann = world.new_client().await;
    let client = world.client_of(&ann).await;
    let mut page = Page::open(&world, "/voice", &[("cookie", &ann)]).await;
    page.start(json!({})).await;
    let began = Instant::now();
    // It does not answer pings.
    while page.socket.fill().await.is_ok() {}
    let after = began.elapsed().as_secs();
    assert!((45..50).contains(&after), "{after}");
    assert!(world.orchestrator.has_voice_session(&client), "the client may reconnect");
    let timeout = Duration::from_secs(75);
    while world.orchestrator.has_voice_session(&client) {
        assert!(began.elapsed() < timeout, "the call must end");
        tokio::time::sleep(Duration::from_secs(1)).await;
    }
}
