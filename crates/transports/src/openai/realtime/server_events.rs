//! Reads the events of OpenAI Realtime.
//!
//! Nearly every field is optional, so what is absent or of the wrong type is ignored.

use std::collections::VecDeque;

use quarterdeck_contracts::{LiveEvent, ModelCall, TranscriptPiece, TranscriptStage, Usage};
use serde_json::Value;
use tokio::time::Instant;

use super::calls::Calls;
use super::transcript::Transcript;
use super::turn_taking::{Interruption, TurnTaking};
use crate::fault::one_line;
use crate::live::{audio_from_base64, is_empty};

/// Turns messages into events, and keeps the state of turn-taking. It does no
/// I/O and gets the time from the caller, so that any connection can be replayed.
#[derive(Debug, Default)]
pub struct ServerEvents {
    events: VecDeque<LiveEvent<'static>>,
    pub(super) turn_taking: TurnTaking,
    pub(super) opening: Opening,
    heard: Transcript,
    said: Transcript,
    calls: Calls,
    /// Whether the turn that was completed last goes on.
    more_follows: bool,
    has_warned: bool,
}

#[derive(Debug, Default, PartialEq, Eq)]
pub(super) enum Opening {
    #[default]
    Connecting,
    /// The session has the provider's settings.
    Created,
    /// It has ours.
    Ready,
    /// The provider refuses them.
    Refused(String),
}

