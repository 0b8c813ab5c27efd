//! Conversations, and whose they are.

use serde_json::json;

use crate::world::World;

#[tokio::test]
async fn what_was_said_is_kept_for_whoever_said_it() {
    let world = World::new().await;
    let cookie = world.newcomer().await;
    let answer = world.post("/api/chat", &json!({ "message": "hello" })).with("cookie", &cookie).send().await;
    assert_eq!(answer.header("content-type"), Some("text/event-stream"));
    assert_eq!(answer.header("x-vercel-ai-ui-message-stream"), Some("v1"));
    let start = answer.event("start");
    let session = start["messageMetadata"]["sessionId"].as_str().unwrap();
    let path = format!("/api/sessions/{session}");
    let kept = world.get(&path).with("cookie", &cookie).send().await.json();
    assert_eq!(kept["messages"][0]["parts"], json!([{ "type": "text", "text": "hello" }]));
    assert_eq!(kept["messages"][1]["role"], "assistant");

    let stranger = world.newcomer().await;
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
async fn an_answer_that_is_being_written_can_be_followed_from_its_start() {
    let world = World::new().await;
    let cookie = world.newcomer().await;
    let words = json!([{ "type": "text", "text": "wait" }]);
    let body = json!({ "id": "a chat/1", "messages": [{ "id": "m", "role": "user", "parts": words }] });
    let mut first = world.post("/api/chat", &body).with("cookie", &cookie).open().await;
    first.until("You said").await;
    let mut second = world.get("/api/chat/a%20chat%2F1/stream").with("cookie", &cookie).open().await;
    second.until("You said").await;
    let other = json!({ "id": "a chat/1", "message": "hello" });
    let busy = world.post("/api/chat", &other).with("cookie", &cookie).send().await;
    assert_eq!((busy.refusal().0, busy.header("retry-after")), (409, Some("1")));
    world.go_on.add_permits(1);
    let first = first.rest().await;
    assert_eq!(second.rest().await.events(), first.events());
    assert_eq!(first.event("finish")["finishReason"], "stop");
    let idle = world.get("/api/chat/a%20chat%2F1/stream").with("cookie", &cookie).send().await;
    assert_eq!(idle.status, 204);
}
