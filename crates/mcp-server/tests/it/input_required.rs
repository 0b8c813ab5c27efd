//! Confirmation through a client of 2026-07-28: the call comes again with the answer.

use std::time::Duration;

use quarterdeck_mcp_server::McpCaller;
use quarterdeck_runtime::Client;
use serde_json::{Value, json};

use crate::pipe::text;
use crate::post::Poster;
use crate::world::World;

fn rent() -> Value {
    json!({ "what": "rent", "note": "May" })
}

fn poster(world: &World, client: &str) -> Poster {
    Poster::new(world, client, json!({ "elicitation": {} }))
}

fn approved(state: &Value) -> Value {
    json!({ "requestState": state, "inputResponses": { "confirm": { "action": "accept", "content": { "confirm": true } } } })
}

/// Calls for the first time and gives the state of the question.
async fn asked(poster: &Poster, args: Value) -> Value {
    let answer = poster.call("pay", args, json!({}), json!({})).await;
    let result = &answer["result"];
    assert_eq!(result["resultType"], "input_required", "{answer}");
    let question = &result["inputRequests"]["confirm"];
    assert_eq!(question["method"], "elicitation/create");
    assert!(question["params"]["message"].as_str().unwrap().contains("Pay the rent."), "{question}");
    assert!(!answer.to_string().contains("qdc_"), "no token leaves the server");
    result["requestState"].clone()
}

/// What is said about a state that was not sealed for the call: an error of the protocol.
fn fault(answer: &Value) -> String {
    assert_eq!(answer["error"]["code"], -32602, "{answer}");
    answer["error"]["message"].as_str().unwrap().to_owned()
}

fn refusal(answer: &Value) -> String {
    let (told, is_error) = text(answer);
    assert!(is_error, "{answer}");
    told
}

#[tokio::test]
async fn an_approved_call_runs_when_it_comes_again_and_a_third_time_is_refused() {
    let world = World::new();
    let ann = poster(&world, "ann");
    let state = asked(&ann, rent()).await;
    assert_eq!(world.effects.in_all(), 0);
    // The order of the arguments does not matter.
    let same = json!({ "note": "May", "what": "rent" });
    let answer = ann.call("pay", same, approved(&state), json!({})).await;
    assert_eq!(answer["result"]["structuredContent"], json!({ "did": "rent" }));
    assert_eq!(answer["result"]["resultType"], "complete");
    let again = ann.call("pay", rent(), approved(&state), json!({})).await;
    assert!(refusal(&again).contains("was used before"), "{again}");
    assert_eq!(world.effects.times("rent"), 1);
}

#[tokio::test]
async fn a_denied_call_does_not_run_and_its_state_is_used_up() {
    let world = World::new();
    let ann = poster(&world, "ann");
    let state = asked(&ann, rent()).await;
    let denied = json!({ "requestState": state, "inputResponses": { "confirm": { "action": "decline" } } });
    let answer = ann.call("pay", rent(), denied, json!({})).await;
    assert_eq!(refusal(&answer), "The user did not approve pay.");
    refusal(&ann.call("pay", rent(), approved(&state), json!({})).await);
    assert_eq!(world.effects.in_all(), 0);
}

#[tokio::test]
async fn a_state_is_for_the_very_call_client_and_session_that_it_was_given_to() {
    let world = World::new();
    let ann = poster(&world, "ann");
    let state = asked(&ann, rent()).await;
    for (tool, args) in [
        ("pay", json!({ "what": "fine", "note": "May" })),
        ("pay", json!({ "what": "rent" })),
        ("pay", json!({ "what": "rent", "note": "May", "more": 1 })),
        ("pay", json!({})),
        ("slow_pay", rent()),
        ("pay_later", rent()),
        ("look", rent()),
    ] {
        let told = fault(&ann.call(tool, args.clone(), approved(&state), json!({})).await);
        assert!(told.contains("not for this call"), "{tool} {args}: {told}");
    }
    let bob = poster(&world, "bob");
    asked(&bob, rent()).await;
    fault(&bob.call("pay", rent(), approved(&state), json!({})).await);
    let elsewhere = json!({ "quarterdeck/session": "other" });
    fault(&ann.call("pay", rent(), approved(&state), elsewhere).await);
    // A state that was given to another for the same call is not ours either.
    let bobs = asked(&bob, rent()).await;
    fault(&ann.call("pay", rent(), approved(&bobs), json!({})).await);
    let text = state.as_str().unwrap();
    for wrong in [json!(""), json!("rs1.a.b"), json!(format!("{text}x")), json!(text.to_uppercase())] {
        fault(&ann.call("pay", rent(), approved(&wrong), json!({})).await);
    }
    assert_eq!(world.effects.in_all(), 0, "nothing has run so far");
    // The question still stands for those who were asked.
    assert!(!crate::pipe::text(&ann.call("pay", rent(), approved(&state), json!({})).await).1);
    assert_eq!(world.effects.times("rent"), 1);
}

