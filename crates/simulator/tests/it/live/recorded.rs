//! What the official clients were recorded to send. Skipped, with a word, where the recordings are not on the machine.

use quarterdeck_testkit::corpus;
use serde_json::{Value, json};

use super::client::{Client, End, PATH, playing};

/// Sends a setup and then a frame. How it ends, if it does.
async fn sent(setup: &Value, frame: Option<&Value>) -> Option<End> {
    let simulator = playing(&json!([{ "begins": "anything", "steps": [{ "say": "Yes." }] }]));
    let mut client = Client::connect(&simulator, PATH).await;
    client.send(setup).await;
    match client.receive().await {
        Ok(first) => assert!(first["setupComplete"].is_object(), "{first}"),
        Err(over) => return Some(over),
    }
    if let Some(frame) = frame {
        client.send(frame).await;
    }
    tokio::time::timeout(std::time::Duration::from_secs(5), client.end()).await.ok()
}

/// A setup under which such a frame may be sent.
fn fitting(frame: &Value) -> Value {
    let realtime = frame.get("realtimeInput").or_else(|| frame.get("realtime_input"));
    let by_hand =
        realtime.is_some_and(|it| it.get("activityStart").or_else(|| it.get("activityEnd")).is_some());
    json!({ "setup": {
        "model": "models/gemini-live-model",
        "realtimeInputConfig": { "automaticActivityDetection": { "disabled": by_hand } },
    } })
}

#[tokio::test(start_paused = true)]
async fn every_recorded_setup_is_taken() {
    let Some(folder) = corpus("wire/gemini-live") else { return };
    let mut count = 0;
    for entry in std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()) {
        let name = entry.file_name().unwrap().to_string_lossy().into_owned();
        if name.starts_with("client-setup-") {
            let setup: Value = serde_json::from_str(&std::fs::read_to_string(&entry).unwrap()).unwrap();
            let over = sent(&setup, None).await;
            // The recorded handle is not one of ours.
            assert_eq!(over.is_some(), name.contains("with-handle"), "{name}: {over:?}");
            count += 1;
        }
    }
    assert!(count >= 10);
}

#[tokio::test(start_paused = true)]
async fn every_recorded_frame_is_understood() {
    for file in ["client-frames.jsonl", "python-sdk-client-frames.jsonl"] {
        let Some(path) = corpus(&format!("wire/gemini-live/{file}")) else { return };
        for line in std::fs::read_to_string(path).unwrap().lines() {
            let recorded: Value = serde_json::from_str(line).unwrap();
            // What the client itself refuses to send has no frame.
            let Some(frame) = recorded.get("frame") else { continue };
            if frame.get("setup").is_some() {
                continue;
            }
            let over = sent(&fitting(frame), Some(frame)).await;
            let answers = frame.get("toolResponse").or_else(|| frame.get("tool_response")).is_some();
            match over {
                None => assert!(!answers, "an answer without a question: {frame}"),
                Some(End::Closed(1007, reason)) => {
                    assert!(answers && reason.contains("has not asked"), "{frame}: {reason}")
                }
                Some(over) => panic!("{frame}: {over:?}"),
            }
        }
    }
}
