//! Reads the messages of Gemini Live.
//!
//! One message may have several parts; all of them are read, calls first. What is unknown or of the wrong type is
//! ignored.

use std::collections::VecDeque;
use std::time::Duration;

use quarterdeck_contracts::{
    Audio, LiveEvent, MAX_CALLS_PER_MESSAGE, ModelCall, TranscriptPiece, TranscriptStage, Usage,
    parse_json_noting_duplicates,
};
use serde_json::{Map, Value};

use crate::arguments::{self, CallEvent};
use crate::live::{Resampler, audio_from_base64, is_empty, pcm};
use crate::reply::{MAX_PARTS, model_call};

/// Of the audio that is emitted, in samples per second.
const RATE: u32 = 24_000;
/// Rates that a voice may have.
const RATES: std::ops::RangeInclusive<u32> = 8_000..=96_000;
/// Longer handles are ignored.
const MAX_HANDLE_BYTES: usize = 16 << 10;

/// Turns messages into events. It does no I/O and has no clock, so that any connection can be replayed.
#[derive(Debug, Default)]
pub struct ServerMessages {
    events: VecDeque<LiveEvent<'static>>,
    is_ready: bool,
    /// Whether there was output in the present turn.
    pub(super) has_answered: bool,
    resampler: Option<Resampler>,
    /// Whether unreadable audio was reported: once is enough.
    has_warned: bool,
}

impl ServerMessages {
    /// Whether the provider has accepted the setup.
    pub fn is_ready(&self) -> bool {
        self.is_ready
    }

