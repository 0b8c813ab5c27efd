//! Interruptions.

use quarterdeck_simulator::live::LiveSimulator;
use serde_json::{Value, json};

use super::client::{Client, playing, setup, story};

const LONG_ANSWER: &str =
    "This is a long answer that goes on and on and on and on and on until the user interrupts it.";

fn talkative(interruption: &str) -> LiveSimulator {
    playing(&json!([
        { "begins": "start", "interruption": interruption, "steps": [
            { "call": { "name": "slow", "id": "a" } }, { "say": LONG_ANSWER }, { "expectInterruption": true } ] },
        { "begins": "anything", "heard": "stop", "steps": [{ "say": "Sorry." }] },
    ]))
}

async fn listening(simulator: &LiveSimulator, setup: &Value) -> Client {
    let mut client = Client::open(simulator, setup).await;
    client.until("/serverContent/modelTurn").await;
    client
}

#[tokio::test(start_paused = true)]
async fn speech_interrupts_and_the_words_after_it_are_answered() {
    let simulator = talkative("cancel");
    let mut client = listening(&simulator, &setup()).await;
    client.audio(4_000, 100).await;
    let frames = client.until("/serverContent/turnComplete").await;
    let story_told = story(&frames);
    assert_eq!(
        story_told[story_told.len() - 3..],
        ["interrupted", "cancel [\"a\"]", "turnComplete"],
        "and nothing is generated any more"
    );
    assert!(!story_told.contains(&"generationComplete".to_owned()));
    client.speak(500).await;
    let story_told = story(&client.turn().await);
    assert_eq!(story_told[..4], ["no handle", "heard stop", "audio", "said Sorry."]);
    client.close().await;
    let report = simulator.report();
    assert_eq!((report.turns, report.interruptions, report.faults), (1, 1, vec![]));
    assert!(report.calls[0].was_cancelled);
}

#[tokio::test(start_paused = true)]
async fn calls_can_survive_an_interruption() {
    let simulator = talkative("keep");
    let mut client = listening(&simulator, &setup()).await;
    client.text("stop").await;
    let frames = client.until("/serverContent/turnComplete").await;
    assert!(!story(&frames).iter().any(|it| it.starts_with("cancel")));
    client.until("/serverContent/turnComplete").await;
    client.answer("a", "slow", json!({ "output": 1 })).await;
    assert_eq!(story(&client.until("/sessionResumptionUpdate/newHandle").await), ["handle"]);
    client.close().await;
    assert_eq!(simulator.report().faults, Vec::<String>::new());
}

#[tokio::test(start_paused = true)]
async fn content_interrupts_whether_it_asks_or_not() {
    let simulator = talkative("cancel");
    let mut client = listening(&simulator, &setup()).await;
    let turns = json!([{ "role": "user", "parts": [{ "text": "By the way" }] }]);
    client.send(&json!({ "clientContent": { "turns": turns, "turnComplete": false } })).await;
    let frames = client.turn().await;
    assert!(story(&frames).contains(&"interrupted".to_owned()));
    client.receives_nothing().await;
}

#[tokio::test(start_paused = true)]
async fn input_during_an_uninterruptible_turn_is_kept_for_the_next() {
    let ignoring = playing(&json!([
        { "begins": "start", "interruption": "ignore", "steps": [{ "say": LONG_ANSWER }] },
        { "begins": "speech", "steps": [{ "say": "Yes?" }] },
    ]));
    let patient = playing(&json!([
        { "begins": "start", "steps": [{ "say": LONG_ANSWER }] },
        { "begins": "speech", "steps": [{ "say": "Yes?" }] },
    ]));
    let mut uninterrupted = setup();
    uninterrupted["setup"]["realtimeInputConfig"] = json!({ "activityHandling": "NO_INTERRUPTION" });
    for (simulator, setup) in [(ignoring, setup()), (patient, uninterrupted)] {
        let mut client = listening(&simulator, &setup).await;
        client.speak(500).await;
        let frames = client.turn().await;
        assert!(story(&frames).contains(&"generationComplete".to_owned()));
        assert!(story(&client.turn().await).contains(&"said Yes?".to_owned()));
        assert_eq!((simulator.report().turns, simulator.report().interruptions), (2, 0));
    }
}

#[tokio::test(start_paused = true)]
async fn noise_is_no_speech() {
    let simulator = talkative("cancel");
    let mut client = listening(&simulator, &setup()).await;
    client.audio(100, 1_000).await;
    client.until("/serverContent/outputTranscription").await;
    assert_eq!(simulator.report().interruptions, 0);
}

#[tokio::test(start_paused = true)]
async fn a_missing_interruption_is_reported_as_a_fault() {
    let simulator = talkative("cancel");
    let mut client = listening(&simulator, &setup()).await;
    client.until("/serverContent/turnComplete").await;
    assert_eq!(simulator.report().faults, ["connection 1: the turn was not interrupted in time"]);
}

#[tokio::test(start_paused = true)]
async fn a_scenario_can_interrupt_itself() {
    let simulator = playing(&json!([
        { "begins": "start", "steps": [{ "say": "I" }, { "interrupt": true }, { "say": "never say this" }] } ]));
    let mut client = Client::open(&simulator, &setup()).await;
    let told = story(&client.turn().await);
    assert_eq!(told, ["no handle", "audio", "said I", "interrupted", "turnComplete", "handle"]);
}

#[tokio::test(start_paused = true)]
async fn speech_is_signalled_on_request_and_can_be_marked_by_the_client() {
    let simulator = playing(&json!([{ "begins": "speech", "heard": "hi", "steps": [{ "say": "Hi." }] }]));
    let mut signalled = setup();
    signalled["setup"]["explicitVadSignal"] = json!(true);
    let mut client = Client::open(&simulator, &signalled).await;
    client.audio(0, 500).await;
    client.speak(500).await;
    let frames = client.until("/serverContent/inputTranscription").await;
    assert_eq!(frames[0], json!({ "voiceActivity": { "type": "ACTIVITY_START", "audioOffset": "0.500s" } }));
    assert_eq!(frames[1], json!({ "voiceActivity": { "type": "ACTIVITY_END", "audioOffset": "1s" } }));

    let mut by_hand = setup();
    by_hand["setup"]["realtimeInputConfig"] = json!({ "automaticActivityDetection": { "disabled": true } });
    let mut client = Client::open(&simulator, &by_hand).await;
    client.speak(500).await;
    client.receives_nothing().await;
    client.send(&json!({ "realtimeInput": { "activityStart": {} } })).await;
    client.audio(4_000, 200).await;
    client.send(&json!({ "realtimeInput": { "activityEnd": {} } })).await;
    assert!(story(&client.turn().await).contains(&"heard hi".to_owned()));
    assert_eq!(simulator.report().heard, ["(speech, 0.5 s)", "(speech, 0.2 s)"]);
}

#[tokio::test(start_paused = true)]
async fn the_end_of_the_stream_ends_speech_at_once() {
    let simulator = playing(&json!([{ "begins": "speech", "steps": [{ "say": "Hi." }] }]));
    let mut client = Client::open(&simulator, &setup()).await;
    client.audio(4_000, 500).await;
    client.receives_nothing().await;
    client.send(&json!({ "realtimeInput": { "audioStreamEnd": true } })).await;
    client.turn().await;
    assert_eq!(simulator.report().turns, 1);
}
