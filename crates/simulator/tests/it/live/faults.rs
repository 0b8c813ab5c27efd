//! What a client must not do.

use serde_json::{Value, json};

use super::client::{Client, End, playing, setup};

fn answers(answers: Value) -> Value {
    json!({ "toolResponse": { "functionResponses": answers } })
}

/// What the report complains about when these frames are sent while a call is open, and how it ends.
async fn complaints(frames: &[Value]) -> (Vec<String>, Option<End>) {
    let simulator = playing(&json!([
        { "begins": "start", "steps": [{ "call": { "name": "book", "id": "a" } }] },
        { "begins": "speech" },
    ]));
    let mut client = Client::open(&simulator, &setup()).await;
    client.until("/toolCall").await;
    for frame in frames {
        client.send(frame).await;
    }
    let over = tokio::time::timeout(std::time::Duration::from_secs(5), client.end()).await.ok();
    match over {
        Some(_) => client.ended().await,
        None => client.close().await,
    };
    (simulator.report().faults, over)
}

#[tokio::test(start_paused = true)]
async fn an_answer_is_given_once_to_a_call_that_was_made() {
    let good = json!({ "id": "a", "name": "book", "response": { "output": 1 } });
    assert_eq!(complaints(&[answers(json!([good]))]).await, (vec![], None));
    for (frames, fault) in [
        (vec![], "the call to “book” (a) has no answer"),
        (vec![answers(json!([good, good]))], "there is a second answer to “a”"),
        (vec![answers(json!([good])), answers(json!([good]))], "there is a second answer to “a”"),
        (
            vec![answers(json!([{ "id": "a", "name": "cook", "response": {} }]))],
            "the answer to “a” does not carry the name of the call, “book”",
        ),
        (
            vec![answers(json!([{ "id": "a", "name": "book", "response": [1] }]))],
            "the response to “a” is no object",
        ),
        (vec![answers(json!([{ "id": "a", "name": "book" }]))], "the response to “a” is no object"),
    ] {
        assert_eq!(complaints(&frames).await, (vec![format!("connection 1: {fault}")], None), "{frames:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn frames_that_the_provider_rejects_end_the_connection() {
    let unasked = "there is an answer to “b”, which this connection has not asked for";
    for (frame, fault) in [
        (answers(json!([{ "id": "b", "name": "book", "response": {} }])), unasked),
        (
            answers(json!([{ "name": "book", "response": {} }])),
            "there is an answer to “book” without id, which this connection has not asked for",
        ),
        (answers(json!([])), "toolResponse has no functionResponses"),
        (json!({}), "a frame has 0 top-level keys instead of one ()"),
        (
            json!({ "realtimeInput": {}, "clientContent": {} }),
            "a frame has 2 top-level keys instead of one (“realtimeInput”, “clientContent”)",
        ),
        (json!({ "audio": {} }), "a frame has the unknown key “audio”"),
        (json!({ "realtimeInput": { "sound": {} } }), "realtimeInput has the unknown key “sound”"),
        (setup(), "there is a second setup"),
        (
            json!({ "realtimeInput": { "activityStart": {} } }),
            "activityStart and activityEnd are for detection of speech that is switched off",
        ),
        (
            json!({ "realtimeInput": { "audio": { "data": "AQID", "mimeType": "audio/pcm" } } }),
            "a piece of audio ends in the middle of a sample",
        ),
    ] {
        let (faults, over) = complaints(std::slice::from_ref(&frame)).await;
        assert_eq!(faults, [format!("connection 1: {fault}")], "{frame}");
        assert!(matches!(over, Some(End::Closed(1007, _))), "{frame}: {over:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn input_that_no_turn_waits_for_is_a_fault() {
    let simulator =
        playing(&json!([{ "begins": "text", "containing": "weather", "steps": [{ "say": "Rain." }] }]));
    let mut client = Client::open(&simulator, &setup()).await;
    client.speak(500).await;
    client.text("hello").await;
    client.receives_nothing().await;
    client.text("the weather").await;
    client.turn().await;
    client.text("after the last turn").await;
    client.receives_nothing().await;
    assert_eq!(
        simulator.report().faults,
        [
            "connection 1: speech begins no turn: turn 1 waits for text containing “weather”",
            "connection 1: text begins no turn: turn 1 waits for text containing “weather”",
        ]
    );
}

#[tokio::test(start_paused = true)]
async fn a_frame_that_is_too_large_is_not_read() {
    let simulator = playing(&json!([{ "begins": "start", "steps": [{ "say": "Hello." }] }]));
    let mut client = Client::open(&simulator, &setup()).await;
    client.text(&"x".repeat(5 << 20)).await;
    assert!(matches!(client.end().await, End::Closed(1009, _)));
}
