//! Speech and writing, turns, barging in.

use std::time::Duration;

use quarterdeck_agents::voice::CallRequest;
use quarterdeck_contracts::{LiveEvent, Speaker, Usage};
use serde_json::json;

use super::harness::{
    ClientAction, VoiceHarness, audio, model_said, run_until_idle, tool_calls, turn_complete, user_said,
};

#[tokio::test(start_paused = true)]
async fn audio_and_transcripts_go_both_ways() {
    let harness = VoiceHarness::new();
    let client = harness.connect_client().await;
    client.send(ClientAction::Audio(vec![0; 640])).await;
    assert_eq!(harness.model.take_inputs(), "1 audio 640\n");
    harness.model.send_all([user_said("Hello."), audio(960), model_said("Good day."), turn_complete()]).await;
    assert_eq!(client.received(), "user: Hello.\naudio 960\nmodel: Good day.\nturn complete\n");
}

#[tokio::test(start_paused = true)]
async fn a_text_message_is_shown_and_answered() {
    let harness = VoiceHarness::new();
    let client = harness.connect_client().await;
    client.send_text("Who built the Fram?").await;
    assert_eq!(harness.model.take_inputs(), "1 text Who built the Fram?\n");
    assert_eq!(client.received(), "user: Who built the Fram?\n");
}

#[tokio::test(start_paused = true)]
async fn a_pending_request_is_answered_without_being_repeated() {
    let harness = VoiceHarness::new();
    let request =
        CallRequest { pending_request: Some("When did she sail?".into()), ..CallRequest::default() };
    let client = harness.call(request).await;
    assert_eq!(client.received(), "ready fake/1 resumed=false\n");
    let setup = &harness.model.setups()[0];
    assert!(setup.asks);
    let received: Vec<_> = setup.history.iter().map(|turn| (turn.by, turn.text.as_str())).collect();
    assert_eq!(received, [(Speaker::User, "When did she sail?")]);
    assert!(setup.system.contains("The conversation is spoken."), "{}", setup.system);
    assert_eq!(setup.tools.len(), 13, "tools of both modes are declared");
}

#[tokio::test(start_paused = true)]
async fn barge_in_silences_at_once_and_begins_a_turn() {
    let harness = VoiceHarness::new();
    let client = harness.connect_client().await;
    harness.model.send_all([user_said("Tell me everything."), model_said("Well, "), audio(48_000)]).await;
    client.received();
    harness
        .model
        .send_all([LiveEvent::Interrupted { end_follows: true }, turn_complete(), user_said("Stop.")])
        .await;
    assert_eq!(
        client.received(),
        "interrupted\nuser: Stop.\n",
        "the end of the interrupted response ends no turn"
    );
    // The budget of voice is three calls a turn: the second turn has its own.
    let calls =
        [("call-0000001", "book", json!({ "what": "a" })), ("call-0000002", "book", json!({ "what": "b" }))];
    harness.model.send(tool_calls(&calls)).await;
    assert_eq!(harness.runs("book"), 2);
}

#[tokio::test(start_paused = true)]
async fn a_user_who_interrupts_does_not_hear_the_rest() {
    let harness = VoiceHarness::new();
    let client = harness.connect_client().await;
    harness.model.send_all([user_said("Go on."), audio(960)]).await;
    client.received();
    client.send(ClientAction::Interrupt).await;
    assert_eq!(client.received(), "interrupted\n");
    harness.model.send_all([audio(960), audio(960)]).await;
    assert_eq!(client.received(), "\n", "the rest of the answer");
    harness.model.send_all([turn_complete(), user_said("And now?"), audio(960)]).await;
    assert_eq!(client.received(), "user: And now?\naudio 960\n");
}

#[tokio::test(start_paused = true)]
async fn a_client_that_does_not_read_loses_audio_and_takes_no_memory() {
    let harness = VoiceHarness::new();
    let client = harness.connect_client().await;
    client.stop_reading();
    for _ in 0..200 {
        harness.model.send(audio(4_800)).await;
    }
    tokio::time::sleep(Duration::from_secs(3)).await;
    assert!(client.queued_bytes() < 100_000, "{}", client.queued_bytes());
}

/// Not at the next tick of a timer: the user would hear a gap.
#[tokio::test(start_paused = true)]
async fn a_client_that_reads_again_gets_the_rest_of_the_audio_at_once() {
    let harness = VoiceHarness::new();
    let client = harness.connect_client().await;
    client.stop_reading();
    for _ in 0..10 {
        harness.model.send(audio(4_800)).await;
    }
    let taken = client.received().lines().filter(|line| line.starts_with("audio")).count();
    assert!(taken < 10, "the provider is not read while the client is behind");
    let start = tokio::time::Instant::now();
    client.resume_reading().await;
    let rest = client.received().lines().filter(|line| line.starts_with("audio")).count();
    assert_eq!(taken + rest, 10);
    assert!(start.elapsed() <= Duration::from_millis(5), "{:?}", start.elapsed());
}