impl ServerEvents {
    pub fn next_event(&mut self) -> Option<LiveEvent<'static>> {
        self.events.pop_front()
    }

    /// Whether all events were read.
    pub fn is_empty(&self) -> bool {
        self.events.is_empty()
    }

    pub(super) fn push(&mut self, event: LiveEvent<'static>) {
        self.events.push_back(event);
    }

    /// Takes a message.
    pub fn take(&mut self, message: &[u8], now: Instant) {
        let parsed: Value = match serde_json::from_slice(message) {
            Ok(parsed @ Value::Object(_)) => parsed,
            _ => return self.push(LiveEvent::Warning("a message that is no JSON object".to_owned())),
        };
        match text(&parsed, "type") {
            "session.created" if self.opening == Opening::Connecting => self.opening = Opening::Created,
            "session.updated" => self.opening = Opening::Ready,
            "input_audio_buffer.speech_started" => self.user_started_speaking(now),
            "input_audio_buffer.speech_stopped" | "input_audio_buffer.committed" => {
                self.turn_taking.user_stopped_speaking();
            }
            "conversation.item.input_audio_transcription.delta" => self.input_transcript_delta(&parsed),
            "conversation.item.input_audio_transcription.completed" => {
                self.input_transcript_completed(&parsed)
            }
            "conversation.item.input_audio_transcription.failed" => {
                self.push(LiveEvent::Warning("the user's speech could not be transcribed".to_owned()));
            }
            "response.created" => {
                let id = parsed.pointer("/response/id").and_then(Value::as_str).unwrap_or_default();
                self.turn_taking.response_started(id, !self.more_follows);
                self.calls.clear();
            }
            "response.output_audio.delta" => self.audio(&parsed, now),
            "response.output_audio_transcript.delta" | "response.output_text.delta" => {
                let said = self.said.add(text(&parsed, "item_id"), text(&parsed, "delta"));
                self.output_transcript(said, TranscriptStage::Segment);
            }
            "response.output_audio_transcript.done" => {
                let rest = self.said.rest(text(&parsed, "item_id"), text(&parsed, "transcript"));
                self.output_transcript(rest, TranscriptStage::Final);
            }
            "response.output_item.done" => self.calls.take(&parsed["item"], true),
            "response.done" => self.response_done(&parsed["response"]),
            "error" => self.error(&parsed["error"], now),
            _ => {}
        }
    }

    fn user_started_speaking(&mut self, now: Instant) {
        // The interruption comes before the speech that caused it.
        if let Some(what) = self.turn_taking.user_started_speaking(now) {
            self.push(LiveEvent::Interrupted { end_follows: what == Interruption::Response });
        }
        self.push(LiveEvent::SpeechStarted);
    }

    /// Deltas are interim, since the completed transcript may differ.
    fn input_transcript_delta(&mut self, event: &Value) {
        self.heard.add(text(event, "item_id"), text(event, "delta"));
        let words =
            TranscriptPiece { text: self.heard.whole().to_owned().into(), stage: TranscriptStage::Interim };
        self.push(LiveEvent::InputTranscript(words));
    }

    fn input_transcript_completed(&mut self, event: &Value) {
        self.heard = Transcript::default();
        let words = TranscriptPiece {
            text: text(event, "transcript").to_owned().into(),
            stage: TranscriptStage::Final,
        };
        self.push(LiveEvent::InputTranscript(words));
    }

    /// The transcript of an interrupted response is not emitted.
    fn output_transcript(&mut self, words: String, stage: TranscriptStage) {
        if self.turn_taking.is_audible() && (stage == TranscriptStage::Final || !words.is_empty()) {
            self.push(LiveEvent::OutputTranscript(TranscriptPiece { text: words.into(), stage }));
        }
    }

    fn audio(&mut self, event: &Value, now: Instant) {
        let data = text(event, "delta");
        if data.is_empty() || !self.turn_taking.is_audible() {
            return;
        }
        match audio_from_base64(data.to_owned()) {
            Some(audio) if is_empty(&audio) => {}
            Some(audio) => {
                let content = event["content_index"].as_u64().unwrap_or(0);
                self.turn_taking.playback.add(text(event, "item_id"), content, data.len() / 4 * 3, now);
                self.push(LiveEvent::Audio(audio));
            }
            None if self.has_warned => {}
            None => {
                self.has_warned = true;
                self.push(LiveEvent::Warning("audio that cannot be read".to_owned()));
            }
        }
    }

    fn response_done(&mut self, response: &Value) {
        let status = text(response, "status");
        for item in response["output"].as_array().into_iter().flatten() {
            self.calls.take(item, status == "completed");
        }
        let mut calls: Vec<ModelCall> = self.calls.finish();
        if status == "cancelled" || !self.turn_taking.is_audible() {
            self.turn_taking.cancel_calls(&calls);
            calls.clear();
        }
        let has_calls = !calls.is_empty();
        if has_calls {
            self.push(LiveEvent::Calls(calls));
        }
        self.turn_taking.response_ended();
        self.more_follows = has_calls || self.turn_taking.is_response_requested();
        let is_trouble = matches!(status, "failed" | "incomplete");
        if is_trouble {
            let why = explain(&response["status_details"]);
            self.push(LiveEvent::Warning(format!("a response ended as {status}{why}")));
        } else if status == "completed" && !self.more_follows {
            self.push(LiveEvent::GenerationComplete);
        }
        // An answer that reached its limit counts as one.
        let has_answered = status == "incomplete" && self.turn_taking.playback.has_audio();
        if is_trouble && !self.more_follows && !has_answered {
            self.push(LiveEvent::ResponseFailed);
        }
        self.push(LiveEvent::TurnComplete { more_follows: self.more_follows });
        if let Some(usage) = response.get("usage").filter(|usage| usage.is_object()) {
            let count = |member: &str| usage[member].as_u64().unwrap_or(0);
            let usage = Usage::new(count("input_tokens"), count("output_tokens"));
            self.push(LiveEvent::Usage(usage));
        }
    }

    /// The requested response has not started in time.
    pub(super) fn abandon_response(&mut self) {
        if self.turn_taking.abandon_response() {
            self.unanswered();
        }
    }

    fn unanswered(&mut self) {
        self.more_follows = false;
        self.push(LiveEvent::ResponseFailed);
        self.push(LiveEvent::TurnComplete { more_follows: false });
    }

    fn error(&mut self, error: &Value, now: Instant) {
        let code = match text(error, "code") {
            "" => text(error, "type"),
            code => code,
        };
        let what = one_line(&format!("{code}: {}", text(error, "message")));
        if self.opening != Opening::Ready {
            self.opening = Opening::Refused(what);
            return;
        }
        self.push(LiveEvent::Warning(what));
        if self.turn_taking.refused(code, error["event_id"].as_str(), now) {
            self.unanswered();
        }
    }
}

fn text<'a>(value: &'a Value, member: &str) -> &'a str {
    value.get(member).and_then(Value::as_str).unwrap_or_default()
}

/// Why a response has no proper end, in the provider's words.
fn explain(details: &Value) -> String {
    let words = [&details["reason"], &details["error"]["code"], &details["error"]["message"]];
    let words: Vec<_> = words.into_iter().filter_map(Value::as_str).collect();
    if words.is_empty() { String::new() } else { format!(" ({})", one_line(&words.join(", "))) }
}
