//! Events that are sent to OpenAI Realtime.

use base64_simd::STANDARD;
use quarterdeck_contracts::{ErrorType, LiveResult, LiveSetup, Outcome, Speaker};
use serde_json::{Value, json};

use super::OpenAiRealtimeConfig;
use crate::live::ProviderSocket;

const BEFORE_AUDIO: &[u8] = br#"{"type":"input_audio_buffer.append","audio":""#;
const AFTER_AUDIO: &[u8] = br#""}"#;

/// Configures a session. Both ways, audio has 24000 samples in a second.
pub fn session_update(config: &OpenAiRealtimeConfig, opening: &LiveSetup) -> Value {
    let format = json!({ "type": "audio/pcm", "rate": 24_000 });
    let mut input = json!({ "format": format, "turn_detection": config.turn_detection.to_json() });
    if let Some(model) = &config.transcription {
        input["transcription"] = json!({ "model": model });
    }
    if let Some(kind) = &config.noise_reduction {
        input["noise_reduction"] = json!({ "type": kind });
    }
    let mut output = json!({ "format": format, "voice": config.voice });
    if let Some(speed) = config.speed {
        output["speed"] = speed.into();
    }
    let mut session = json!({
        "type": "realtime",
        "model": config.model,
        "instructions": *opening.system,
        "output_modalities": ["audio"],
        "audio": { "input": input, "output": output },
        "tools": opening.tools.iter().map(flat).collect::<Vec<_>>(),
        "tool_choice": "auto",
        "max_output_tokens": config.max_output_tokens.map_or_else(|| "inf".into(), Value::from),
    });
    for (name, value) in &config.extra {
        session[name] = value.clone();
    }
    json!({ "type": "session.update", "session": session })
}

/// A declaration without the nesting of chat completions.
fn flat(tool: &Value) -> Value {
    match tool.get("function").and_then(Value::as_object) {
        None => tool.clone(),
        Some(function) => {
            let mut flat = json!({ "type": "function" });
            for (name, value) in function {
                flat[name] = value.clone();
            }
            flat
        }
    }
}

/// Queues audio, at the provider's rate.
pub(super) fn send_audio(socket: &mut ProviderSocket, pcm: &[u8]) {
    let length = BEFORE_AUDIO.len() + STANDARD.encoded_length(pcm.len()) + AFTER_AUDIO.len();
    socket.send_audio(length, |out| {
        out.extend_from_slice(BEFORE_AUDIO);
        STANDARD.encode_append(pcm, out);
        out.extend_from_slice(AFTER_AUDIO);
    });
}

pub(super) fn message_item(role: Role, text: &str) -> Value {
    let (role, kind) = match role {
        Role::User => ("user", "input_text"),
        Role::Model => ("assistant", "output_text"),
        Role::System => ("system", "input_text"),
    };
    let content = json!([{ "type": kind, "text": text }]);
    create(&json!({ "type": "message", "role": role, "content": content }))
}

fn create(item: &Value) -> Value {
    json!({ "type": "conversation.item.create", "event_id": "item", "item": item })
}

#[derive(Debug, Clone, Copy)]
pub(super) enum Role {
    User,
    Model,
    System,
}

/// Earlier turns.
pub(super) fn history(opening: &LiveSetup) -> Vec<Value> {
    let turn = |by| if by == Speaker::User { Role::User } else { Role::Model };
    opening.history.iter().map(|said| message_item(turn(said.by), &said.text)).collect()
}

/// The result of a call, which is a text here.
pub(super) fn function_output(result: &LiveResult<'_>) -> Value {
    let output = match &result.response.outcome {
        Outcome::Success(data) => data.to_string(),
        Outcome::Failure(error) => json!({ "error": error.for_model() }).to_string(),
    };
    let id = result.id.unwrap_or(result.name);
    create(&json!({ "type": "function_call_output", "call_id": id, "output": output }))
}

/// The output of a call that was cancelled by an interruption.
pub(super) fn cancelled_output(call: &str) -> Value {
    let error = json!({ "error": { "type": ErrorType::Cancelled, "message": "The user has interrupted." } });
    create(&json!({ "type": "function_call_output", "call_id": call, "output": error.to_string() }))
}

/// Events that may be refused have ids, so that one refusal is not taken for another.
pub(super) fn response_create(id: &str) -> Value {
    json!({ "type": "response.create", "event_id": id })
}

pub(super) fn cancel(response: &str) -> Value {
    match response {
        "" => json!({ "type": "response.cancel", "event_id": "cancel" }),
        id => json!({ "type": "response.cancel", "event_id": "cancel", "response_id": id }),
    }
}

pub(super) fn commit() -> Value {
    json!({ "type": "input_audio_buffer.commit", "event_id": "commit" })
}

pub(super) fn truncate(item: &str, content: u64, milliseconds: u64) -> Value {
    json!({
        "type": "conversation.item.truncate",
        "event_id": "truncate",
        "item_id": item,
        "content_index": content,
        "audio_end_ms": milliseconds,
    })
}
