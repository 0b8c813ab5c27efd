//! What a page says: its messages, understood or refused in words.

use std::borrow::Cow;

use quarterdeck_contracts::{Audio, parse_json};
use serde::Deserialize;

use crate::input;

/// The longest text that is taken, in characters. Who speaks does not write essays, and the model must answer aloud.
const LONGEST_TEXT: usize = 4_000;
/// How deep JSON may nest. No message of ours nests at all.
const DEEPEST: usize = 8;
/// How long an explanation may get that quotes what was sent.
const LONGEST_FAULT: usize = 300;
/// What pages send fifty times a second when they cannot send bytes, letter by letter.
/// Audio in base64, in the spelling that is found without a parser and that we write ourselves.
pub(super) const AUDIO_HEAD: &str = r#"{"type":"audio","data":""#;
pub(super) const AUDIO_TAIL: &str = r#""}"#;

/// A message of the page.
#[derive(Debug, PartialEq)]
pub(super) enum Said<'a> {
    Start(Box<Start>),
    Audio(Audio<'a>),
    Text(Cow<'a, str>),
    Confirm {
        token: Cow<'a, str>,
        approve: bool,
    },
    Drained,
    Interrupt,
    Stop,
    Ping,
    /// Audio without a sample in it.
    Nothing,
}

/// What a page begins with.
#[derive(Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Start {
    pub(super) session_id: Option<String>,
    pub(super) resume_token: Option<String>,
    pub(super) pending_request: Option<String>,
    #[serde(default)]
    pub(super) audio: Form,
    pub(super) time_zone: Option<String>,
    pub(super) locale: Option<String>,
}

/// In which form a page takes audio.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum Form {
    #[default]
    Binary,
    Base64,
}

/// A message as JSON has it.
#[derive(Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
enum Json {
    Start(Box<Start>),
    Audio { data: String },
    Text { text: String },
    Confirm { token: String, approve: bool },
    Playback { state: Playback },
    Interrupt,
    Stop,
    Ping,
}

#[derive(Deserialize)]
#[serde(rename_all = "snake_case")]
enum Playback {
    Drained,
}

/// Understands bytes, which are audio.
pub(super) fn pcm(bytes: &[u8]) -> Result<Said<'_>, String> {
    match bytes.len() {
        0 => Ok(Said::Nothing),
        length if length % 2 == 1 => Err(odd(length)),
        _ => Ok(Said::Audio(Audio::Pcm(bytes.into()))),
    }
}

/// Understands a text.
pub(super) fn text(text: &str) -> Result<Said<'_>, String> {
    match compact(text) {
        Some(said) => Ok(said),
        None => thorough(text),
    }
}

/// Audio in exactly the form in which pages write it, without a parser. Whatever else it may be is for [`thorough`].
fn compact(text: &str) -> Option<Said<'_>> {
    let data = text.strip_prefix(AUDIO_HEAD)?.strip_suffix(AUDIO_TAIL)?;
    base64(data.into()).ok()
}

fn thorough(text: &str) -> Result<Said<'_>, String> {
    // A list would be taken for the fields in their order.
    if !text.trim_start().starts_with('{') {
        return Err("A message is a JSON object with a `type`, or bytes, which are audio.".into());
    }
    if input::depth(text.as_bytes()) > DEEPEST {
        return Err(format!("The JSON is nested too deeply; {DEEPEST} levels are the most."));
    }
    let json = parse_json(text).map_err(|fault| not_understood(&fault))?;
    Ok(match serde_json::from_value(json).map_err(|fault| not_understood(&fault))? {
        Json::Start(start) => Said::Start(start),
        Json::Audio { data } => base64(data.into())?,
        Json::Text { text } => Said::Text(checked(text.into())?),
        Json::Confirm { token, approve } => Said::Confirm { token: token.into(), approve },
        Json::Playback { state: Playback::Drained } => Said::Drained,
        Json::Interrupt => Said::Interrupt,
        Json::Stop => Said::Stop,
        Json::Ping => Said::Ping,
    })
}

fn not_understood(fault: &dyn std::error::Error) -> String {
    let mut fault = fault.to_string();
    fault.truncate(fault.floor_char_boundary(LONGEST_FAULT));
    format!("The message is not understood: {fault}.")
}

fn base64(data: Cow<'_, str>) -> Result<Said<'_>, String> {
    let bytes = data.as_bytes();
    let length = base64_simd::STANDARD.decoded_length(bytes);
    match (length, base64_simd::STANDARD.check(bytes)) {
        (Ok(0), Ok(())) => Ok(Said::Nothing),
        (Ok(length), Ok(())) if length % 2 == 1 => Err(odd(length)),
        (Ok(_), Ok(())) => Ok(Said::Audio(Audio::Base64(data))),
        _ => Err("The `data` of `audio` is not base64 with its padding.".into()),
    }
}

fn odd(length: usize) -> String {
    format!("Audio is PCM of 16 bits, two bytes to a sample, and {length} bytes are half a sample too many.")
}

fn checked(text: Cow<'_, str>) -> Result<Cow<'_, str>, String> {
    if text.trim().is_empty() {
        return Err("The text is empty.".into());
    }
    // Characters are at least a byte each, and most texts need not be counted.
    if text.len() > LONGEST_TEXT && text.chars().count() > LONGEST_TEXT {
        return Err(format!("The text is too long; {LONGEST_TEXT} characters are the most."));
    }
    Ok(text)
}

#[cfg(test)]
mod tests;