    pub fn next_event(&mut self) -> Option<LiveEvent<'static>> {
        self.events.pop_front()
    }

    /// Whether all events were read.
    pub fn is_empty(&self) -> bool {
        self.events.is_empty()
    }

    /// Takes a message, text or bytes.
    pub fn take(&mut self, message: &[u8]) {
        let text = std::str::from_utf8(message).unwrap_or_default();
        let (mut parsed, has_duplicate_keys) = match parse_json_noting_duplicates(text) {
            Ok((Value::Object(parsed), has_duplicate_keys)) => (parsed, has_duplicate_keys),
            // Its content stays out of the warning: it may be users' words.
            _ => return self.warn("a message that is no JSON object".to_owned()),
        };
        self.is_ready |= parsed.get("setupComplete").is_some_and(|complete| !complete.is_null());
        if let Some(mut call) = object(&mut parsed, "toolCall") {
            self.take_calls(&mut call, CallEvent { text, has_duplicate_keys });
        }
        if let Some(ids) = object(&mut parsed, "toolCallCancellation").and_then(|mut c| list(&mut c, "ids")) {
            let ids =
                ids.into_iter().take(MAX_CALLS_PER_MESSAGE).filter_map(|id| id.as_str().map(str::to_owned));
            self.events.push_back(LiveEvent::CallsCancelled(ids.collect()));
        }
        if let Some(content) = object(&mut parsed, "serverContent") {
            self.take_content(content);
        }
        if speaks(&parsed) {
            self.events.push_back(LiveEvent::SpeechStarted);
        }
        if let Some(mut update) = object(&mut parsed, "sessionResumptionUpdate") {
            self.events.push_back(LiveEvent::ResumptionHandle(handle(&mut update)));
        }
        if let Some(away) = object(&mut parsed, "goAway") {
            let left = away.get("timeLeft").and_then(Value::as_str).and_then(duration);
            self.events.push_back(LiveEvent::GoingAway { left });
        }
        if let Some(usage) = object(&mut parsed, "usageMetadata") {
            self.events.push_back(LiveEvent::Usage(read_usage(&usage)));
        }
    }

    fn take_calls(&mut self, call: &mut Map<String, Value>, event: CallEvent<'_>) {
        let Some(calls) = list(call, "functionCalls") else { return };
        let too_many = calls.len() > MAX_CALLS_PER_MESSAGE;
        // A malformed call is emitted too: it gets an error as its result, and the model does not wait for ever.
        let calls = calls.into_iter().take(MAX_CALLS_PER_MESSAGE).map(|call| match call {
            Value::Object(call) => read_call(call, event),
            other => read_call(Map::from_iter([("args".to_owned(), other)]), event),
        });
        let calls: Vec<_> = calls.collect();
        if !calls.is_empty() {
            self.has_answered = true;
            self.events.push_back(LiveEvent::Calls(calls));
        }
        if too_many {
            self.warn(format!("a message with more than {MAX_CALLS_PER_MESSAGE} calls"));
        }
    }

    fn take_content(&mut self, mut content: Map<String, Value>) {
        for (name, is_guess) in [("interimInputTranscription", true), ("inputTranscription", false)] {
            if let Some(words) = object(&mut content, name).and_then(|words| read_words(words, is_guess)) {
                self.events.push_back(LiveEvent::InputTranscript(words));
            }
        }
        if let Some(parts) = object(&mut content, "modelTurn").and_then(|mut turn| list(&mut turn, "parts")) {
            for part in parts.into_iter().take(MAX_PARTS) {
                if let Value::Object(part) = part {
                    self.take_part(part);
                }
            }
        }
        if let Some(words) = object(&mut content, "outputTranscription").and_then(|w| read_words(w, false)) {
            self.has_answered = true;
            self.events.push_back(LiveEvent::OutputTranscript(words));
        }
        let is_set = |name: &str| content.get(name).and_then(Value::as_bool).unwrap_or(false);
        // After the audio of the same message, which is interrupted too.
        if is_set("interrupted") {
            self.events.push_back(LiveEvent::Interrupted { end_follows: true });
        }
        if is_set("generationComplete") {
            self.events.push_back(LiveEvent::GenerationComplete);
        }
        if is_set("turnComplete") {
            let text = |name: &str| content.get(name).and_then(Value::as_str);
            let more_follows = text("interactionStatus").is_some_and(|status| status != "IDLE");
            if let Some(reason) = text("turnCompleteReason").filter(|reason| is_trouble(reason)) {
                let reason = crate::fault::one_line(reason);
                self.events.push_back(LiveEvent::Warning(format!("the turn ended with {reason}")));
                if !self.has_answered && !more_follows {
                    self.events.push_back(LiveEvent::ResponseFailed);
                }
            }
            self.has_answered = false;
            self.events.push_back(LiveEvent::TurnComplete { more_follows });
        }
    }

    fn take_part(&mut self, mut part: Map<String, Value>) {
        if part.get("thought").and_then(Value::as_bool).unwrap_or(false) {
            return;
        }
        if let Some(Value::String(text)) = part.get_mut("text").map(Value::take)
            && !text.is_empty()
        {
            self.events.push_back(LiveEvent::OutputTranscript(TranscriptPiece {
                text: text.into(),
                stage: TranscriptStage::Segment,
            }));
        }
        let Some(mut blob) = object(&mut part, "inlineData") else { return };
        let Some(Value::String(data)) = blob.get_mut("data").map(Value::take) else { return };
        if data.is_empty() {
            return;
        }
        match self.read_audio(blob.get("mimeType").and_then(Value::as_str), data) {
            Some(audio) if is_empty(&audio) => {}
            Some(audio) => {
                self.has_answered = true;
                self.events.push_back(LiveEvent::Audio(audio));
            }
            None if self.has_warned => {}
            None => {
                self.has_warned = true;
                self.warn("audio that cannot be read".to_owned());
            }
        }
    }

    fn read_audio(&mut self, mime_type: Option<&str>, data: String) -> Option<Audio<'static>> {
        let rate = rate(mime_type.unwrap_or("audio/pcm"))?;
        if rate == RATE {
            return audio_from_base64(data);
        }
        let bytes = pcm(&data)?;
        let resampler = self.resampler.take().filter(|resampler| resampler.from() == rate);
        let resampler = self.resampler.insert(resampler.unwrap_or_else(|| Resampler::new(rate, RATE)));
        Some(Audio::Pcm(resampler.take(&bytes).into()))
    }

    fn warn(&mut self, what: String) {
        self.events.push_back(LiveEvent::Warning(what));
    }
}

