//! Servers that ask for what only the user or the model could give.

use quarterdeck_runtime::{Call, ClientEvent};
use serde_json::json;

use crate::until::until;
use crate::world::{LOOK, World, assert_honest, submit};

#[tokio::test(flavor = "multi_thread")]
async fn elicitation_sampling_and_roots_are_refused_and_no_client_sees_them() {
    let world = World::stdio("asks-user");
    world.connected().await;
    let (_session, connection) = world.open("ann").await;
    let response = submit(&connection, Call::new(LOOK, json!({ "what": "it" }))).await;
    assert_honest(&response, "lookup", "it");
    let answers = until("all three were answered", || {
        let answers = world.notes.of("answered");
        (answers.len() == 3).then_some(answers)
    })
    .await;
    for answer in answers {
        let is_refused = answer["error"].is_object() || answer["result"]["action"] == "decline";
        assert!(is_refused, "{answer}");
    }
    while let Some(event) = connection.try_next_event() {
        assert!(!matches!(event, ClientEvent::Confirmation { .. }), "no question reaches the user");
    }
    assert!(world.view().refused_requests >= 2, "{}", world.view().refused_requests);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_client_announces_neither_sampling_nor_elicitation_nor_roots() {
    let world = World::stdio("honest");
    world.connected().await;
    let capabilities = &world.notes.of("initialize")[0]["capabilities"];
    for name in ["sampling", "elicitation", "roots"] {
        assert!(capabilities[name].is_null(), "{capabilities}");
    }
}
