//! How calls end.

use std::time::Duration;

use quarterdeck_agents::voice::CallRequest;
use quarterdeck_contracts::LiveEvent;
use serde_json::json;

use super::harness::{ClientAction, VoiceHarness, audio, model_said, tool_calls, turn_complete, user_said};

#[tokio::test(start_paused = true)]
async fn a_call_ends_after_the_turn_and_once_it_was_heard() {
    let harness = VoiceHarness::new();
    let client = harness.connect_client().await;
    harness
        .model
        .send_all([
            user_said("That is all."),
            tool_calls(&[("call-0000001", "leave", json!({ "what": "x" }))]),
        ])
        .await;
    harness.model.send_all([model_said("Bye."), audio(48_000)]).await;
    client.received();
    harness.model.send(turn_complete()).await;
    assert_eq!(client.received(), "turn complete\n", "a second of audio is still to be heard");
    harness.model.take_inputs();
    client.send(ClientAction::Drained).await;
    assert_eq!(client.received(), "end done closing=Bye. text=We talked.\nclosed: Ended\n");
    assert_eq!(harness.model.take_inputs(), "1 closed\n");
    assert_eq!(harness.agent.active_calls(), 0);
}

#[tokio::test(start_paused = true)]
async fn a_client_that_never_reports_drained_does_not_keep_the_call() {
    let harness = VoiceHarness::new();
    let client = harness.connect_client().await;
    harness
        .model
        .send_all([
            user_said("Bye."),
            tool_calls(&[("call-0000001", "leave", json!({ "what": "x" }))]),
            audio(96_000),
            turn_complete(),
        ])
        .await;
    tokio::time::sleep(Duration::from_secs(5)).await;
    assert_eq!(harness.agent.active_calls(), 1, "two seconds of audio, and the farewell timeout of five");
    tokio::time::sleep(Duration::from_secs(3)).await;
    assert_eq!(harness.agent.active_calls(), 0);
    assert!(client.received().ends_with("end done closing=Bye. text=We talked.\nclosed: Ended\n"));
}

#[tokio::test(start_paused = true)]
async fn barge_in_voids_an_end() {
    let harness = VoiceHarness::new();
    let client = harness.connect_client().await;
    harness
        .model
        .send_all([
            user_said("Bye."),
            tool_calls(&[("call-0000001", "leave", json!({ "what": "x" }))]),
            audio(960),
        ])
        .await;
    harness
        .model
        .send_all([
            LiveEvent::Interrupted { end_follows: true },
            turn_complete(),
            user_said("One more thing."),
            model_said("Yes?"),
            turn_complete(),
        ])
        .await;
    client.send(ClientAction::Drained).await;
    tokio::time::sleep(Duration::from_secs(60)).await;
    assert_eq!(harness.agent.active_calls(), 1);
}

#[tokio::test(start_paused = true)]
async fn a_farewell_is_heard_before_the_audio_is_cut() {
    let harness = VoiceHarness::new();
    let client = harness.connect_client().await;
    harness
        .model
        .send_all([
            user_said("Go away."),
            tool_calls(&[("call-0000001", "bid_farewell", json!({ "what": "x" }))]),
        ])
        .await;
    client.received();
    harness.model.send_all([model_said("Farewell."), audio(960), turn_complete()]).await;
    assert_eq!(client.received(), "model: Farewell.\naudio 960\nturn complete\n");
    client.send(ClientAction::Drained).await;
    assert_eq!(client.received(), "end user_requested closing=- text=-\nclosed: Ended\n");
}

