//! Whole conversations.

use serde_json::json;

use super::client::{Client, handle, playing, samples, setup, setup_with, story};

#[tokio::test(start_paused = true)]
async fn speech_is_heard_and_answered_in_audio_and_words() {
    let simulator = playing(&json!({ "turns": [
        { "begins": "speech", "heard": ["what is ", "the weather"], "steps": [{ "say": "It is raining in Oslo." }] },
    ] }));
    let mut client = Client::open(&simulator, &setup()).await;
    client.speak(1_000).await;
    let frames = client.turn().await;
    assert_eq!(
        story(&frames),
        [
            "no handle",
            "heard what is ",
            "heard the weather",
            "audio",
            "said It is raining in Oslo.",
            "generationComplete",
            "turnComplete",
            "handle",
        ]
    );
    let samples = samples(&frames);
    assert!((24_000..96_000).contains(&samples.len()), "{} samples", samples.len());
    assert!(samples.iter().any(|sample| *sample > 3_000));
    client.close().await;
    let report = simulator.report();
    assert_eq!((report.connections, report.turns, report.faults), (1, 1, vec![]));
    assert_eq!(report.heard, ["(speech, 1.0 s)"]);
    assert_eq!(report.audio_bytes, 1_400 * 32);
}

#[tokio::test(start_paused = true)]
async fn a_call_waits_for_its_answer_and_a_session_goes_on_from_its_handle() {
    let simulator = playing(&json!({ "turns": [
        { "begins": "text", "containing": "weather", "steps": [{ "say": "Hello." }] },
        { "begins": "text", "steps": [
            { "call": { "name": "look_up", "args": { "city": "Oslo" } } }, { "say": "Rain." } ] },
    ] }));
    let mut client = Client::open(&simulator, &setup()).await;
    client.text("What is the Weather?").await;
    let first = handle(&client.turn().await);
    client.text("And in Oslo?").await;
    let frames = client.until("/toolCall").await;
    let call = &frames.last().unwrap()["toolCall"]["functionCalls"][0];
    assert_eq!((&call["name"], &call["args"]), (&json!("look_up"), &json!({ "city": "Oslo" })));
    let lost = call["id"].as_str().unwrap().to_owned();
    client.disconnect().await;
    assert_eq!(simulator.report().faults.len(), 1, "a client that leaves owes an answer");

    let mut client = Client::open(&simulator, &setup_with(&first)).await;
    let said = json!([{ "role": "user", "parts": [{ "text": "And in Oslo?" }] }]);
    client.send(&json!({ "clientContent": { "turns": said, "turnComplete": true } })).await;
    let frames = client.until("/toolCall").await;
    let id = frames.last().unwrap()["toolCall"]["functionCalls"][0]["id"].as_str().unwrap().to_owned();
    assert_ne!(id, lost, "what came after the handle is forgotten");
    client.answer(&id, "look_up", json!({ "output": "rain" })).await;
    assert_eq!(
        story(&client.turn().await),
        ["audio", "said Rain.", "generationComplete", "turnComplete", "handle"]
    );
    client.close().await;
    let report = simulator.report();
    assert_eq!((report.connections, report.turns, report.resumptions, report.faults.len()), (2, 2, 1, 1));
    let calls: Vec<_> = report.calls.iter().map(|call| (call.connection, call.answers.clone())).collect();
    assert_eq!(calls, [(1, vec![]), (2, vec![json!({ "output": "rain" })])]);
}
