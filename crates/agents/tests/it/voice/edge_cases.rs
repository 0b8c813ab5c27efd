//! Events in an unusual order or number.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use quarterdeck_agents::voice::CallRequest;
use quarterdeck_contracts::{
    LiveConnecting, LiveEvent, LiveModel, LiveSetup, Provider, TranscriptPiece, TranscriptStage,
};
use serde_json::{Value, json};

use super::harness::{
    ClientAction, VoiceHarness, audio, model_said, run_until_idle, tool_calls, turn_complete, user_said,
};
use super::simulated::{model, scenario};

async fn pass(seconds: u64) {
    tokio::time::sleep(Duration::from_secs(seconds)).await;
}

/// How often each id was answered.
fn answered(inputs: &str) -> BTreeMap<String, usize> {
    let mut answers = BTreeMap::new();
    for line in inputs.lines() {
        if let Some(id) = line.split_once(" result ").and_then(|(_, rest)| rest.split(' ').next()) {
            *answers.entry(id.to_owned()).or_default() += 1;
        }
    }
    answers
}

fn cancels(ids: &[&str]) -> LiveEvent<'static> {
    LiveEvent::CallsCancelled(ids.iter().map(|id| format!("function-{id}")).collect())
}

#[tokio::test(start_paused = true)]
async fn cancelling_answered_or_unknown_tool_calls_changes_nothing() {
    let harness = VoiceHarness::new();
    let _page = harness.connect_client().await;
    let look = |id: &str| tool_calls(&[(id, "look", json!({ "what": "a" }))]);
    harness.model.send_all([user_said("Look."), look("0001")]).await;
    harness.model.send_all([cancels(&["0001", "0002", ""]), cancels(&["0001"])]).await;
    harness.model.send_all([turn_complete(), user_said("Again."), look("0002"), turn_complete()]).await;
    pass(2).await;
    let inputs = harness.model.take_inputs();
    let once = BTreeMap::from([("function-0001".to_owned(), 1), ("function-0002".to_owned(), 1)]);
    assert_eq!(answered(&inputs), once, "what was taken back before it was made is answered: {inputs}");
}

#[tokio::test(start_paused = true)]
async fn a_tool_call_that_is_cancelled_and_repeated_is_answered_once() {
    let harness = VoiceHarness::new();
    let _page = harness.connect_client().await;
    for (tool, runs) in [("slow_look", 2), ("slow_book", 1)] {
        let call = || tool_calls(&[(tool, tool, json!({ "what": "a" }))]);
        harness.model.send_all([user_said("Go."), call(), cancels(&[tool]), call()]).await;
        pass(10).await;
        harness.model.send(turn_complete()).await;
        let inputs = harness.model.take_inputs();
        assert_eq!(answered(&inputs), BTreeMap::from([(format!("function-{tool}"), 1)]), "{inputs}");
        assert!(harness.runs(tool) <= runs, "{tool} ran {} times", harness.runs(tool));
    }
}

#[tokio::test(start_paused = true)]
async fn a_thousand_calls_in_one_message_are_each_answered_once() {
    let harness = VoiceHarness::new();
    let client = harness.connect_client().await;
    let names: Vec<String> = (0..1_000).map(|number| format!("{number:04}")).collect();
    let calls: Vec<(&str, &str, Value)> =
        names.iter().map(|name| (name.as_str(), "book", json!({ "what": name }))).collect();
    harness.model.send_all([user_said("Everything."), tool_calls(&calls)]).await;
    pass(5).await;
    let inputs = harness.model.take_inputs();
    let answers = answered(&inputs);
    assert!(answers.len() == 1_000 && answers.values().all(|count| *count == 1), "{}", answers.len());
    assert_eq!(
        inputs.lines().filter(|line| line.ends_with(" last")).count(),
        1,
        "the turn is handed back once"
    );
    assert_eq!(harness.runs("book"), 3, "no more than a turn's budget");
    client.send_text("And now?").await;
    assert!(harness.model.take_inputs().contains("text And now?"), "the call goes on");
}