#[tokio::test(start_paused = true)]
async fn a_blocked_user_hears_the_farewell_and_audio_is_cut_only_then() {
    let harness = VoiceHarness::new();
    let client = harness.connect_client().await;
    harness
        .model
        .send_all([
            user_said("You fool!"),
            tool_calls(&[("call-0000001", "shut_out", json!({ "what": "x" }))]),
            turn_complete(),
        ])
        .await;
    client.received();
    harness.model.take_inputs();
    tokio::time::sleep(Duration::from_secs(4)).await;
    let asked = harness.model.take_inputs();
    assert!(asked.contains("note asks=true") && asked.contains("Let us take a break."), "{asked}");
    harness.model.send_all([model_said("Let us take a break."), audio(960), turn_complete()]).await;
    assert_eq!(client.received(), "model: Let us take a break.\naudio 960\nturn complete\n");
    client.send(ClientAction::Drained).await;
    assert_eq!(client.received(), "end blocked closing=Let us take a break. text=-\nclosed: Ended\n");
}

#[tokio::test(start_paused = true)]
async fn a_model_that_says_nothing_more_does_not_keep_the_call() {
    let harness = VoiceHarness::new();
    let _page = harness.connect_client().await;
    harness
        .model
        .send_all([user_said("Bye."), tool_calls(&[("call-0000001", "leave", json!({ "what": "x" }))])])
        .await;
    tokio::time::sleep(Duration::from_secs(31)).await;
    assert_eq!(harness.agent.active_calls(), 0);
}

#[tokio::test(start_paused = true)]
async fn a_call_ends_after_two_hours() {
    let harness = VoiceHarness::new();
    let client = harness.connect_client().await;
    for _ in 0..4 * 119 {
        client.send(ClientAction::Audio(vec![0; 640])).await;
        tokio::time::sleep(Duration::from_secs(15)).await;
    }
    harness.model.send_all([user_said("Are you still there?"), model_said("I am."), turn_complete()]).await;
    client.received();
    assert_eq!(harness.agent.active_calls(), 1, "a minute before");
    client.send(ClientAction::Audio(vec![0; 640])).await;
    tokio::time::sleep(Duration::from_secs(30)).await;
    client.send(ClientAction::Audio(vec![0; 640])).await;
    tokio::time::sleep(Duration::from_secs(40)).await;
    assert_eq!(harness.agent.active_calls(), 0);
    let end = "error UNAVAILABLE: This call has become too long. Please call again.\n\
               end too_long closing=- text=-\nclosed: Ended\n";
    assert_eq!(client.received().trim_start_matches("ping\n"), end);
    assert_eq!(harness.model.take_inputs().lines().last(), Some("1 closed"));
}

#[tokio::test(start_paused = true)]
async fn a_user_hangs_up() {
    let harness = VoiceHarness::new();
    let client = harness.connect_client().await;
    client.send(ClientAction::Stop).await;
    assert_eq!(client.received(), "end user_hung_up closing=- text=-\nclosed: Ended\n");
    assert_eq!(harness.agent.active_calls(), 0);
    let again = harness.connect_client().await;
    drop(again);
}

#[tokio::test(start_paused = true)]
async fn a_stopping_server_says_so_and_keeps_the_session() {
    let harness = VoiceHarness::new();
    let client = harness.connect_client().await;
    harness.model.send_all([user_said("Hello."), model_said("Good day."), turn_complete()]).await;
    client.received();
    harness.agent.drain(Duration::from_secs(8)).await;
    assert_eq!(client.received(), "going away in 8000\nclosed: Stopping\n");
    assert_eq!(harness.agent.active_calls(), 0);
    let request = harness.session().await;
    let next = harness.restarted();
    let client = next.call(request).await;
    assert_eq!(client.received(), "ready fake/1 resumed=true\n");
    let history = &next.model.setups()[0].history;
    assert_eq!(history.len(), 2, "what was said: {history:?}");
}

#[tokio::test(start_paused = true)]
async fn a_blocked_client_is_told_and_does_not_reach_the_model() {
    let harness = VoiceHarness::new();
    harness.block().await;
    let client = harness.call(CallRequest::default()).await;
    assert_eq!(client.received(), "blocked: Enough for today.\nclosed: Refused\n");
    assert!(harness.model.setups().is_empty());
}
