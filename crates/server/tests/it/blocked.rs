//! A client that is blocked.

use quarterdeck_server::Settings;
use serde_json::json;

use crate::world::World;

#[tokio::test]
async fn a_blocked_client_learns_the_end_of_the_block_in_every_error_format() {
    let world = World::new().await;
    let cookie = world.new_client().await;
    world.block(&world.client_of(&cookie).await).await;
    let said = world.post("/api/chat", &json!({ "message": "hi" })).with("cookie", &cookie).send().await;
    let until = said.json()["timeoutUntil"].as_str().unwrap().to_owned();
    assert_eq!(said.refusal(), (403, "BLOCKED".into(), format!("You are blocked until {until}.")));
    let body = json!({ "messages": [{ "role": "user", "content": "hi" }] });
    let asked = world.post("/v1/chat/completions", &body).with("cookie", &cookie).send().await;
    assert_eq!(asked.refusal().1, "invalid_request_error");
    assert_eq!((asked.status, asked.json()["timeoutUntil"].clone()), (403, json!(until)));
    let resumed = world.get("/api/chat/ses_1/stream").with("cookie", &cookie).send().await;
    assert_eq!((resumed.status, resumed.json()["timeoutUntil"].clone()), (403, json!(until)));
}

#[tokio::test]
async fn a_blocked_client_sees_the_remaining_time() {
    let world = World::new().await;
    let cookie = world.new_client().await;
    world.block(&world.client_of(&cookie).await).await;
    let me = world.get("/api/me").with("cookie", &cookie).send().await;
    assert_eq!(me.status, 200);
    let block = &me.json()["block"];
    assert_eq!(block["message"], "Please calm down.");
    let left = block["secondsLeft"].as_u64().unwrap();
    assert!((3_500..=3_600).contains(&left), "{left}");
    assert!(block["timeoutUntil"].is_string());
    let lift = format!("quarterdeck blocks lift {}", world.client_of(&cookie).await);
    assert_eq!(block["lift"], json!(lift), "on their own machine, the user is the operator");
    assert_eq!(world.get("/api/me").send().await.json()["block"], json!(null), "another client");
}

#[tokio::test]
async fn a_blocked_visitor_is_not_told_how_operators_lift_a_block() {
    let settings = Settings { admin_token: Some("operators only".into()), ..Settings::default() };
    let world = World::with(settings).await;
    let cookie = world.new_client().await;
    world.block(&world.client_of(&cookie).await).await;
    let me = world.get("/api/me").with("cookie", &cookie).send().await.json();
    assert!(me["block"]["message"].is_string());
    assert_eq!(me["block"].get("lift"), None);
}
