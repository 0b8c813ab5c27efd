//! `tools/call`.

use rmcp::model::{CallToolResult, ClientRequest, ErrorCode, ServerResult};
use rmcp::service::{PeerRequestOptions, ServiceError};
use serde_json::{Value, json};

use super::client::{BOTH, Generation, request, text};
use super::world::World;

#[tokio::test]
async fn an_answer_is_structured_content_and_its_text() {
    let world = World::new();
    for generation in BOTH {
        let client = world.connect("ann", generation).await;
        let result = client.call("echo", "hello").await;
        assert_eq!(result.structured_content, Some(json!({ "said": "hello" })), "{generation:?}");
        assert_eq!(text(&result), (false, r#"{"said":"hello"}"#));
    }
}

#[tokio::test]
async fn refusals_and_failures_are_results_with_a_sentence() {
    let world = World::new();
    for generation in BOTH {
        let client = world.connect("ann", generation).await;
        assert_eq!(text(&client.call("echo", "fail").await), (true, "The slot is taken."));
        let result = client.call("echo", &"x".repeat(101)).await;
        assert_eq!(result.is_error, Some(true), "{result:?}");
        assert_eq!(result.meta.unwrap()["quarterdeck/error"]["type"], "VALIDATION");
        let for_voice = client.call("speak", "hello").await;
        assert_eq!(for_voice.is_error, Some(true), "{for_voice:?}");
    }
}

#[tokio::test]
async fn a_tool_that_does_not_exist_is_a_fault_of_the_protocol() {
    let world = World::new();
    for generation in BOTH {
        let client = world.connect("ann", generation).await;
        let error = client.call_with("nothing", "", json!({})).await.unwrap_err();
        let ServiceError::McpError(error) = error else { panic!("{error}") };
        assert_eq!(error.code, ErrorCode::INVALID_PARAMS);
        assert_eq!(error.message, "There is no tool `nothing`. `tools/list` names those that there are.");
    }
}

#[tokio::test]
async fn every_call_is_a_turn_of_its_own() {
    let world = World::new();
    let client = world.connect("ann", Generation::Handshake).await;
    for _ in 0..3 {
        assert!(!text(&client.call("book", "a room").await).0);
    }
    assert_eq!(world.effects.times("a room"), 3, "the same call again means it again");
}

#[tokio::test]
async fn calls_that_a_client_groups_share_a_turn() {
    let world = World::new();
    for (number, generation) in BOTH.into_iter().enumerate() {
        let client = world.connect("ann", generation).await;
        let what = format!("room {number}");
        let call = |turn: &'static str| client.call_with("book", &what, json!({ "quarterdeck/turn": turn }));
        call("one").await.unwrap();
        call("one").await.unwrap();
        assert_eq!(world.effects.times(&what), 1, "an equal call of one turn is the same call");
        call("two").await.unwrap();
        assert_eq!(world.effects.times(&what), 2);
    }
}

#[tokio::test]
async fn a_group_has_one_budget() {
    let world = World::new();
    let client = world.connect("ann", Generation::Handshake).await;
    let mut refused = 0;
    for number in 0..60 {
        let what = format!("number {number}");
        let result = client.call_with("echo", &what, json!({ "quarterdeck/turn": "all" })).await.unwrap();
        refused += u32::from(result.is_error == Some(true));
    }
    assert!(refused > 0, "a group is not without end");
    assert!(!text(&client.call("echo", "alone").await).0, "a call of its own is not held to it");
}

#[tokio::test]
async fn a_write_with_a_key_is_done_once_in_whatever_turn() {
    let world = World::new();
    for (number, generation) in BOTH.into_iter().enumerate() {
        let client = world.connect("ann", generation).await;
        let what = format!("hall {number}");
        let keyed = json!({ "quarterdeck/idempotencyKey": format!("k{number}") });
        let first = client.call_with("book", &what, keyed.clone()).await.unwrap();
        let second = client.call_with("book", &what, keyed.clone()).await.unwrap();
        assert_eq!(world.effects.times(&what), 1);
        assert_eq!(first.structured_content, second.structured_content);
        let other = client.call_with("book", "something else", keyed).await.unwrap();
        assert_eq!(other.is_error, Some(true), "a key names one call: {other:?}");
        assert_eq!(world.effects.times("something else"), 0);
    }
}

#[tokio::test]
async fn equal_numbers_of_requests_name_nothing() {
    let world = World::new();
    // Each connection numbers its requests from the beginning, so these two have the same number.
    for _ in 0..2 {
        let client = world.connect("ann", Generation::Stateless).await;
        client.call("book", "a desk").await;
    }
    assert_eq!(world.effects.times("a desk"), 2);
}

#[tokio::test]
async fn progress_comes_in_order_and_before_the_answer() {
    let world = World::new();
    for generation in BOTH {
        let mut client = world.connect("ann", generation).await;
        let params = request("steps", json!({ "what": "x" }), json!({}));
        let options = PeerRequestOptions::no_options();
        let call = ClientRequest::CallToolRequest(rmcp::model::CallToolRequest::new(params));
        let running = client.service.send_request_with_option(call, options).await.unwrap();
        for step in ["first", "second"] {
            assert_eq!(client.hears().await, step, "{generation:?}");
            world.effects.gate.open.add_permits(1);
        }
        let ServerResult::CallToolResult(result) = running.await_response().await.unwrap() else { panic!() };
        assert_eq!(said(&result), "x");
        assert_eq!(client.hears().await, "last");
    }
}

#[tokio::test]
async fn a_call_that_its_client_takes_back_is_stopped() {
    let world = World::new();
    for (number, generation) in BOTH.into_iter().enumerate() {
        let client = world.connect("ann", generation).await;
        let call = ClientRequest::CallToolRequest(rmcp::model::CallToolRequest::new(request(
            "wait",
            json!({}),
            json!({}),
        )));
        let running =
            client.service.send_request_with_option(call, PeerRequestOptions::no_options()).await.unwrap();
        world.effects.gate.wait_for_one().await;
        running.cancel(Some("enough".to_owned())).await.unwrap();
        while world.effects.times("cancelled") <= number as u32 {
            tokio::task::yield_now().await;
        }
        assert_eq!(said(&client.call("echo", "still here").await), "still here", "{generation:?}");
    }
}

#[tokio::test]
async fn a_write_whose_client_has_gone_is_not_done_again_when_it_is_repeated() {
    let world = World::new();
    let client = world.connect("ann", Generation::Stateless).await;
    let call = request("book_slowly", json!({ "what": "the boat" }), json!({}));
    let call = ClientRequest::CallToolRequest(rmcp::model::CallToolRequest::new(call));
    let running =
        client.service.send_request_with_option(call, PeerRequestOptions::no_options()).await.unwrap();
    world.effects.gate.wait_for_one().await;
    // It has begun, so it is finished; but its client does not hear of it.
    running.cancel(None).await.unwrap();
    let again = client.call_with("book_slowly", "the boat", json!({}));
    world.effects.gate.open.add_permits(2);
    let again = again.await.unwrap();
    assert_eq!(again.structured_content, Some(json!({ "booked": "the boat" })), "{again:?}");
    assert_eq!(world.effects.times("the boat"), 1);
}

fn said(result: &CallToolResult) -> &str {
    result.structured_content.as_ref().and_then(|data| data["said"].as_str()).unwrap_or_default()
}

#[tokio::test]
async fn a_key_that_is_no_text_is_refused_and_not_ignored() {
    let world = World::new();
    let client = world.connect("ann", Generation::Handshake).await;
    for key in ["quarterdeck/turn", "quarterdeck/idempotencyKey"] {
        let mut meta = json!({});
        meta[key] = Value::from(7);
        assert!(client.call_with("book", "x", meta).await.is_err(), "{key}");
    }
    assert_eq!(world.effects.times("x"), 0);
}
