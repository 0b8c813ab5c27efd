//! Frames of the provider.

use std::time::Duration;

use quarterdeck_contracts::estimate_tokens;
use serde_json::{Map, Value, json};

use super::sound::SAMPLE_RATE;

pub(super) fn setup_complete(connection: usize) -> Value {
    json!({ "setupComplete": { "sessionId": format!("simulated-{connection}") } })
}

/// Parts of audio, words of the transcript, or both.
pub(super) fn speech(parts: &[&[i16]], words: &str) -> Value {
    let mut content = Map::new();
    if !parts.is_empty() {
        let parts: Vec<_> = parts.iter().map(|samples| audio(samples)).collect();
        content.insert("modelTurn".into(), json!({ "role": "model", "parts": parts }));
    }
    if !words.is_empty() {
        content.insert("outputTranscription".into(), json!({ "text": words }));
    }
    json!({ "serverContent": content })
}

fn audio(samples: &[i16]) -> Value {
    let bytes: Vec<u8> = samples.iter().flat_map(|sample| sample.to_le_bytes()).collect();
    let data = base64_simd::STANDARD.encode_to_string(bytes);
    json!({ "inlineData": { "mimeType": format!("audio/pcm;rate={SAMPLE_RATE}"), "data": data } })
}

pub(super) fn text(text: &str) -> Value {
    json!({ "serverContent": { "modelTurn": { "role": "model", "parts": [{ "text": text }] } } })
}

pub(super) fn thought(text: &str) -> Value {
    json!({ "serverContent": { "modelTurn": { "role": "model", "parts": [{ "text": text, "thought": true }] } } })
}

pub(super) fn input_transcription(text: &str, is_last: bool) -> Value {
    match is_last {
        true => json!({ "serverContent": { "inputTranscription": { "text": text, "finished": true } } }),
        false => json!({ "serverContent": { "inputTranscription": { "text": text } } }),
    }
}

pub(super) fn interrupted() -> Value {
    json!({ "serverContent": { "interrupted": true } })
}

pub(super) fn generation_complete() -> Value {
    json!({ "serverContent": { "generationComplete": true } })
}

/// The end of a turn, with its usage.
pub(super) fn turn_complete(beside: &Map<String, Value>, heard: Duration, said: &str) -> Value {
    let mut content = Map::new();
    content.insert("turnComplete".into(), true.into());
    content.extend(beside.clone());
    // As many tokens as a second of audio is documented to take, and a guess at the answer's.
    let prompt = 25 * heard.as_secs() + 20;
    let response = estimate_tokens(said.chars().count()) as u64;
    json!({ "serverContent": content, "usageMetadata": {
        "promptTokenCount": prompt, "responseTokenCount": response, "totalTokenCount": prompt + response,
        "responseTokensDetails": [{ "modality": "AUDIO", "tokenCount": response }],
    } })
}

pub(super) fn tool_call(calls: &[Value], with: &Map<String, Value>) -> Value {
    let mut frame = Map::new();
    frame.insert("toolCall".into(), json!({ "functionCalls": calls }));
    frame.extend(with.clone());
    Value::Object(frame)
}

pub(super) fn cancellation(ids: &[String]) -> Value {
    json!({ "toolCallCancellation": { "ids": ids } })
}

pub(super) fn go_away(left: Option<Duration>) -> Value {
    match left {
        Some(left) => json!({ "goAway": { "timeLeft": seconds(left) } }),
        None => json!({ "goAway": {} }),
    }
}

/// A handle by which the conversation can be resumed, or that it cannot be for now.
pub(super) fn resumption(handle: Option<&str>) -> Value {
    match handle {
        Some(handle) => json!({ "sessionResumptionUpdate": { "newHandle": handle, "resumable": true } }),
        None => json!({ "sessionResumptionUpdate": {} }),
    }
}

pub(super) fn voice_activity(kind: &str, at: Duration) -> Value {
    json!({ "voiceActivity": { "type": kind, "audioOffset": seconds(at) } })
}

/// A duration as protobuf writes it: `50s`, `9.500s`.
fn seconds(duration: Duration) -> String {
    match duration.subsec_millis() {
        0 => format!("{}s", duration.as_secs()),
        millis => format!("{}.{millis:03}s", duration.as_secs()),
    }
}