#[tokio::test]
async fn an_approval_that_comes_too_late_is_refused() {
    let world = World::new();
    let ann = poster(&world, "ann");
    let state = asked(&ann, rent()).await;
    world.clock.advance(Duration::from_secs(300));
    let told = refusal(&ann.call("pay", rent(), approved(&state), json!({})).await);
    assert!(told.contains("too late"), "{told}");
    assert_eq!(world.effects.in_all(), 0);
}

#[tokio::test]
async fn a_call_that_comes_again_without_an_answer_is_asked_about_again() {
    let world = World::new();
    let ann = poster(&world, "ann");
    let state = asked(&ann, rent()).await;
    let accepted = json!({ "action": "accept", "content": { "confirm": true } });
    for responses in [
        json!({ "requestState": state }),
        json!({ "requestState": state, "inputResponses": { "other": accepted } }),
    ] {
        let answer = ann.call("pay", rent(), responses, json!({})).await;
        assert_eq!(answer["result"]["resultType"], "input_required", "{answer}");
    }
    // An answer without the state of a question is to no question.
    let stateless = json!({ "inputResponses": { "confirm": accepted } });
    let answer = ann.call("pay", rent(), stateless, json!({})).await;
    assert_eq!(answer["result"]["resultType"], "input_required", "{answer}");
    assert_eq!(world.effects.in_all(), 0);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_hundred_retries_at_once_run_the_call_once() {
    let world = World::new();
    let ann = poster(&world, "ann");
    let state = asked(&ann, rent()).await;
    let retries = (0..100).map(|_| {
        let (ann, state) = (ann.clone(), state.clone());
        tokio::spawn(async move { text(&ann.call("pay", rent(), approved(&state), json!({})).await).1 })
    });
    let mut successes = 0;
    for retry in retries.collect::<Vec<_>>() {
        successes += u32::from(!retry.await.unwrap());
    }
    assert_eq!((successes, world.effects.times("rent")), (1, 1));
}

#[tokio::test]
async fn an_idempotency_key_stands_for_the_outcome_of_the_approved_call() {
    let world = World::new();
    let ann = poster(&world, "ann");
    let key = json!({ "quarterdeck/idempotencyKey": "rent-of-may-2026" });
    let first = ann.call("pay", rent(), json!({}), key.clone()).await;
    let state = first["result"]["requestState"].clone();
    // Sent again, it is asked about again and not forgotten.
    let again = ann.call("pay", rent(), json!({}), key.clone()).await;
    assert_eq!(again["result"]["resultType"], "input_required", "{again}");
    assert!(!text(&ann.call("pay", rent(), approved(&state), key.clone()).await).1);
    let repeated = ann.call("pay", rent(), json!({}), key).await;
    assert_eq!(repeated["result"]["structuredContent"], json!({ "did": "rent" }), "{repeated}");
    assert_eq!(world.effects.times("rent"), 1);
}

#[tokio::test]
async fn a_client_that_is_another_one_each_time_is_not_asked_to_come_back() {
    let world = World::new();
    let stranger = poster(&world, "x").with_caller(McpCaller::Unknown(Client::anonymous("c_1"))).with_pages();
    let told = refusal(&stranger.call("pay", rent(), json!({}), json!({})).await);
    assert!(told.contains("cannot ask") && !told.contains("http"), "{told}");
    assert_eq!(world.effects.in_all(), 0);
}
