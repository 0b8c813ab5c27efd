//! Frames that are sent after the setup.

use base64_simd::STANDARD;
use quarterdeck_contracts::{Audio, LiveResult, LiveSetup, LiveTurn, Outcome, Speaker};
use serde_json::{Value, json};

use super::profile::{Content, Profile};
use crate::live::ProviderSocket;

const BEFORE_AUDIO: &[u8] = br#"{"realtimeInput":{"audio":{"data":""#;
const AFTER_AUDIO: &[u8] = br#"","mimeType":"audio/pcm;rate=16000"}}}"#;

/// Queues audio, without a copy of its own.
pub(super) fn send_audio(socket: &mut ProviderSocket, audio: &Audio<'_>) {
    let frame = BEFORE_AUDIO.len() + AFTER_AUDIO.len();
    match audio {
        Audio::Pcm(bytes) => socket.send_audio(frame + STANDARD.encoded_length(bytes.len()), |out| {
            out.extend_from_slice(BEFORE_AUDIO);
            STANDARD.encode_append(bytes, out);
            out.extend_from_slice(AFTER_AUDIO);
        }),
        Audio::Base64(text) => socket.send_audio(frame + text.len(), |out| {
            out.extend_from_slice(BEFORE_AUDIO);
            out.extend_from_slice(text.as_bytes());
            out.extend_from_slice(AFTER_AUDIO);
        }),
    }
}

pub(super) fn audio_ended() -> Value {
    json!({ "realtimeInput": { "audioStreamEnd": true } })
}

pub(super) fn activity_start() -> Value {
    json!({ "realtimeInput": { "activityStart": {} } })
}

pub(super) fn activity_end() -> Value {
    json!({ "realtimeInput": { "activityEnd": {} } })
}

/// A text of the user, or a note for the model.
pub(super) fn text(profile: &Profile, text: &str, asks: bool) -> Value {
    match profile.content {
        Content::AllSession => client_content(&[content("user", text)], asks),
        Content::InitialHistory => json!({ "realtimeInput": { "text": text } }),
    }
}

/// Interrupts the model, where the family has a way to.
pub(super) fn interruption(profile: &Profile) -> Option<Value> {
    match profile.content {
        Content::AllSession => Some(json!({ "clientContent": { "turnComplete": false } })),
        Content::InitialHistory => None,
    }
}

/// Earlier turns, sent right after the setup.
pub(super) fn history(profile: &Profile, opening: &LiveSetup) -> Vec<Value> {
    let turns = |turns: &[LiveTurn]| -> Vec<Value> {
        turns.iter().map(|turn| content(role(turn.by), &turn.text)).collect()
    };
    match (profile.content, opening.history.as_slice()) {
        (_, []) => Vec::new(),
        (Content::AllSession, history) => vec![client_content(&turns(history), opening.asks)],
        // History needs no reply there, and `turnComplete` only ends it. So the question is sent after it.
        (Content::InitialHistory, [before @ .., LiveTurn { by: Speaker::User, text }]) if opening.asks => {
            vec![client_content(&turns(before), true), json!({ "realtimeInput": { "text": text } })]
        }
        (Content::InitialHistory, history) => vec![client_content(&turns(history), true)],
    }
}

pub(super) fn result(profile: &Profile, result: &LiveResult<'_>) -> Value {
    let response = match &result.response.outcome {
        Outcome::Success(data) => json!({ "output": data }),
        Outcome::Failure(error) => json!({ "error": error.for_model() }),
    };
    let mut answer = json!({ "name": result.name, "response": response });
    // A call that came without an id is known by its name; an id that was never given would match no call.
    if let Some(id) = result.id {
        answer["id"] = id.into();
    }
    if let Some(scheduling) = profile.scheduling(result.is_silent) {
        answer["scheduling"] = scheduling.into();
    }
    json!({ "toolResponse": { "functionResponses": [answer] } })
}

fn client_content(turns: &[Value], asks: bool) -> Value {
    if turns.is_empty() {
        return json!({ "clientContent": { "turnComplete": asks } });
    }
    json!({ "clientContent": { "turns": turns, "turnComplete": asks } })
}

fn content(role: &str, text: &str) -> Value {
    json!({ "parts": [{ "text": text }], "role": role })
}

fn role(speaker: Speaker) -> &'static str {
    match speaker {
        Speaker::User => "user",
        Speaker::Model => "model",
    }
}
