//! Calls of tools: answered once, by the connection that asked, with data or an error.

use std::time::Duration;

use quarterdeck_contracts::LiveEvent;
use serde_json::json;

use super::harness::{
    ClientAction, VoiceHarness, audio, model_said, run_until_idle, tool_calls, turn_complete, user_said,
};

#[tokio::test(start_paused = true)]
async fn every_call_of_a_message_is_answered_in_order() {
    let harness = VoiceHarness::new();
    let client = harness.connect_client().await;
    let what = json!({ "what": "x" });
    let calls = [
        ("call-0000001", "look", what.clone()),
        ("", "book", what.clone()),
        ("call-0000003", "nonsense", what),
    ];
    harness.model.send_all([user_said("Do it."), tool_calls(&calls)]).await;
    assert_eq!(
        harness.model.take_inputs(),
        "1 result function-call-0000001 {\"results\":[\"x\"]}\n1 result - {\"did\":\"x\"}\n\
         1 result function-call-0000003 NOT_FOUND last\n"
    );
    assert_eq!(
        client.received(),
        "user: Do it.\ncall function-call-0000001 look {\"what\":\"x\"}\ncall book-1 book {\"what\":\"x\"}\n\
         call function-call-0000003 nonsense {\"what\":\"x\"}\nresult function-call-0000001 {\"results\":[\"x\"]}\n\
         result book-1 {\"did\":\"x\"}\nresult function-call-0000003 NOT_FOUND\n"
    );
}

#[tokio::test(start_paused = true)]
async fn audio_flows_while_a_tool_runs_and_the_client_gets_progress() {
    let harness = VoiceHarness::new();
    let client = harness.connect_client().await;
    harness.model.send(tool_calls(&[("call-0000001", "slow_look", json!({ "what": "x" }))])).await;
    client.received();
    harness.model.send(audio(960)).await;
    client.send(ClientAction::Audio(vec![0; 640])).await;
    assert_eq!(client.received(), "audio 960\n");
    assert_eq!(harness.model.take_inputs(), "1 audio 640\n");
    tokio::time::sleep(Duration::from_secs(2)).await;
    assert_eq!(client.received(), "progress function-call-0000001 slow_look is taking a moment.\n");
    tokio::time::sleep(Duration::from_secs(2)).await;
    assert_eq!(client.received(), "result function-call-0000001 {\"results\":[\"x\"]}\n");
}

#[tokio::test(start_paused = true)]
async fn a_configured_filler_is_spoken_once_while_a_tool_takes_long() {
    let harness = VoiceHarness::with_filler("One moment, please.");
    let _client = harness.connect_client().await;
    harness.model.send(tool_calls(&[("call-0000001", "slow_look", json!({ "what": "x" }))])).await;
    tokio::time::sleep(Duration::from_secs(2)).await;
    let inputs = harness.model.take_inputs();
    assert_eq!(inputs.matches("One moment, please.").count(), 1, "{inputs}");
    tokio::time::sleep(Duration::from_secs(2)).await;
    let inputs = harness.model.take_inputs();
    assert!(inputs.contains("result function-call-0000001") && !inputs.contains("One moment"), "{inputs}");
}

#[tokio::test(start_paused = true)]
async fn a_cancelled_tool_call_gets_no_result() {
    let harness = VoiceHarness::new();
    let client = harness.connect_client().await;
    let what = json!({ "what": "x" });
    let calls = [("call-0000001", "slow_look", what.clone()), ("call-0000002", "slow_book", what)];
    harness.model.send(tool_calls(&calls)).await;
    tokio::time::sleep(Duration::from_millis(100)).await;
    client.received();
    let ids = vec!["function-call-0000001".to_owned(), "function-call-0000002".into(), "unknown".into()];
    harness.model.send(LiveEvent::CallsCancelled(ids)).await;
    tokio::time::sleep(Duration::from_secs(10)).await;
    assert_eq!(harness.model.take_inputs(), "", "the provider gets no answer");
    assert_eq!(harness.runs("slow_book"), 0, "what had not begun does not begin");
    let received = client.received();
    assert!(received.contains("result function-call-0000001 CANCELLED"), "{received}");
}

#[tokio::test(start_paused = true)]
async fn barge_in_stops_a_search_and_still_answers_it() {
    let harness = VoiceHarness::new();
    let client = harness.connect_client().await;
    harness
        .model
        .send_all([
            user_said("Search."),
            tool_calls(&[("call-0000001", "slow_look", json!({ "what": "x" }))]),
        ])
        .await;
    harness.model.send(LiveEvent::Interrupted { end_follows: true }).await;
    run_until_idle().await;
    // The provider has not taken it back, so it waits for an answer; a model that waits for ever goes silent.
    assert_eq!(harness.model.take_inputs(), "1 result function-call-0000001 CANCELLED silent last\n");
    assert!(client.received().contains("interrupted"));
}

