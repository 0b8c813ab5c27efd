//! Confirmations of tool calls.

use serde_json::json;

use crate::world::World;

#[tokio::test]
async fn a_confirmation_is_approved_once_and_only_by_its_client() {
    let world = World::new().await;
    let cookie = world.new_client().await;
    let asked =
        world.post("/api/chat", &json!({ "message": "call it" })).with("cookie", &cookie).send().await;
    let question = asked.event("data-confirmation");
    assert_eq!(asked.event("finish")["finishReason"], "tool-calls");
    let body = json!({ "token": question["data"]["token"], "approve": true });
    let decide = |cookie: &str| world.post("/api/confirmations", &body).with("cookie", cookie).send();
    let stranger = decide(&world.new_client().await).await;
    assert_eq!((stranger.refusal().0, stranger.refusal().1), (400, "CONFIRMATION_INVALID".into()));
    let approved = decide(&cookie).await;
    assert_eq!((approved.status, approved.json()["data"].clone()), (200, json!({ "did": "it" })));
    let again = decide(&cookie).await;
    assert_eq!((again.refusal().0, again.refusal().1), (400, "CONFIRMATION_INVALID".into()));
}

#[tokio::test]
async fn the_gates_part_follows_the_tool_result() {
    let world = World::new().await;
    let refused = world.post("/api/chat", &json!({ "message": "call bad" })).send().await;
    let events = refused.events();
    let at = events.iter().position(|event| event["type"] == "tool-output-error").unwrap();
    let gates = &events[at + 1];
    assert_eq!((&gates["type"], &gates["id"]), (&json!("data-gates"), &json!("1")));
    assert_eq!(gates["data"]["toolCallId"], "1");
    let said = gates["data"]["gates"].as_array().unwrap();
    assert_eq!(said[0], json!({ "gate": "well_formed", "verdict": "passed" }));
    assert_eq!(said[8], json!({ "gate": "arguments", "verdict": "refused", "note": "VALIDATION" }));
    assert_eq!(said[10], json!({ "gate": "confirmation", "verdict": "not_reached" }));
    assert!(gates.get("transient").is_none(), "a page that keeps its messages keeps the gates");
}

#[tokio::test]
async fn a_denied_confirmation_returns_an_envelope() {
    let world = World::new().await;
    let cookie = world.new_client().await;
    let asked =
        world.post("/api/chat", &json!({ "message": "call it" })).with("cookie", &cookie).send().await;
    let token = &asked.event("data-confirmation")["data"]["token"];
    let body = json!({ "token": token, "approve": false });
    let denied = world.post("/api/confirmations", &body).with("cookie", &cookie).send().await;
    assert_eq!((denied.refusal().0, denied.refusal().1), (200, "CONFIRMATION_DENIED".into()));
}

#[tokio::test]
async fn an_invalid_body_names_the_field() {
    let world = World::new().await;
    let faults = [
        (json!({ "token": "t", "approve": true, "reason": "why not" }), "`reason`"),
        (json!({ "token": "t" }), "`approve`"),
        (json!({ "token": 1, "approve": true }), "string"),
        (json!(["t", true]), "object"),
    ];
    for (body, named) in faults {
        let refused = world.post("/api/confirmations", &body).send().await;
        assert_eq!((refused.refusal().0, refused.refusal().1), (400, "VALIDATION".into()), "{body}");
        assert!(refused.refusal().2.contains(named), "{body}: {}", refused.refusal().2);
    }
}
