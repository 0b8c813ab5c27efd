//! What operators do, and that it is on the record.

use serde_json::{Value, json};

use super::{get, somebody};
use crate::world::World;

/// What the trail says that operators did.
async fn done(world: &World) -> Vec<Value> {
    get(world, "audit?event=operator").await["lines"].as_array().unwrap().clone()
}

#[tokio::test]
async fn a_block_is_listed_and_lifted() {
    let world = World::new().await;
    let cookie = world.newcomer().await;
    let client = world.client_of(&cookie).await;
    world.block(&client).await;
    let listed = get(&world, "blocks").await;
    assert_eq!((&listed["blocks"][0]["clientId"], &listed["total"]), (&json!(client), &json!(1)));
    let lift = || world.ask("DELETE", &format!("/api/deck/blocks/{client}")).send();
    assert_eq!(lift().await.status, 204);
    assert_eq!(lift().await.refusal().0, 404);
    let free = world.post("/api/chat", &json!({ "message": "hello" })).with("cookie", &cookie).send().await;
    assert_eq!(free.status, 200);
    let done = done(&world).await;
    assert_eq!((&done[0]["action"], &done[0]["clientId"]), (&json!("lift_block"), &json!(client)));
    assert_eq!(done[0]["by"], "deck 127.0.0.1");
}

#[tokio::test]
async fn a_session_is_ended_whether_somebody_is_in_it_or_not() {
    let world = World::new().await;
    let (cookie, client, session) = somebody(&world).await;
    let end = |id: String| world.ask("DELETE", &format!("/api/deck/sessions/{id}")).send();
    assert_eq!(end(session.clone()).await.status, 204);
    assert_eq!(end(session.clone()).await.refusal().0, 404, "it has ended");
    assert_eq!(end("nobody".into()).await.refusal().0, 404);
    let ended = get(&world, &format!("sessions?client={client}")).await;
    assert_eq!(ended["sessions"][0]["isActive"], false);
    let body = json!({ "message": "hello", "sessionId": session });
    let refused = world.post("/api/chat", &body).with("cookie", &cookie).send().await;
    assert_eq!(refused.refusal().1, "SESSION_INACTIVE");
    assert_eq!(done(&world).await[0]["action"], "end_session");
}

#[tokio::test]
async fn a_client_is_erased_only_with_the_word_for_it() {
    let world = World::new().await;
    let (_, client, session) = somebody(&world).await;
    let (_, other, _) = somebody(&world).await;
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
    assert_eq!(left["sessions"][0]["clientId"], other, "nobody else is");
    assert_eq!(done(&world).await[0]["action"], "erase_client");
}

#[tokio::test]
async fn whoever_is_erased_while_an_answer_is_written_leaves_nothing_behind() {
    let world = World::new().await;
    let cookie = world.newcomer().await;
    let client = world.client_of(&cookie).await;
    let mut open =
        world.post("/api/chat", &json!({ "message": "wait" })).with("cookie", &cookie).open().await;
    open.until("You said").await;
    let body = json!({ "clientId": client, "confirm": "erase" });
    let erasing = world.post("/api/deck/clients/erase", &body).send();
    let (erased, ()) = tokio::join!(erasing, async {
        tokio::time::sleep(std::time::Duration::from_millis(50)).await;
        world.go_on.add_permits(1);
    });
    open.rest().await;
    assert_eq!(erased.json()["isComplete"], true);
    tokio::time::sleep(std::time::Duration::from_millis(600)).await;
    let left = get(&world, &format!("sessions?client={client}")).await;
    assert_eq!(left["sessions"], json!([]));
}
