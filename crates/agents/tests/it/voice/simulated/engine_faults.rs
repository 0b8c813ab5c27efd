//! A pipeline whose engines fail or fall silent, at every event of theirs, and a client that is lost meanwhile.

use std::collections::HashSet;
use std::time::Duration;

use quarterdeck_agents::voice::CallRequest;
use quarterdeck_contracts::ChatMessage;
use quarterdeck_testkit::ScriptedTurns;
use serde_json::json;

use super::conversation::two_tools;
use super::cuts::assert_undamaged;
use super::providers::{Provider, ProviderKind};
use super::{converse, pass, said, speak, stay};
use crate::voice::harness::{Fault, FaultKind, ScriptedEngines, Stage};

const APOLOGY: &str = "Sorry, something went wrong. Please ask me again.";
const NOT_HEARD: &str = "Sorry, I did not catch that.";
/// How long a turn may take in which an engine takes as long as it may.
const SLOW_TURN: Duration = Duration::from_secs(100);

fn engines(fault: Fault) -> std::sync::Arc<ScriptedEngines> {
    ScriptedEngines::with_fault(ScriptedTurns::new(&two_tools()), Some(fault))
}

/// Every call that the model was shown has one result.
fn assert_answered(engines: &ScriptedEngines, what: &str) {
    for request in engines.requests() {
        for (place, message) in request.messages.iter().enumerate() {
            let ChatMessage::Model(message) = message else { continue };
            let results = match request.messages.get(place + 1) {
                Some(ChatMessage::Tools { results }) => results.len(),
                _ => 0,
            };
            assert_eq!(message.calls().count(), results, "{what}: {:?}", request.messages);
        }
    }
}

/// What the client was told in each turn.
fn turns(received: &str) -> Vec<&str> {
    received.split_inclusive("turn complete\n").collect()
}

#[tokio::test(start_paused = true)]
async fn an_engine_that_fails_at_any_event_loses_no_word_and_does_nothing_twice() {
    let mut failed = HashSet::new();
    for at in 0.. {
        let engines = engines(Fault { stage: None, at, kind: FaultKind::Fails, times: 1 });
        let provider = Provider::pipeline(engines.clone());
        let what = format!("event {at}");
        let (harness, client, received) = assert_undamaged(&provider, &what).await;
        assert!(said(&received).contains("You are welcome."), "{what}: the call goes on\n{received}");
        let Some(stage) = engines.failed().first().copied() else { break };
        let what = format!("{what}, {stage:?}\n{received}");
        failed.insert(stage);
        assert_eq!(harness.runs("look"), 1, "{what}");
        assert_eq!(received.matches("turn complete").count(), 3, "{what}");
        assert!(!received.contains("error"), "{what}");
        let spoken = engines.words_in(&client.received_samples()).join(" ");
        for answer in ["Hello.", "is booked.", "You are welcome."] {
            assert!(spoken.contains(answer), "{spoken:?} is spoken: {what}");
        }
        assert_answered(&engines, &what);
    }
    let stages = [
        Stage::FirstToken,
        Stage::NextToken,
        Stage::Calls,
        Stage::ReplyEnd,
        Stage::FirstAudio,
        Stage::NextAudio,
    ];
    assert_eq!(failed, HashSet::from(stages));
}

#[tokio::test(start_paused = true)]
async fn an_engine_that_falls_silent_at_any_event_is_told_of_and_the_call_goes_on() {
    for at in 0.. {
        let engines = engines(Fault { stage: None, at, kind: FaultKind::Hangs, times: 1 });
        let harness = Provider::pipeline(engines.clone()).harness();
        let client = harness.call(CallRequest::default()).await;
        let received = converse(&harness, &client, SLOW_TURN).await;
        let Some(stage) = engines.failed().first().copied() else { break };
        let what = format!("event {at}, {stage:?}\n{received}");
        assert!(harness.runs("look") <= 1 && harness.runs("book") <= 1, "{what}");
        assert_eq!(received.matches("turn complete").count(), 3, "every turn ends: {what}");
        for turn in turns(&received).iter().take(3) {
            assert!(turn.contains("model: "), "{what}");
            // A sentence that the voice never began is shown.
            assert!(
                turn.contains("audio ") || stage == Stage::FirstAudio,
                "the user hears something: {what}"
            );
        }
        let is_chat = !matches!(stage, Stage::FirstAudio | Stage::NextAudio);
        assert_eq!(said(&received).contains(APOLOGY), is_chat, "{what}");
        if !is_chat {
            assert_eq!((harness.runs("look"), harness.runs("book")), (1, 1), "{what}");
        }
        assert_answered(&engines, &what);
    }
}

