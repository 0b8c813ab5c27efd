//! Conversations and their owners.

use serde_json::json;

use crate::world::World;

#[tokio::test]
async fn a_conversation_is_visible_to_its_client_only() {
    let world = World::new().await;
    let cookie = world.new_client().await;
    let answer = world.post("/api/chat", &json!({ "message": "hello" })).with("cookie", &cookie).send().await;
    assert_eq!(answer.header("content-type"), Some("text/event-stream"));
    assert_eq!(answer.header("x-vercel-ai-ui-message-stream"), Some("v1"));
    let start = answer.event("start");
    let session = start["messageMetadata"]["sessionId"].as_str().unwrap();
    let path = format!("/api/sessions/{session}");
    let kept = world.get(&path).with("cookie", &cookie).send().await.json();
    assert_eq!(kept["messages"][0]["parts"], json!([{ "type": "text", "text": "hello" }]));
    assert_eq!(kept["messages"][1]["role"], "assistant");

    let stranger = world.new_client().await;
    for ask in [world.get(&path), world.ask("DELETE", &path)] {
        let refused = ask.with("cookie", &stranger).send().await;
        assert_eq!((refused.refusal().0, refused.refusal().1), (404, "NOT_FOUND".into()));
    }
    let body = json!({ "message": "hello", "sessionId": session });
    let refused = world.post("/api/chat", &body).with("cookie", &stranger).send().await;
    assert_eq!(refused.refusal().0, 404);
    let resumed = world.get(&format!("/api/chat/{session}/stream")).with("cookie", &stranger).send().await;
    assert_eq!(resumed.status, 204);

    let ended = world.ask("DELETE", &path).with("cookie", &cookie).send().await;
    assert_eq!((ended.status, ended.text()), (204, String::new()));
    let gone = world.post("/api/chat", &body).with("cookie", &cookie).send().await;
    assert_eq!((gone.refusal().0, gone.refusal().1), (410, "SESSION_INACTIVE".into()));
    assert_eq!(world.get(&path).with("cookie", &cookie).send().await.status, 404);
}

#[tokio::test]
async fn a_running_answer_can_be_streamed_from_its_start() {
    let world = World::new().await;
    let cookie = world.new_client().await;
    let words = json!([{ "type": "text", "text": "wait" }]);
    let body = json!({ "id": "a chat/1", "messages": [{ "id": "m", "role": "user", "parts": words }] });
    let mut first = world.post("/api/chat", &body).with("cookie", &cookie).open().await;
    first.until("You said").await;
    let mut second = world.get("/api/chat/a%20chat%2F1/stream").with("cookie", &cookie).open().await;
    second.until("You said").await;
    let other = json!({ "id": "a chat/1", "message": "hello" });
    let busy = world.post("/api/chat", &other).with("cookie", &cookie).send().await;
    assert_eq!((busy.refusal().0, busy.header("retry-after")), (409, Some("1")));
    world.resume.add_permits(1);
    let first = first.rest().await;
    assert_eq!(second.rest().await.events(), first.events());
    assert_eq!(first.event("finish")["finishReason"], "stop");
    let idle = world.get("/api/chat/a%20chat%2F1/stream").with("cookie", &cookie).send().await;
    assert_eq!(idle.status, 204);
}

#[tokio::test]
async fn a_reloaded_page_gets_open_confirmations_and_endings() {
    let world = World::new().await;
    let cookie = world.new_client().await;
    let say = |text: &str| {
        world.post("/api/chat", &json!({ "id": "chat", "message": text })).with("cookie", &cookie)
    };
    let shown = || async { world.get("/api/sessions/chat").with("cookie", &cookie).send().await.json() };
    let question = say("call it").send().await.event("data-confirmation");
    let waits = shown().await["messages"][1].clone();
    assert_eq!(waits["metadata"], json!({ "ending": null }));
    assert!(waits["parts"].as_array().unwrap().contains(&question), "{waits}");

    say("hello").send().await;
    let later = shown().await;
    assert!(later["messages"][1]["parts"].as_array().unwrap().contains(&question), "{later}");
    assert_eq!(later["messages"][3]["metadata"], json!({ "ending": "answered" }));

    let mut left = say("wait").open().await;
    left.until("You said").await;
    drop(left);
    let mut last = shown().await;
    while last["isRunning"] == true {
        tokio::time::sleep(std::time::Duration::from_millis(5)).await;
        last = shown().await;
    }
    assert_eq!(last["messages"][5]["metadata"], json!({ "ending": "aborted" }));
}
