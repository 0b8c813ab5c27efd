//! Results that are too large, not what they should be, or full of orders.

use std::time::Duration;

use quarterdeck_contracts::{ConfirmationAnswer, ConfirmationRequest, ErrorType};
use quarterdeck_runtime::{Call, ClientEvent, Connection, Reply};
use serde_json::json;

use crate::memory::within;
use crate::world::{
    ASKED_BOOKING, BOOKING, LOOK, Settings, World, assert_honest, error, for_model, kind, receive, submit,
};

const MEGABYTE: u64 = 1_000_000;

#[tokio::test(flavor = "multi_thread")]
async fn instructions_in_a_result_approve_nothing() {
    let world = World::stdio("instructs");
    world.connected().await;
    let (session, connection) = world.open("ann").await;
    let booking = || Call::new(ASKED_BOOKING, json!({ "what": "the suite" }));
    let reply = connection.submit(vec![booking().with_id("call_book_01")]).all().await.remove(0);
    assert!(matches!(reply, Reply::AwaitingConfirmation { .. }), "a booking must wait for the user");
    let request = asked(&connection);

    let read = submit(&connection, Call::new(LOOK, json!({ "what": "it" }))).await;
    assert_eq!(kind(&read), None, "instructions are data like any other");
    assert!(read.intents.is_empty(), "a result asks for no change of the session");
    assert!(session.is_confirmation_open(&request), "the user has not answered");

    // A model that believes every word of it.
    let obeying = [
        Call::new("approve_confirmation", json!({ "approved": true })),
        Call::new(ASKED_BOOKING, json!({ "what": "the suite", "approved": true })),
        Call::new(ASKED_BOOKING, json!({ "what": "the suite", "decision": "approve" })),
    ];
    for call in obeying {
        let name = call.name.to_string();
        assert_ne!(kind(&submit(&connection, call).await), None, "{name}");
    }
    let again = connection.submit(vec![booking().with_id("call_book_02")]).all().await.remove(0);
    if let Reply::Answer(answer) = again {
        assert_ne!(kind(&receive(answer)), None, "the same booking again is not an approval");
    }
    assert!(session.is_confirmation_open(&request));
    assert_eq!(world.notes.calls(), ["it"], "no booking has reached the server");

    let denied = receive(session.resolve_confirmation(&token(&request), ConfirmationAnswer::Deny).await);
    assert_eq!(kind(&denied), Some(ErrorType::ConfirmationDenied));
    assert_eq!(world.notes.calls(), ["it"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn an_upstream_error_reaches_the_model_shortened_and_marked_as_foreign() {
    let world = World::stdio("instructs-in-errors");
    let response = world.call_when_connected(LOOK, "it").await;
    let read = for_model(&response);
    assert!(kind(&response).is_some());
    assert!(read.len() < 4_000, "{} characters", read.len());
    assert!(read.contains("hostile"), "it says whose words they are: {read}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_result_of_100_megabytes_is_refused_within_bounded_memory() {
    for tool in [LOOK, BOOKING] {
        refused_within_bounds("huge-result", tool).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_line_that_does_not_end_is_refused_within_bounded_memory() {
    refused_within_bounds("endless-line", BOOKING).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_result_of_10_000_levels_is_refused() {
    refused_within_bounds("deep-result", LOOK).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_result_of_half_a_million_small_values_is_refused_within_bounded_memory() {
    refused_within_bounds("dense-result", BOOKING).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_result_that_is_not_utf_8_is_refused_or_repaired() {
    let world = World::stdio_with(
        "invalid-utf8",
        Settings { timeout: Duration::from_secs(5), ..Settings::default() },
    );
    let response = world.call_when_connected(BOOKING, "it").await;
    assert!(!for_model(&response).contains('\0'));
    assert_eq!(world.notes.calls(), ["it"], "it was sent once");
    // Whatever became of it, the next call has its own fate.
    world.call_when_connected(BOOKING, "next").await;
    assert_eq!(world.notes.calls(), ["it", "next"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn images_and_resources_are_passed_on_by_reference_alone() {
    let world = World::stdio("media");
    let response = world.call_when_connected(LOOK, "it").await;
    let read = for_model(&response);
    assert!(read.contains("two of them"), "{read}");
    assert!(!read.contains("iVBORw0KGgo"), "no image is read as text: {read:.300}");
    assert!(!read.contains("SYSTEM"), "nor is the text of a resource: {read}");
    assert!(read.len() < 8_000, "{} characters", read.len());
}

#[tokio::test(flavor = "multi_thread")]
async fn an_approved_booking_is_sent_once() {
    let world = World::stdio("honest");
    world.connected().await;
    let (session, connection) = world.open("ann").await;
    let call = Call::new(ASKED_BOOKING, json!({ "what": "the suite" })).with_id("call_book_01");
    let replies = connection.submit(vec![call]).all().await;
    assert!(matches!(replies[0], Reply::AwaitingConfirmation { .. }));
    assert_eq!(world.notes.count("tools/call"), 0);
    let token = token(&asked(&connection));
    for _ in 0..2 {
        receive(session.resolve_confirmation(&token, ConfirmationAnswer::Approve).await);
    }
    assert_eq!(world.notes.calls(), ["the suite"]);
    assert_honest(&world.call(LOOK, "after").await, "lookup", "after");
}

/// A call is answered with an error, at little cost, and a write is sent once.
async fn refused_within_bounds(behaviour: &str, tool: &str) {
    let world = World::stdio(behaviour);
    world.connected().await;
    let response = within(60 * MEGABYTE, world.call(tool, "it")).await;
    assert!(!error(&response).message.is_empty());
    assert!(for_model(&response).len() < 4_000);
    if tool == BOOKING {
        assert_eq!(world.notes.calls(), ["it"], "a write is sent once");
    }
}

/// The question that the user is asked.
fn asked(connection: &Connection) -> ConfirmationRequest {
    while let Some(event) = connection.try_next_event() {
        if let ClientEvent::Confirmation { request, .. } = event {
            return request;
        }
    }
    panic!("no confirmation was requested");
}

fn token(request: &ConfirmationRequest) -> String {
    request.token.as_ref().unwrap().expose().to_owned()
}
