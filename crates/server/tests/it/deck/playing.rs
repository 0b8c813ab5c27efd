//! The playground.

use serde_json::{Value, json};

use super::get;
use crate::world::World;

async fn play(world: &World, body: &Value) -> Value {
    let answer = world.post("/api/deck/playground", body).send().await;
    assert_eq!(answer.status, 200, "{}", answer.text());
    answer.json()
}

fn verdict<'a>(played: &'a Value, gate: &str) -> &'a str {
    let gates = played["gates"].as_array().unwrap();
    gates.iter().find(|said| said["gate"] == gate).unwrap()["verdict"].as_str().unwrap()
}

#[tokio::test]
async fn a_playground_call_asks_for_approval_and_runs_with_it() {
    let world = World::new().await;
    let call = json!({ "tool": "probe", "args": { "do": "it" } });
    let asked = play(&world, &call).await;
    assert_eq!(asked["response"]["error"]["type"], "CONFIRMATION_REQUIRED");
    assert_eq!(verdict(&asked, "confirmation"), "asked");
    assert!(asked["question"].as_str().unwrap().contains("probe"), "{asked}");
    assert!(!asked.to_string().contains("token"), "the token is not returned: {asked}");
    let approved = play(&world, &json!({ "tool": "probe", "args": { "do": "it" }, "approve": true })).await;
    assert_eq!(approved["response"]["data"], json!({ "did": "it" }));
    assert_eq!(verdict(&approved, "confirmation"), "approved");
}

#[tokio::test]
async fn a_refused_playground_call_shows_the_gate() {
    let world = World::new().await;
    let wrong = play(&world, &json!({ "tool": "probe", "args": { "do": 7 }, "approve": true })).await;
    assert_eq!(wrong["response"]["error"]["type"], "VALIDATION");
    assert_eq!((verdict(&wrong, "arguments"), verdict(&wrong, "confirmation")), ("refused", "not_reached"));
    let spoken = play(&world, &json!({ "tool": "probe", "args": { "do": "it" }, "mode": "voice" })).await;
    assert_eq!(verdict(&spoken, "mode"), "refused");
    let unknown = play(&world, &json!({ "tool": "prob" })).await;
    assert_eq!(verdict(&unknown, "known_tool"), "refused");
    for body in [json!({}), json!({ "tool": "probe", "args": [] }), json!({ "tool": "probe", "as": "root" })]
    {
        let refused = world.post("/api/deck/playground", &body).send().await;
        assert_eq!(refused.refusal().0, 400, "{body}");
    }
}

#[tokio::test]
async fn a_playground_session_belongs_to_the_operator_and_ends() {
    let world = World::new().await;
    let played = play(&world, &json!({ "tool": "probe", "args": { "do": "it" }, "approve": true })).await;
    let session = played["sessionId"].as_str().unwrap();
    let one = get(&world, &format!("sessions/{session}")).await;
    assert_eq!(one["session"]["clientId"], "operator");
    assert_eq!(one["session"]["isActive"], false);
    let said = get(&world, "audit?event=operator").await;
    assert_eq!(said["lines"][0]["action"], "playground");
    assert_eq!(get(&world, "overview").await["sessions"]["active"], 0);
}