/// How often a user says it again. Each time meets at least one of the eight faults.
const MAX_REPEATS: usize = 9;

#[tokio::test(start_paused = true)]
async fn an_outage_of_all_engines_ends_no_call() {
    for at in 0..24 {
        let engines = engines(Fault { stage: None, at, kind: FaultKind::Fails, times: 8 });
        let harness = Provider::pipeline(engines.clone()).harness();
        let client = harness.call(CallRequest::default()).await;
        let mut received = converse(&harness, &client, SLOW_TURN).await;
        // A turn that fails early meets few of the faults, so that the outage lasts for several.
        for _ in 0..MAX_REPEATS {
            client.send_text("Thank you again").await;
            stay(&client, SLOW_TURN).await;
            received.push_str(&client.received());
            if turns(&received).last().is_some_and(|turn| turn.contains("You are welcome.")) {
                break;
            }
        }
        let what = format!("from event {at}\n{received}");
        assert!(harness.runs("look") <= 1 && harness.runs("book") <= 1, "{what}");
        assert!(turns(&received).last().is_some_and(|turn| turn.contains("You are welcome.")), "{what}");
        assert_answered(&engines, &what);
    }
}

#[tokio::test(start_paused = true)]
async fn speech_that_is_not_transcribed_is_apologised_for_and_can_be_repeated() {
    let spoken = json!([{ "begins": "speech", "heard": "Book the room.", "steps": [
        { "call": { "name": "book", "args": { "what": "room" } } },
        { "say": "It is booked." },
    ] }]);
    for kind in [FaultKind::Fails, FaultKind::Hangs] {
        // One that fails is tried twice, and one that is silent has taken its time.
        let times = if kind == FaultKind::Fails { 2 } else { 1 };
        let fault = Fault { stage: Some(Stage::Transcription), at: 0, kind, times };
        let engines = ScriptedEngines::with_fault(ScriptedTurns::new(&spoken), Some(fault));
        let harness = Provider::pipeline(engines.clone()).harness();
        let client = harness.call(CallRequest::default()).await;
        speak(&client, 800, true).await;
        speak(&client, 1_000, false).await;
        pass(Duration::from_secs(40)).await;
        let received = client.received();
        assert!(said(&received).contains(NOT_HEARD) && received.contains("audio "), "{received}");
        speak(&client, 800, true).await;
        speak(&client, 1_000, false).await;
        pass(Duration::from_secs(10)).await;
        let received = client.received();
        assert!(said(&received).contains("It is booked."), "{received}");
        assert_eq!(harness.runs("book"), 1);
    }
}

#[tokio::test(start_paused = true)]
async fn a_client_that_is_lost_at_any_time_of_a_turn_comes_back_to_the_same_call() {
    for time in (0..3_000).step_by(60) {
        let provider = Provider::new(ProviderKind::Pipeline, &two_tools());
        let harness = provider.harness();
        let mut client = harness.call(CallRequest::default()).await;
        client.send_text("Book the room").await;
        pass(Duration::from_millis(time)).await;
        client.disconnect().await;
        pass(Duration::from_millis(700)).await;
        let before = client.received();
        let client = harness.call(harness.session().await).await;
        pass(Duration::from_secs(8)).await;
        client.send_text("Many thanks").await;
        pass(Duration::from_secs(8)).await;
        let after = client.received();
        let what = format!("after {time} ms\n{before}--\n{after}");
        assert!(after.contains("resumed=true"), "{what}");
        assert_eq!((harness.runs("look"), harness.runs("book")), (1, 1), "{what}");
        assert!(said(&(before + &after)).contains("It is booked."), "{what}");
        assert!(said(&after).contains("You are welcome."), "{what}");
        assert_eq!(harness.agent.active_calls(), 1, "{what}");
    }
}
