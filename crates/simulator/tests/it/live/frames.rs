//! Every kind of frame that the provider sends.

use std::time::Duration;

use serde_json::{Value, json};
use tokio::time::Instant;

use super::client::{Client, End, PATH, playing, setup, story};

/// What comes when a turn that begins by itself has these steps.
async fn played(steps: Value) -> (Client, Vec<Value>) {
    let simulator = playing(&json!([{ "begins": "start", "steps": steps }]));
    let mut client = Client::open(&simulator, &setup()).await;
    let frames = client.until("/serverContent/turnComplete").await;
    (client, frames)
}

#[tokio::test(start_paused = true)]
async fn thoughts_and_transcripts_alone_and_audio_alone() {
    let steps = json!([
        { "think": "**Checking**" },
        { "say": "Only written.", "audio": false },
        { "say": "Only heard.", "transcript": false },
    ]);
    let (_, frames) = played(steps).await;
    assert_eq!(
        story(&frames),
        [
            "no handle",
            "thought **Checking**",
            "said Only written.",
            "audio",
            "generationComplete",
            "turnComplete"
        ]
    );
}

#[tokio::test(start_paused = true)]
async fn a_frame_is_sent_as_it_stands_with_several_keys_and_unknown_ones() {
    let both = json!({ "usageMetadata": { "promptTokenCount": 1 }, "somethingNew": {}, "serverContent": {
        "modelTurn": { "parts": [{ "text": "x" }] }, "interimInputTranscription": { "text": "what" },
    } });
    let (_, frames) = played(json!([{ "frame": both }])).await;
    assert!(frames.contains(&both));
}

#[tokio::test(start_paused = true)]
async fn a_late_frame_comes_after_the_end_of_its_turn() {
    let late = json!({ "serverContent": { "outputTranscription": { "text": "late" } } });
    let (mut client, frames) = played(json!([{ "frame": late, "afterMs": 5_000 }])).await;
    assert!(!frames.contains(&late));
    let begun = Instant::now();
    assert_eq!(client.until("/serverContent").await.last(), Some(&late));
    assert_eq!(begun.elapsed().as_secs(), 5);
}

#[tokio::test(start_paused = true)]
async fn malformed_frames_are_sent_as_they_are() {
    let simulator = playing(&json!({ "frames": "text", "turns": [{ "begins": "start", "steps": [
        { "malformed": "{\"serverContent\": {" }, { "malformed": { "base64": "e30=" } },
    ] }] }));
    let mut client = Client::connect(&simulator, PATH).await;
    client.send(&json!({ "setup": { "model": "models/m" } })).await;
    client.receive().await.unwrap();
    assert_eq!(client.receive_raw().await.unwrap(), b"{\"serverContent\": {");
    assert_eq!(client.receive_raw().await.unwrap(), b"{}");
}

#[tokio::test(start_paused = true)]
async fn go_away_is_announced_and_followed_by_the_close() {
    let simulator = playing(&json!([{ "begins": "start", "steps": [
        { "say": "I have to go." }, { "goAway": { "leftMs": 9_500 } },
    ] }]));
    let mut client = Client::open(&simulator, &setup()).await;
    let frames = client.until("/goAway").await;
    assert_eq!(frames.last().unwrap(), &json!({ "goAway": { "timeLeft": "9.500s" } }));
    let begun = Instant::now();
    assert_eq!(client.end().await, End::Closed(1001, "The session has reached its time limit.".to_owned()));
    assert_eq!(begun.elapsed().as_millis(), 9_500);
}

#[tokio::test(start_paused = true)]
async fn a_connection_is_dropped_with_and_without_a_close_frame() {
    for (step, over) in [
        (json!({ "drop": true }), End::Disconnect),
        (
            json!({ "drop": { "code": 1011, "reason": "Deadline expired" } }),
            End::Closed(1011, "Deadline expired".to_owned()),
        ),
    ] {
        let simulator =
            playing(&json!([{ "begins": "start", "steps": [{ "call": { "name": "slow" } }, step] }]));
        let mut client = Client::open(&simulator, &setup()).await;
        client.until("/toolCall").await;
        assert_eq!(client.end().await, over);
        client.ended().await;
        assert_eq!(simulator.report().faults, Vec::<String>::new(), "a closed connection cannot be answered");
    }
}