#[tokio::test(start_paused = true)]
async fn barge_in_lets_a_booking_finish_once() {
    let harness = VoiceHarness::new();
    let client = harness.connect_client().await;
    harness
        .model
        .send_all([user_said("Book."), tool_calls(&[("call-0000001", "slow_book", json!({ "what": "x" }))])])
        .await;
    tokio::time::sleep(Duration::from_millis(100)).await;
    harness.model.send_all([LiveEvent::Interrupted { end_follows: true }, turn_complete()]).await;
    tokio::time::sleep(Duration::from_secs(5)).await;
    assert_eq!(harness.runs("slow_book"), 1);
    let inputs = harness.model.take_inputs();
    assert_eq!(inputs.matches("result function-call-0000001").count(), 1, "{inputs}");
    let received = client.received();
    assert!(
        received.contains("result function-call-0000001 {\"did\":\"x\"}"),
        "the user is told: {received}"
    );
}

#[tokio::test(start_paused = true)]
async fn the_user_confirms_through_the_client_and_nowhere_else() {
    let harness = VoiceHarness::new();
    let client = harness.connect_client().await;
    let pay = tool_calls(&[("call-0000001", "pay", json!({ "what": "rent" }))]);
    harness.model.send_all([user_said("Pay the rent."), pay]).await;
    assert_eq!(harness.model.take_inputs(), "1 result function-call-0000001 CONFIRMATION_REQUIRED last\n");
    let received = client.received();
    assert!(received.contains("asked function-call-0000001"), "{received}");
    // The model says that the user said yes. That is worth nothing.
    harness
        .model
        .send_all([user_said("Yes."), tool_calls(&[("call-0000002", "pay", json!({ "what": "rent" }))])])
        .await;
    assert_eq!(harness.runs("pay"), 0);
    harness.model.send_all([model_said("Please confirm."), turn_complete()]).await;
    harness.model.take_inputs();
    client.received();
    client.send(ClientAction::Confirm(client.token(), true)).await;
    assert_eq!(harness.runs("pay"), 1);
    assert_eq!(client.received(), "result function-call-0000001 {\"did\":\"rent\"}\n");
    let inputs = harness.model.take_inputs();
    assert!(
        inputs.starts_with("1 note asks=true [Note: pay (function-call-0000001) was approved"),
        "{inputs}"
    );
    client.send(ClientAction::Confirm(client.token(), true)).await;
    assert_eq!(harness.runs("pay"), 1, "a token is used once");
}

#[tokio::test(start_paused = true)]
async fn a_wrong_token_is_an_error_and_does_nothing() {
    let harness = VoiceHarness::new();
    let client = harness.connect_client().await;
    client.send(ClientAction::Confirm("nonsense".into(), true)).await;
    assert_eq!(
        client.received(),
        "error CONFIRMATION_INVALID: This question has been answered already, or does not exist.\n"
    );
}

#[tokio::test(start_paused = true)]
async fn tools_that_suppress_audio_take_effect_on_the_next_frame() {
    let harness = VoiceHarness::new();
    let client = harness.connect_client().await;
    harness
        .model
        .send_all([user_said("Shh."), tool_calls(&[("call-0000001", "hide", json!({ "what": "x" }))])])
        .await;
    client.received();
    harness.model.send_all([audio(960), model_said("secret"), user_said("secret")]).await;
    assert_eq!(client.received(), "\n");
}

#[tokio::test(start_paused = true)]
async fn the_budget_of_a_turn_is_hard_and_the_next_turn_is_free() {
    let harness = VoiceHarness::new();
    let _page = harness.connect_client().await;
    let look = |id: &'static str, what: &str| tool_calls(&[(id, "look", json!({ "what": what }))]);
    harness
        .model
        .send_all([
            user_said("Search."),
            look("call-0000001", "a"),
            look("call-0000002", "b"),
            look("call-0000003", "c"),
        ])
        .await;
    assert!(harness.model.take_inputs().contains("function-call-0000003 BUDGET_EXCEEDED"));
    harness
        .model
        .send_all([model_said("Here."), turn_complete(), user_said("Again."), look("call-0000004", "c")])
        .await;
    assert_eq!(harness.model.take_inputs(), "1 result function-call-0000004 {\"results\":[\"c\"]} last\n");
}
