//! Operators' actions and their audit.

use serde_json::{Value, json};

use super::{client_with_call, get};
use crate::world::World;

/// The audited actions of operators.
async fn actions(world: &World) -> Vec<Value> {
    get(world, "audit?event=operator").await["lines"].as_array().unwrap().clone()
}

#[tokio::test]
async fn a_block_is_listed_and_lifted() {
    let world = World::new().await;
    let cookie = world.new_client().await;
    let client = world.client_of(&cookie).await;
    world.block(&client).await;
    let listed = get(&world, "blocks").await;
    assert_eq!((&listed["blocks"][0]["clientId"], &listed["total"]), (&json!(client), &json!(1)));
    let lift = || world.ask("DELETE", &format!("/api/deck/blocks/{client}")).send();
    assert_eq!(lift().await.status, 204);
    assert_eq!(lift().await.refusal().0, 404);
    let free = world.post("/api/chat", &json!({ "message": "hello" })).with("cookie", &cookie).send().await;
    assert_eq!(free.status, 200);
    let actions = actions(&world).await;
    assert_eq!((&actions[0]["action"], &actions[0]["clientId"]), (&json!("lift_block"), &json!(client)));
    assert_eq!(actions[0]["by"], "deck 127.0.0.1");
}

#[tokio::test]
async fn an_operator_ends_a_session_once() {
    let world = World::new().await;
    let (cookie, client, session) = client_with_call(&world).await;
    let end = |id: String| world.ask("DELETE", &format!("/api/deck/sessions/{id}")).send();
    assert_eq!(end(session.clone()).await.status, 204);
    assert_eq!(end(session.clone()).await.refusal().0, 404, "it has ended");
    assert_eq!(end("unknown".into()).await.refusal().0, 404);
    let ended = get(&world, &format!("sessions?client={client}")).await;
    assert_eq!(ended["sessions"][0]["isActive"], false);
    let body = json!({ "message": "hello", "sessionId": session });
    let refused = world.post("/api/chat", &body).with("cookie", &cookie).send().await;
    assert_eq!(refused.refusal().1, "SESSION_INACTIVE");
    assert_eq!(actions(&world).await[0]["action"], "end_session");
}

#[tokio::test]
async fn erasing_a_client_requires_the_confirm_word() {
    let world = World::new().await;
    let (_, client, session) = client_with_call(&world).await;
    let (_, other, _) = client_with_call(&world).await;
    let erase = |word: &str| {
        world.post("/api/deck/clients/erase", &json!({ "clientId": client, "confirm": word })).send()
    };
    assert_eq!(erase("yes").await.refusal().0, 400);
    assert_eq!(get(&world, &format!("sessions/{session}")).await["session"]["clientId"], client);
    let erased = erase("erase").await.json();
    assert!(erased["rows"].as_u64().unwrap() > 2, "{erased}");
    assert_eq!(erased["isComplete"], true);
    assert_eq!(world.get(&format!("/api/deck/sessions/{session}")).send().await.refusal().0, 404);
    let left = get(&world, "sessions").await;
    assert_eq!(left["sessions"].as_array().unwrap().len(), 1);
    assert_eq!(left["sessions"][0]["clientId"], other, "only this client is erased");
    assert_eq!(actions(&world).await[0]["action"], "erase_client");
}

#[tokio::test]
async fn erasing_during_an_answer_leaves_nothing_behind() {
    let world = World::new().await;
    let cookie = world.new_client().await;
    let client = world.client_of(&cookie).await;
    let mut open =
        world.post("/api/chat", &json!({ "message": "wait" })).with("cookie", &cookie).open().await;
    open.until("You said").await;
    let body = json!({ "clientId": client, "confirm": "erase" });
    let erasing = world.post("/api/deck/clients/erase", &body).send();
    let (erased, ()) = tokio::join!(erasing, async {
        tokio::time::sleep(std::time::Duration::from_millis(50)).await;
        world.resume.add_permits(1);
    });
    open.rest().await;
    assert_eq!(erased.json()["isComplete"], true);
    tokio::time::sleep(std::time::Duration::from_millis(600)).await;
    let left = get(&world, &format!("sessions?client={client}")).await;
    assert_eq!(left["sessions"], json!([]));
}