#[tokio::test(start_paused = true)]
async fn calls_come_alone_together_with_and_without_ids_and_again() {
    let simulator = playing(&json!([{ "begins": "start", "steps": [
        { "call": [{ "name": "look_up", "id": "a", "args": { "q": 1 } }, { "name": "book", "id": null }] },
        { "call": { "name": "look_up", "id": "a", "args": { "q": 1 } },
          "with": { "serverContent": { "outputTranscription": { "text": "Again" } } } },
        { "call": { "name": "nobody_declared_this" } },
    ] }]));
    let mut client = Client::open(&simulator, &setup()).await;
    let first = client.until("/toolCall").await.pop().unwrap();
    assert_eq!(
        first,
        json!({ "toolCall": { "functionCalls": [
            { "id": "a", "name": "look_up", "args": { "q": 1 } }, { "name": "book" } ] } })
    );
    client.answer("a", "look_up", json!({ "output": 1 })).await;
    client.receives_nothing().await;
    let nameless = json!({ "name": "book", "response": { "output": 2 } });
    client.send(&json!({ "toolResponse": { "functionResponses": [nameless] } })).await;
    let second = client.until("/toolCall").await.pop().unwrap();
    assert_eq!(second["serverContent"]["outputTranscription"]["text"], "Again");
    client.answer("a", "look_up", json!({ "output": 3 })).await;
    let third = client.until("/toolCall").await.pop().unwrap();
    let id = third["toolCall"]["functionCalls"][0]["id"].as_str().unwrap().to_owned();
    client.answer(&id, "nobody_declared_this", json!({ "error": "unknown" })).await;
    client.turn().await;
    client.close().await;
    let report = simulator.report();
    assert_eq!(report.faults, Vec::<String>::new());
    let answers: Vec<_> = report.calls.iter().map(|call| call.answers.clone()).collect();
    assert_eq!(
        answers,
        [
            vec![json!({ "output": 1 })],
            vec![json!({ "output": 2 })],
            vec![json!({ "output": 3 })],
            vec![json!({ "error": "unknown" })]
        ]
    );
}

#[tokio::test(start_paused = true)]
async fn cancelled_calls_need_no_answer() {
    let simulator = playing(&json!([{ "begins": "start", "steps": [
        { "call": [{ "name": "slow", "id": "a" }, { "name": "slow", "id": "b" }] },
        { "cancel": ["a", "unknown"] }, { "cancel": "all" }, { "say": "Never mind." },
    ] }]));
    let mut client = Client::open(&simulator, &setup()).await;
    let frames = client.turn().await;
    assert_eq!(
        story(&frames)[1..5],
        ["call slow", "call slow", "cancel [\"a\",\"unknown\"]", "cancel [\"b\"]"]
    );
    client.answer("a", "slow", json!({})).await;
    client.close().await;
    let report = simulator.report();
    assert_eq!(report.faults, Vec::<String>::new(), "an answer may meet its cancellation on the way");
    assert!(report.calls.iter().all(|call| call.was_cancelled));
}

#[tokio::test(start_paused = true)]
async fn the_end_of_a_turn_carries_what_the_scenario_says() {
    let simulator = playing(&json!([
        { "begins": "start", "end": { "turnCompleteReason": "NEED_MORE_INPUT", "interactionStatus": "IN_PROGRESS" } },
        { "begins": "start", "steps": [{ "resumable": false }], "end": "never" },
    ]));
    let mut client = Client::open(&simulator, &setup()).await;
    let frames = client.turn().await;
    let end = frames.iter().find(|frame| frame.pointer("/serverContent/turnComplete").is_some()).unwrap();
    assert_eq!(end["serverContent"]["interactionStatus"], "IN_PROGRESS");
    assert!(end["usageMetadata"]["totalTokenCount"].is_u64());
    assert_eq!(story(&client.until("/sessionResumptionUpdate").await), ["no handle"]);
    assert_eq!(story(&client.until("/sessionResumptionUpdate").await), ["no handle"]);
    client.receives_nothing().await;
}

#[tokio::test(start_paused = true)]
async fn audio_is_sent_faster_than_it_is_played_and_a_turn_ends_after_playback() {
    let simulator = playing(&json!({ "audio": { "partMs": 40, "partsPerFrame": 3, "speed": 4 }, "turns": [
        { "begins": "start", "steps": [{ "say": "One two three four five six seven eight nine ten." }] } ] }));
    let mut client = Client::open(&simulator, &setup()).await;
    let begun = Instant::now();
    let frames = client.until("/serverContent/generationComplete").await;
    let (sent, length) = (begun.elapsed(), super::client::samples(&frames).len() as f64 / 24_000.0);
    assert!(frames.iter().any(|frame| {
        frame.pointer("/serverContent/modelTurn/parts").is_some_and(|it| it.as_array().unwrap().len() == 3)
    }));
    assert!((sent.as_secs_f64() - length / 4.0).abs() < 0.2, "{length} s went out in {sent:?}");
    client.until("/serverContent/turnComplete").await;
    let heard = begun.elapsed().abs_diff(Duration::from_secs_f64(length));
    assert!(heard < Duration::from_millis(10), "{heard:?}");
}
