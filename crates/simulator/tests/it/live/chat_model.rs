//! A simulator without a scenario: the rehearsal answers.

use std::sync::Arc;

use quarterdeck_rehearsal::Rehearsal;
use quarterdeck_simulator::live::{LiveSimulator, SpeechFuture, Substitute, Voice};
use serde_json::{Value, json};

use super::client::{Client, handle, samples, setup, setup_with, story};

fn answering() -> LiveSimulator {
    LiveSimulator::from_chat_model(Arc::new(Rehearsal::new()))
}

/// A setup with a knowledge base, declared in the provider's own dialect.
fn with_base(mut setup: Value) -> Value {
    setup["setup"]["tools"] = json!([{ "functionDeclarations": [{
        "name": "kb_search", "description": "Searches the knowledge base.",
        "parameters": { "type": "OBJECT", "properties": { "query": { "type": "STRING" } }, "required": ["query"] },
    }] }]);
    setup
}

fn said(frames: &[Value]) -> String {
    story(frames).into_iter().find_map(|it| it.strip_prefix("said ").map(str::to_owned)).unwrap_or_default()
}

fn found(title: &str) -> Value {
    json!({ "output": { "results": [
        { "id": "fram", "title": title, "snippet": "Fram was built in Larvik by Colin Archer.", "score": 0.9 } ] } })
}

#[tokio::test(start_paused = true)]
async fn text_is_answered_with_real_calls() {
    let simulator = answering();
    let mut client = Client::open(&simulator, &with_base(setup())).await;
    client.text("Where was the Fram built?").await;
    let frames = client.until("/toolCall").await;
    let call = &frames.last().unwrap()["toolCall"]["functionCalls"][0];
    assert_eq!(call["name"], "kb_search");
    assert!(call["args"]["query"].as_str().unwrap().to_lowercase().contains("fram"), "{call}");
    client.answer(call["id"].as_str().unwrap(), "kb_search", found("Fram")).await;
    let frames = client.turn().await;
    assert!(said(&frames).contains("Larvik"), "{}", said(&frames));
    assert!(!samples(&frames).is_empty());
    client.close().await;
    let report = simulator.report();
    assert_eq!((report.turns, report.calls.len(), report.faults), (1, 1, vec![]));
}

#[tokio::test(start_paused = true)]
async fn speech_is_answered_with_an_apology() {
    let simulator = answering();
    let mut client = Client::open(&simulator, &setup()).await;
    client.speak(1_500).await;
    let first = client.turn().await;
    assert!(story(&first).contains(&"heard (speech, 1.5 s)".to_owned()));
    assert!(said(&first).contains("without speech recognition") && said(&first).contains("What can you do?"));
    client.speak(500).await;
    let second = client.turn().await;
    assert!(
        said(&second).contains("without speech recognition") && !said(&second).contains("What can you do?")
    );
    client.text("Who are you?").await;
    assert!(said(&client.turn().await).contains("rehearsal"));
}

#[tokio::test(start_paused = true)]
async fn an_interrupted_call_is_cancelled_and_the_conversation_goes_on() {
    let simulator = answering();
    let mut client = Client::open(&simulator, &with_base(setup())).await;
    client.text("Where was the Fram built?").await;
    client.until("/toolCall").await;
    client.text("Hello").await;
    let frames = client.until("/serverContent/turnComplete").await;
    assert!(story(&frames).iter().any(|it| it.starts_with("cancel")));
    assert!(!said(&client.turn().await).is_empty());
    client.close().await;
    assert_eq!(simulator.report().faults, Vec::<String>::new());
}

#[tokio::test(start_paused = true)]
async fn a_handle_brings_back_what_was_said_and_content_is_history() {
    let simulator = answering();
    let mut client = Client::open(&simulator, &with_base(setup())).await;
    client.text("Hello").await;
    let hello = handle(&client.turn().await);
    client.text("Where was the Fram built?").await;
    client.until("/toolCall").await;
    client.disconnect().await;
    let mut client = Client::open(&simulator, &with_base(setup_with(&hello))).await;
    let turns = json!([
        { "role": "user", "parts": [{ "text": "Never mind the weather." }] },
        { "role": "model", "parts": [{ "text": "All right." }] },
        { "role": "user", "parts": [{ "text": "Where was the Fram built?" }] },
    ]);
    client.send(&json!({ "clientContent": { "turns": turns, "turnComplete": true } })).await;
    let frames = client.until("/toolCall").await;
    let call = &frames.last().unwrap()["toolCall"]["functionCalls"][0];
    client
        .answer(
            call["id"].as_str().unwrap(),
            "kb_search",
            json!({ "error": { "type": "TRANSIENT", "message": "The index is being built." } }),
        )
        .await;
    assert!(!said(&client.turn().await).is_empty());
    client.close().await;
}

