//! Whatever a client sends, and in whatever order: nothing panics, and every connection ends.

use std::sync::Arc;
use std::time::Duration;

use proptest::prelude::*;
use proptest::sample::select;
use quarterdeck_rehearsal::Rehearsal;
use quarterdeck_simulator::live::LiveSimulator;
use serde_json::{Value, json};

use super::client::{Client, PATH, playing, setup};

/// A scenario with a bit of everything.
fn everything() -> LiveSimulator {
    playing(&json!({ "atEnd": "again", "turns": [
        { "begins": "anything", "steps": [
            { "call": [{ "name": "slow", "id": "a" }, { "name": "slow", "id": null }] }, { "say": "One two three." } ] },
        { "begins": "answers", "interruption": "cancel", "steps": [
            { "say": "Four five." }, { "call": { "name": "book", "id": "b" } }, { "await": "answers", "withinMs": 900 } ] },
        { "begins": "start", "interruption": "ignore", "steps": [
            { "cancel": ["a", "b"] }, { "interrupt": true, "on": 2 }, { "wait": 300 }, { "resumable": true } ] },
    ] }))
}

fn frames() -> Vec<Value> {
    let answer = |answer: Value| json!({ "toolResponse": { "functionResponses": [answer] } });
    let content = |role: &str, is_complete: bool| {
        let turns = json!([{ "role": role, "parts": [{ "text": "Where is the Fram?" }] }]);
        json!({ "clientContent": { "turns": turns, "turnComplete": is_complete } })
    };
    let loud = base64_simd::STANDARD.encode_to_string([0, 32].repeat(1_600));
    let quiet = base64_simd::STANDARD.encode_to_string([0, 0].repeat(6_400));
    let audio =
        |data: &str| json!({ "realtimeInput": { "audio": { "data": data, "mimeType": "audio/pcm" } } });
    vec![
        answer(json!({ "id": "a", "name": "slow", "response": { "output": 1 } })),
        answer(json!({ "id": "a", "name": "slow", "response": {}, "scheduling": "INTERRUPT" })),
        answer(json!({ "id": "b", "name": "book", "response": {}, "scheduling": "SILENT" })),
        answer(json!({ "name": "slow", "response": 1, "willContinue": true })),
        answer(json!({ "name": "slow", "response": {}, "scheduling": "SILENT" })),
        content("user", true),
        content("user", false),
        content("model", true),
        json!({ "clientContent": { "turnComplete": true } }),
        json!({ "clientContent": { "turnComplete": false } }),
        json!({ "realtimeInput": { "text": "Hello" } }),
        json!({ "realtimeInput": { "audioStreamEnd": true } }),
        json!({ "realtimeInput": { "video": {} } }),
        json!({ "contextUpdate": { "tools": { "tools": [] } } }),
        audio(&loud),
        audio(&quiet),
        // Time passes.
        Value::Null,
    ]
}

async fn send(simulator: LiveSimulator, sent: Vec<Value>) {
    for _ in 0..2 {
        let mut client = Client::connect(&simulator, PATH).await;
        client.send(&setup()).await;
        for frame in &sent {
            match frame {
                Value::Null => tokio::time::sleep(Duration::from_millis(700)).await,
                frame => client.send(frame).await,
            }
        }
        let quiet = Duration::from_secs(20);
        while matches!(tokio::time::timeout(quiet, client.receive()).await, Ok(Ok(_))) {}
        // A panic of the server would show here.
        client.disconnect().await;
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 200, ..ProptestConfig::default() })]
    #[test]
    fn no_order_of_frames_is_too_much(sent in prop::collection::vec(select(frames()), 0..14), answers in any::<bool>()) {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_time().start_paused(true).build().unwrap();
        let simulator = match answers {
            true => LiveSimulator::from_chat_model(Arc::new(Rehearsal::new())),
            false => everything(),
        };
        runtime.block_on(send(simulator, sent));
    }

    #[test]
    fn no_frame_is_too_strange(key in "setup|realtimeInput|clientContent|toolResponse|contextUpdate|x", inner in strange()) {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_time().start_paused(true).build().unwrap();
        runtime.block_on(async {
            let mut client = Client::connect(&everything(), PATH).await;
            client.send(&json!({ key.as_str(): inner.clone() })).await;
            client.disconnect().await;
            send(everything(), vec![json!({ key: inner })]).await;
        });
    }
}

/// Values with the names that mean something, in places where they do not.
fn strange() -> impl Strategy<Value = Value> {
    let leaf = select(vec![
        json!(null),
        json!(true),
        json!(-1),
        json!(1e300),
        json!("models/m"),
        json!("audio/pcm;rate=0"),
        json!("AAA"),
        json!([]),
        json!({}),
    ]);
    let names = select(vec![
        "model",
        "tools",
        "functionDeclarations",
        "name",
        "parameters",
        "audio",
        "data",
        "mimeType",
        "turns",
        "parts",
        "text",
        "role",
        "turnComplete",
        "functionResponses",
        "id",
        "response",
        "generationConfig",
        "responseModalities",
        "sessionResumption",
        "handle",
        "mediaChunks",
        "systemInstruction",
        "scheduling",
        "realtimeInputConfig",
        "automaticActivityDetection",
        "silenceDurationMs",
        "behavior",
    ]);
    leaf.prop_recursive(4, 24, 4, move |inner| {
        let fields = prop::collection::vec((names.clone(), inner.clone()), 0..4);
        prop_oneof![
            fields.prop_map(|fields| fields
                .into_iter()
                .map(|(name, value)| (name.to_owned(), value))
                .collect()),
            prop::collection::vec(inner, 0..3).prop_map(Value::Array),
        ]
    })
}