fn object(members: &mut Map<String, Value>, name: &str) -> Option<Map<String, Value>> {
    match members.get_mut(name).map(Value::take) {
        Some(Value::Object(object)) => Some(object),
        _ => None,
    }
}

fn list(members: &mut Map<String, Value>, name: &str) -> Option<Vec<Value>> {
    match members.get_mut(name).map(Value::take) {
        Some(Value::Array(list)) => Some(list),
        _ => None,
    }
}

fn read_call(mut call: Map<String, Value>, event: CallEvent<'_>) -> ModelCall {
    let mut text = |member: &str| match call.get_mut(member).map(Value::take) {
        Some(Value::String(text)) => text,
        _ => String::new(),
    };
    let (id, name) = (text("id"), text("name"));
    let args = call.get_mut("args").map(Value::take).filter(|args| !args.is_null());
    let args = args.unwrap_or_else(|| Value::Object(Map::new()));
    model_call(id, name, arguments::from_event(args, event))
}

/// A piece of a transcript; nothing if it is empty and not final.
fn read_words(mut words: Map<String, Value>, is_guess: bool) -> Option<TranscriptPiece<'static>> {
    let text = match words.get_mut("text").map(Value::take) {
        Some(Value::String(text)) => text,
        _ => String::new(),
    };
    let is_last = words.get("finished").and_then(Value::as_bool).unwrap_or(false);
    let stage = match (is_guess, is_last) {
        (true, _) => TranscriptStage::Interim,
        (false, true) => TranscriptStage::Final,
        (false, false) => TranscriptStage::Segment,
    };
    (stage == TranscriptStage::Final || !text.is_empty())
        .then(|| TranscriptPiece { text: text.into(), stage })
}

/// Whether speech has started, by either of the two signals.
fn speaks(message: &Map<String, Value>) -> bool {
    let says = |key: &str, member: &str, word: &str| {
        message.get(key).and_then(|value| value.get(member)).is_some_and(|value| value == word)
    };
    says("voiceActivity", "type", "ACTIVITY_START")
        || says("voiceActivityDetectionSignal", "vadSignalType", "VAD_SIGNAL_TYPE_SOS")
}

fn handle(update: &mut Map<String, Value>) -> Option<String> {
    let is_resumable = update.get("resumable").and_then(Value::as_bool).unwrap_or(false);
    match update.get_mut("newHandle").map(Value::take) {
        Some(Value::String(handle))
            if is_resumable && !handle.is_empty() && handle.len() <= MAX_HANDLE_BYTES =>
        {
            Some(handle)
        }
        _ => None,
    }
}

/// A duration as protobuf writes it: seconds, perhaps with a fraction, and an `s`.
fn duration(text: &str) -> Option<Duration> {
    let seconds: f64 = text.strip_suffix('s')?.parse().ok()?;
    Duration::try_from_secs_f64(seconds).ok()
}

/// The rate of a media type that is 16-bit PCM.
fn rate(mime_type: &str) -> Option<u32> {
    let mut pieces = mime_type.split(';').map(str::trim);
    if !pieces.next()?.eq_ignore_ascii_case("audio/pcm") {
        return None;
    }
    let rate = pieces.find_map(|piece| piece.strip_prefix("rate="));
    rate.map_or(Some(RATE), |rate| rate.parse().ok()).filter(|rate| RATES.contains(rate))
}

/// Whether a turn ended abnormally.
fn is_trouble(reason: &str) -> bool {
    !matches!(reason, "" | "NEED_MORE_INPUT" | "TURN_COMPLETE_REASON_UNSPECIFIED")
}

fn read_usage(usage: &Map<String, Value>) -> Usage {
    let count = |member: &str| usage.get(member).and_then(Value::as_u64);
    let sum = |a: Option<u64>, b: Option<u64>| a.unwrap_or(0).saturating_add(b.unwrap_or(0));
    let response = count("responseTokenCount").or_else(|| count("candidatesTokenCount"));
    Usage::new(
        sum(count("promptTokenCount"), count("toolUsePromptTokenCount")),
        sum(response, count("thoughtsTokenCount")),
    )
}