#[tokio::test(start_paused = true)]
async fn the_provider_is_told_when_the_microphone_is_silent() {
    let harness = VoiceHarness::new();
    let client = harness.connect_client().await;
    client.send(ClientAction::Audio(vec![0; 640])).await;
    harness.model.take_inputs();
    tokio::time::sleep(Duration::from_secs(4)).await;
    assert_eq!(harness.model.take_inputs(), "1 audio ended\n");
}

#[tokio::test(start_paused = true)]
async fn one_client_has_one_call() {
    let harness = VoiceHarness::new();
    let client = harness.connect_client().await;
    let second = harness.call(CallRequest::default()).await;
    assert_eq!(
        second.received(),
        "error UNAVAILABLE: You are in a call already. End it first.\nclosed: Refused\n"
    );
    harness.model.send(user_said("Still here.")).await;
    assert_eq!(client.received(), "user: Still here.\n");
    run_until_idle().await;
    assert_eq!(harness.agent.active_calls(), 1);
}

#[tokio::test(start_paused = true)]
async fn a_text_message_interrupts_an_answer_and_is_answered() {
    let harness = VoiceHarness::new();
    let client = harness.connect_client().await;
    harness.model.send_all([user_said("Go on."), model_said("Well, "), audio(960)]).await;
    client.received();
    client.send_text("Wait.").await;
    assert_eq!(client.received(), "interrupted\nuser: Wait.\n");
    // The provider's own word about it.
    harness.model.send_all([LiveEvent::Interrupted { end_follows: true }, turn_complete()]).await;
    assert_eq!(client.received(), "\n");
    harness.model.send_all([model_said("Yes?"), audio(960), turn_complete()]).await;
    assert_eq!(client.received(), "model: Yes?\naudio 960\nturn complete\n");
}

#[tokio::test(start_paused = true)]
async fn a_late_transcript_begins_no_turn() {
    let harness = VoiceHarness::new();
    let client = harness.connect_client().await;
    let look = |id: &'static str, what: &str| tool_calls(&[(id, "look", json!({ "what": what }))]);
    harness
        .model
        .send_all([LiveEvent::SpeechStarted, look("call-0000001", "a"), look("call-0000002", "b")])
        .await;
    harness
        .model
        .send_all([model_said("Here."), turn_complete(), user_said("Search."), look("call-0000003", "c")])
        .await;
    let inputs = harness.model.take_inputs();
    assert!(inputs.contains("function-call-0000003 BUDGET_EXCEEDED"), "{inputs}");
    assert!(client.received().contains("user: Search."));
}

#[tokio::test(start_paused = true)]
async fn a_call_beyond_capacity_is_refused() {
    let harness = VoiceHarness::with_max_calls(1);
    let mut client = harness.connect_client().await;
    let second = harness.call_as("ben", CallRequest::default()).await;
    let busy = "error UNAVAILABLE: All lines are busy. Please call again in a moment.\nclosed: AtCapacity\n";
    assert_eq!(second.received(), busy);
    // A call whose client is away counts too, but not for its own client.
    client.disconnect().await;
    assert_eq!(harness.call_as("ben", CallRequest::default()).await.received(), busy);
    harness.connect_client().await;
}

#[tokio::test(start_paused = true)]
async fn suppression_expires_when_the_provider_never_ends_the_response() {
    let harness = VoiceHarness::new();
    let client = harness.connect_client().await;
    harness.model.send_all([user_said("Go on."), audio(960)]).await;
    client.send(ClientAction::Interrupt).await;
    client.received();
    tokio::time::sleep(Duration::from_secs(20)).await;
    harness.model.send(audio(960)).await;
    client.send(ClientAction::Drained).await;
    tokio::time::sleep(Duration::from_secs(40)).await;
    harness.model.send(audio(480)).await;
    let received = client.received();
    assert!(!received.contains("audio 960") && received.contains("audio 480"), "{received}");
}

#[tokio::test(start_paused = true)]
async fn the_tokens_of_a_conversation_are_measured() {
    let harness = VoiceHarness::new();
    let _page = harness.connect_client().await;
    let usage = Usage::new(90_000, 1_000);
    harness.model.send(LiveEvent::Usage(usage)).await;
    let metrics = harness.orchestrator.metrics().json();
    assert_eq!(metrics["context"]["peakTokens"], 91_000, "{metrics}");
}
