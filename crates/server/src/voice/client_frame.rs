//! Decodes messages of the client.

use std::borrow::Cow;
use std::time::Duration;

use quarterdeck_contracts::{Audio, parse_json};
use serde::Deserialize;

use crate::input;

/// Short, because the model answers aloud.
const MAX_TEXT_CHARS: usize = 4_000;
/// No message of the protocol nests at all.
const MAX_JSON_DEPTH: usize = 8;
/// No call is longer than a day.
const MAX_PLAYED_MS: u64 = 86_400_000;
/// An error message may quote the input.
const MAX_ERROR_BYTES: usize = 300;
/// Audio in base64, exactly as our page writes it fifty times a second; decoded without a JSON parser.
pub(super) const AUDIO_HEAD: &str = r#"{"type":"audio","data":""#;
pub(super) const AUDIO_TAIL: &str = r#""}"#;

/// A decoded message of the client.
#[derive(Debug, PartialEq)]
pub(super) enum ClientFrame<'a> {
    Start(Box<Start>),
    Audio(Audio<'a>),
    Text(Cow<'a, str>),
    Confirm {
        token: Cow<'a, str>,
        approve: bool,
    },
    Played(Duration),
    Drained,
    Interrupt,
    Stop,
    Ping,
    /// Audio without samples.
    Empty,
}

/// The first message of a connection.
#[derive(Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Start {
    pub(super) session_id: Option<String>,
    pub(super) resume_token: Option<String>,
    pub(super) pending_request: Option<String>,
    #[serde(default)]
    pub(super) audio: AudioFormat,
    pub(super) time_zone: Option<String>,
    pub(super) locale: Option<String>,
}

/// How the client receives audio.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum AudioFormat {
    #[default]
    Binary,
    Base64,
}

#[derive(Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
enum JsonMessage {
    Start(Box<Start>),
    Audio { data: String },
    Text { text: String },
    Confirm { token: String, approve: bool },
    Playback(Playback),
    Interrupt,
    Stop,
    Ping,
}

#[derive(Deserialize)]
#[serde(tag = "state", rename_all = "snake_case", rename_all_fields = "camelCase")]
enum Playback {
    /// How much was played since the last `interrupted`, or since `ready`.
    Playing {
        played_ms: u64,
    },
    Drained,
}

pub(super) fn decode_binary(bytes: &[u8]) -> Result<ClientFrame<'_>, String> {
    match bytes.len() {
        0 => Ok(ClientFrame::Empty),
        length if length % 2 == 1 => Err(half_sample(length)),
        _ => Ok(ClientFrame::Audio(Audio::Pcm(bytes.into()))),
    }
}

pub(super) fn decode_text(text: &str) -> Result<ClientFrame<'_>, String> {
    match decode_compact_audio(text) {
        Some(frame) => Ok(frame),
        None => decode_json(text),
    }
}

/// Audio as our page writes it, without a parser. Anything else is left to [`decode_json`].
fn decode_compact_audio(text: &str) -> Option<ClientFrame<'_>> {
    let data = text.strip_prefix(AUDIO_HEAD)?.strip_suffix(AUDIO_TAIL)?;
    decode_base64(data.into()).ok()
}

fn decode_json(text: &str) -> Result<ClientFrame<'_>, String> {
    // serde would read a list as the fields in order.
    if !text.trim_start().starts_with('{') {
        return Err("Send a JSON object with a `type`, or audio as bytes.".into());
    }
    if input::json_depth(text.as_bytes()) > MAX_JSON_DEPTH {
        return Err(format!("The JSON is nested too deeply; use at most {MAX_JSON_DEPTH} levels."));
    }
    let json = parse_json(text).map_err(|error| invalid(&error))?;
    Ok(match serde_json::from_value(json).map_err(|error| invalid(&error))? {
        JsonMessage::Start(start) => ClientFrame::Start(start),
        JsonMessage::Audio { data } => decode_base64(data.into())?,
        JsonMessage::Text { text } => ClientFrame::Text(check_text(text.into())?),
        JsonMessage::Confirm { token, approve } => ClientFrame::Confirm { token: token.into(), approve },
        JsonMessage::Playback(Playback::Playing { played_ms }) => {
            ClientFrame::Played(Duration::from_millis(played_ms.min(MAX_PLAYED_MS)))
        }
        JsonMessage::Playback(Playback::Drained) => ClientFrame::Drained,
        JsonMessage::Interrupt => ClientFrame::Interrupt,
        JsonMessage::Stop => ClientFrame::Stop,
        JsonMessage::Ping => ClientFrame::Ping,
    })
}

fn invalid(error: &dyn std::error::Error) -> String {
    let mut message = error.to_string();
    message.truncate(message.floor_char_boundary(MAX_ERROR_BYTES));
    format!("Invalid message: {message}.")
}

fn decode_base64(data: Cow<'_, str>) -> Result<ClientFrame<'_>, String> {
    let bytes = data.as_bytes();
    let length = base64_simd::STANDARD.decoded_length(bytes);
    match (length, base64_simd::STANDARD.check(bytes)) {
        (Ok(0), Ok(())) => Ok(ClientFrame::Empty),
        (Ok(length), Ok(())) if length % 2 == 1 => Err(half_sample(length)),
        (Ok(_), Ok(())) => Ok(ClientFrame::Audio(Audio::Base64(data))),
        _ => Err("`data` of `audio` is not padded base64.".into()),
    }
}

fn half_sample(length: usize) -> String {
    format!("Audio is 16-bit PCM; {length} bytes are not whole samples.")
}

fn check_text(text: Cow<'_, str>) -> Result<Cow<'_, str>, String> {
    if text.trim().is_empty() {
        return Err("The text is empty.".into());
    }
    // A character has at least one byte, so most texts need no counting.
    if text.len() > MAX_TEXT_CHARS && text.chars().count() > MAX_TEXT_CHARS {
        return Err(format!("The text is too long; send at most {MAX_TEXT_CHARS} characters."));
    }
    Ok(text)
}

#[cfg(test)]
mod tests;