#[tokio::test(start_paused = true)]
async fn instructions_and_tools_can_be_changed_in_the_middle() {
    let simulator = answering();
    let mut client = Client::open(&simulator, &setup()).await;
    client.send(&json!({ "contextUpdate": { "tools": { "tools": [{ "functionDeclarations": [
        { "name": "kb_search", "parametersJsonSchema": {
            "type": "object", "properties": { "query": { "type": "string" } }, "required": ["query"] } } ] }] } } })).await;
    client.text("Where was the Fram built?").await;
    client.until("/toolCall").await;
}

#[tokio::test(start_paused = true)]
async fn a_silent_answer_is_not_spoken_about() {
    let simulator = answering();
    let mut silent = with_base(setup());
    silent["setup"]["tools"][0]["functionDeclarations"][0]["behavior"] = json!("NON_BLOCKING");
    let mut client = Client::open(&simulator, &silent).await;
    client.text("Where was the Fram built?").await;
    let id = client.until("/toolCall").await.pop().unwrap()["toolCall"]["functionCalls"][0]["id"].clone();
    let answer = json!({ "id": id, "name": "kb_search", "response": found("Fram"), "scheduling": "SILENT" });
    client.send(&json!({ "toolResponse": { "functionResponses": [answer] } })).await;
    assert_eq!(story(&client.turn().await), ["generationComplete", "turnComplete", "handle"]);
    client.text("Thanks").await;
    assert_eq!(said(&client.turn().await), "You are welcome.");
}

struct Beep;

impl Voice for Beep {
    fn speak(&self, text: &str) -> SpeechFuture {
        let is_long = text.len() > 20;
        Box::pin(async move { is_long.then(|| vec![1_234_i16; 24_000]) })
    }
}

#[tokio::test(start_paused = true)]
async fn a_voice_is_used_and_tones_where_it_fails() {
    let simulator = super::client::playing(&json!([
        { "begins": "start", "steps": [{ "say": "A sentence that is long enough." }] },
        { "begins": "start", "steps": [{ "say": "Short." }] },
    ]))
    .with_voice(Arc::new(Beep));
    let mut client = Client::open(&simulator, &setup()).await;
    let frames = client.turn().await;
    assert_eq!(samples(&frames), vec![1_234; 24_000]);
    assert_eq!(said(&frames), "A sentence that is long enough.");
    let frames = client.turn().await;
    assert!(samples(&frames).iter().any(|sample| *sample < 0));
}

#[tokio::test(start_paused = true)]
async fn silence_in_place_of_tones_keeps_the_words_and_their_time() {
    let scenario = json!([{ "begins": "start", "steps": [{ "say": "It is raining in Oslo." }] }]);
    let humming = super::client::playing(&scenario);
    let silent = super::client::playing(&scenario).with_substitute(Substitute::Silence);
    let mut turns = Vec::new();
    for simulator in [humming, silent] {
        let mut client = Client::open(&simulator, &setup()).await;
        let frames = client.turn().await;
        turns.push((said(&frames), samples(&frames)));
    }
    assert_eq!((&turns[0].0, turns[0].1.len()), (&turns[1].0, turns[1].1.len()));
    assert!(turns[0].1.iter().any(|sample| *sample != 0));
    assert!(turns[1].1.iter().all(|sample| *sample == 0), "nothing hums");
}

#[tokio::test(start_paused = true)]
async fn a_session_that_outlives_its_process_never_sees_a_call_id_again() {
    let mut ids = Vec::new();
    for _ in 0..2 {
        let mut client = Client::open(&answering(), &with_base(setup())).await;
        client.text("Where was the Fram built?").await;
        let frames = client.until("/toolCall").await;
        ids.push(frames.last().unwrap()["toolCall"]["functionCalls"][0]["id"].clone());
    }
    assert_ne!(ids[0], ids[1]);
}
