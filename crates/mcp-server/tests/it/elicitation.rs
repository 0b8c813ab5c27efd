//! Confirmation through a client that has shaken hands.

use serde_json::{Value, json};

use crate::pipe::{Pipe, text};
use crate::world::World;

fn can_elicit() -> Value {
    json!({ "elicitation": {} })
}

fn rent() -> Value {
    json!({ "what": "rent" })
}

#[tokio::test]
async fn the_user_is_shown_what_will_be_done_and_an_approved_call_runs_once() {
    let world = World::new();
    let mut pipe = Pipe::open(&world, "ann", can_elicit()).await;
    let call = pipe.call("pay", rent()).await;
    let question = pipe.message("elicitation/create").await;
    let params = &question["params"];
    assert_eq!(params["mode"], "form");
    let message = params["message"].as_str().unwrap();
    assert!(message.contains("Pay the rent.") && message.contains("\"what\": \"rent\""), "{message}");
    assert!(!question.to_string().contains("qdc_"), "no token leaves the server");
    assert_eq!(world.effects.in_all(), 0);
    pipe.reply(&question, json!({ "action": "accept", "content": { "confirm": true } })).await;
    let answer = pipe.answer(call).await;
    assert_eq!(answer["result"]["structuredContent"], json!({ "did": "rent" }));
    assert_eq!(world.effects.times("rent"), 1);
    // An equal call is another one, and is asked about again.
    let call = pipe.call("pay", rent()).await;
    let question = pipe.message("elicitation/create").await;
    pipe.reply(&question, json!({ "action": "decline" })).await;
    assert_eq!(text(&pipe.answer(call).await), ("The user did not approve pay.".to_owned(), true));
    assert_eq!(world.effects.times("rent"), 1);
}

#[tokio::test]
async fn whatever_else_the_client_answers_denies() {
    let world = World::new();
    let mut pipe = Pipe::open(&world, "ann", json!({ "elicitation": { "form": {} } })).await;
    for reply in [
        json!({ "action": "accept", "content": { "confirm": false } }),
        json!({ "action": "accept", "content": { "confirm": "true" } }),
        json!({ "action": "accept", "content": {} }),
        json!({ "action": "accept" }),
        json!({ "action": "decline", "content": { "confirm": true } }),
        json!({ "action": "cancel", "content": { "confirm": true } }),
        json!({ "approved": true }),
        json!({}),
    ] {
        let call = pipe.call("pay", rent()).await;
        let question = pipe.message("elicitation/create").await;
        pipe.reply(&question, reply.clone()).await;
        let (told, is_error) = text(&pipe.answer(call).await);
        assert!(is_error && told.contains("did not approve"), "{reply}: {told}");
    }
    // Nor does an error of the client.
    let call = pipe.call("pay", rent()).await;
    let question = pipe.message("elicitation/create").await;
    pipe.send(json!({ "jsonrpc": "2.0", "id": question["id"], "error": { "code": -1, "message": "no" } }))
        .await;
    assert!(text(&pipe.answer(call).await).1);
    assert_eq!(world.effects.in_all(), 0);
}

#[tokio::test]
async fn a_question_is_taken_back_with_its_call() {
    let world = World::new();
    let mut pipe = Pipe::open(&world, "ann", can_elicit()).await;
    let call = pipe.call("pay", rent()).await;
    let question = pipe.message("elicitation/create").await;
    pipe.send(
        json!({ "jsonrpc": "2.0", "method": "notifications/cancelled", "params": { "requestId": call } }),
    )
    .await;
    let taken_back = pipe.message("notifications/cancelled").await;
    assert_eq!(taken_back["params"]["requestId"], question["id"]);
    // An answer that comes all the same is to a question that does not stand any more.
    pipe.reply(&question, json!({ "action": "accept", "content": { "confirm": true } })).await;
    let other = pipe.call("look", rent()).await;
    pipe.answer(other).await;
    assert_eq!(world.effects.in_all(), 0);
}

#[tokio::test(start_paused = true)]
async fn a_question_that_is_not_answered_expires_and_the_client_is_told() {
    let world = World::new();
    let mut pipe = Pipe::open(&world, "ann", can_elicit()).await;
    let call = pipe.call("pay", rent()).await;
    let question = pipe.message("elicitation/create").await;
    let (told, is_error) = text(&pipe.answer(call).await);
    assert!(is_error && told.contains("expired"), "{told}");
    assert_eq!(pipe.message("notifications/cancelled").await["params"]["requestId"], question["id"]);
    pipe.reply(&question, json!({ "action": "accept", "content": { "confirm": true } })).await;
    let other = pipe.call("look", rent()).await;
    pipe.answer(other).await;
    assert_eq!(world.effects.in_all(), 0);
}

#[tokio::test]
async fn cancelling_an_approved_call_reaches_its_handler() {
    let world = World::new();
    let mut pipe = Pipe::open(&world, "ann", can_elicit()).await;
    let call = pipe.call("slow_pay", rent()).await;
    let question = pipe.message("elicitation/create").await;
    pipe.reply(&question, json!({ "action": "accept", "content": { "confirm": true } })).await;
    world.effects.begun.notified().await;
    pipe.send(
        json!({ "jsonrpc": "2.0", "method": "notifications/cancelled", "params": { "requestId": call } }),
    )
    .await;
    while world.effects.times("rent stopped") == 0 {
        tokio::task::yield_now().await;
    }
    assert_eq!(world.effects.times("rent"), 0);
}

#[tokio::test]
async fn two_calls_are_asked_about_at_the_same_time_and_each_gets_its_own_decision() {
    let world = World::new();
    let mut pipe = Pipe::open(&world, "ann", can_elicit()).await;
    let rent = pipe.call("pay", json!({ "what": "rent" })).await;
    let fine = pipe.call("pay", json!({ "what": "fine" })).await;
    for _ in 0..2 {
        let question = pipe.message("elicitation/create").await;
        let is_rent = question["params"]["message"].as_str().unwrap().contains("Pay the rent.");
        pipe.reply(&question, json!({ "action": "accept", "content": { "confirm": is_rent } })).await;
    }
    assert!(!text(&pipe.answer(rent).await).1);
    assert!(text(&pipe.answer(fine).await).1);
    assert_eq!((world.effects.times("rent"), world.effects.times("fine")), (1, 0));
}

#[tokio::test]
async fn a_client_that_shows_only_links_or_nothing_is_not_sent_a_form() {
    let world = World::new();
    for capabilities in [json!({}), json!({ "elicitation": { "url": {} } })] {
        let mut pipe = Pipe::open(&world, "ann", capabilities).await;
        let call = pipe.call("pay", rent()).await;
        let (told, is_error) = text(&pipe.answer(call).await);
        assert!(is_error && told.contains("this client cannot ask"), "{told}");
    }
    assert_eq!(world.effects.in_all(), 0);
}