#[tokio::test(start_paused = true)]
async fn many_interruptions_do_nothing_twice_and_the_call_goes_on() {
    let harness = VoiceHarness::new();
    let client = harness.connect_client().await;
    harness
        .model
        .send_all([user_said("Book it."), tool_calls(&[("0001", "slow_book", json!({ "what": "a" }))])])
        .await;
    for number in 0..500 {
        harness
            .model
            .send_all([audio(960), LiveEvent::Interrupted { end_follows: true }, turn_complete()])
            .await;
        client.send(ClientAction::Interrupt).await;
        if number % 50 == 0 {
            client.send_text("No, wait.").await;
        }
    }
    pass(5).await;
    let inputs = harness.model.take_inputs();
    assert!(answered(&inputs).values().all(|count| *count == 1), "{:?}", answered(&inputs));
    assert_eq!(harness.runs("slow_book"), 1);
    let received = client.received();
    assert_eq!(received.matches(r#"result function-0001 {"did":"a"}"#).count(), 1, "the user is told once");
    harness.model.send_all([user_said("Hello?"), model_said("Yes."), turn_complete()]).await;
    assert!(client.received().contains("model: Yes."), "the call goes on");
}

#[tokio::test(start_paused = true)]
async fn a_confirmation_while_the_provider_is_away_is_resolved_and_noted() {
    let harness = VoiceHarness::new();
    let client = harness.connect_client().await;
    harness
        .model
        .send_all([
            user_said("Pay."),
            tool_calls(&[("0001", "pay", json!({ "what": "rent" }))]),
            turn_complete(),
        ])
        .await;
    harness.model.take_inputs();
    harness.model.drop_connection().await;
    client.send(ClientAction::Confirm(client.token(), true)).await;
    client.send(ClientAction::Confirm(client.token(), true)).await;
    pass(10).await;
    // It may have been about to say something when it was lost, and says it first.
    harness.model.send_all([model_said("One moment."), turn_complete()]).await;
    assert_eq!(harness.runs("pay"), 1);
    let setups = harness.model.setups();
    let opened = setups.iter().flat_map(|setup| &setup.history).map(|turn| turn.text.as_str());
    let received: String = opened.chain([harness.model.take_inputs().as_str()]).collect();
    assert_eq!(received.matches("and was done").count(), 1, "{received}");
}

#[tokio::test(start_paused = true)]
async fn tool_calls_of_a_closing_connection_are_answered_or_noted_and_run_once() {
    let harness = VoiceHarness::new();
    let client = harness.connect_client().await;
    client.send_text("Book it.").await;
    let call = || tool_calls(&[("0001", "slow_book", json!({ "what": "a" }))]);
    let leaves = LiveEvent::GoingAway { left: Some(Duration::from_secs(2)) };
    harness.model.send_all([leaves, call()]).await;
    pass(1).await;
    assert_eq!(harness.model.setups().len(), 2, "another connection is opened in time");
    harness.model.send(call()).await;
    pass(10).await;
    harness.model.send_all([model_said("Done."), turn_complete()]).await;
    let inputs = harness.model.take_inputs();
    assert_eq!(answered(&inputs), BTreeMap::from([("function-0001".to_owned(), 1)]), "{inputs}");
    assert_eq!((harness.runs("slow_book"), harness.agent.active_calls()), (1, 1), "{}", client.received());
}

/// A provider that never answers.
struct Unreachable;

impl LiveModel for Unreachable {
    fn declarations(&self) -> Provider {
        Provider::GeminiJsonSchema
    }

    fn name(&self) -> &str {
        "unreachable/1"
    }

    fn connect(&self, _: LiveSetup) -> LiveConnecting {
        Box::pin(std::future::pending())
    }
}

#[tokio::test(start_paused = true)]
async fn a_client_that_stops_before_the_provider_is_connected_ends_the_call() {
    let harness = VoiceHarness::with_model(Arc::new(Unreachable));
    let client = harness.call(CallRequest::default()).await;
    client.send(ClientAction::Audio(vec![0; 640])).await;
    client.send_text("Hello?").await;
    client.send(ClientAction::Stop).await;
    assert_eq!(client.received(), "user: Hello?\nend user_hung_up closing=- text=-\nclosed: Ended\n");
    assert_eq!(harness.agent.active_calls(), 0);
}

#[tokio::test(start_paused = true)]
async fn a_link_that_comes_while_a_call_ends_is_answered() {
    let harness = VoiceHarness::new();
    let client = harness.connect_client().await;
    let request = harness.session().await;
    let (again, _) = tokio::join!(harness.call(request.clone()), client.send(ClientAction::Stop));
    let received = again.received();
    assert!(received.contains("closed") || received.contains("ready"), "{received}");
    pass(5).await;
    let after = harness.call(request).await;
    assert!(after.received().starts_with("ready fake/1 resumed="), "the next call is set up");
    assert_eq!(harness.agent.active_calls(), 1);
}

#[tokio::test(start_paused = true)]
async fn a_transcript_without_end_is_shown_and_not_kept() {
    let harness = VoiceHarness::new();
    let mut client = harness.connect_client().await;
    let long = |stage| TranscriptPiece { text: "ä".repeat(500_000).into(), stage };
    harness
        .model
        .send_all([
            LiveEvent::InputTranscript(long(TranscriptStage::Final)),
            LiveEvent::OutputTranscript(long(TranscriptStage::Segment)),
        ])
        .await;
    assert!(client.received().len() > 1_900_000, "the client may have them");
    client.disconnect().await;
    for _ in 0..100 {
        harness.model.send(LiveEvent::OutputTranscript(long(TranscriptStage::Segment))).await;
    }
    harness.model.send(turn_complete()).await;
    let client = harness.call(harness.session().await).await;
    let received = client.received();
    assert!(received.starts_with("ready fake/1 resumed=true\n"), "{}", &received[..100]);
    assert!(received.len() < 2_000_000, "{} bytes were kept for a client that was away", received.len());
    harness.model.drop_connection().await;
    pass(2).await;
    let setups = harness.model.setups();
    let retold: usize = setups[1].history.iter().map(|turn| turn.text.len()).sum();
    assert!(retold < 64_000, "{retold} bytes are told again");
}

#[tokio::test(start_paused = true)]
async fn the_end_of_a_call_waits_for_running_tool_calls() {
    let (model, simulator) = model(scenario(&json!([
        { "begins": "text", "steps": [
            { "call": [
                { "name": "leave", "args": { "what": "now" } },
                { "name": "slow_book", "args": { "what": "room" } },
            ], "behavior": "nonBlocking" },
            { "wait": 500 },
            { "say": "Goodbye." },
        ] },
    ])));
    let harness = VoiceHarness::with_model(model);
    let client = harness.call(CallRequest::default()).await;
    client.send_text("Book the room and hang up").await;
    pass(2).await;
    client.send(ClientAction::Drained).await;
    pass(20).await;
    run_until_idle().await;
    let (report, received) = (simulator.report(), client.received());
    assert_eq!(report.faults, [""; 0], "{received}\n{report:#?}");
    assert!(received.ends_with("closed: Ended\n"), "{received}");
    assert!(received.contains(r#"{"did":"room"}"#), "the user sees what was done: {received}");
    assert_eq!(harness.runs("slow_book"), 1);
}
