//! A conversation: responses, calls, and faults of the client. It does no I/O: what is to be sent is appended to `out`.

use std::collections::VecDeque;

use serde_json::{Value, json};

use super::events::error;
use super::report::{CallReport, MAX_ENTRIES};
use super::response::Response;
use super::{Answer, Answers, SharedReport};
use crate::speech_detector::{SpeechDetector, SpeechEvent};

const SAMPLE_RATE: u32 = 24_000;
const SAMPLES_PER_MILLISECOND: usize = 24;

pub(super) struct Conversation {
    answers: Answers,
    answers_given: usize,
    /// The last text of the client.
    last_text: String,
    report: SharedReport,
    speech_detector: SpeechDetector,
    /// Samples since the last commit.
    uncommitted: usize,
    is_configured: bool,
    response: Option<Response>,
    /// The last item with audio, and its samples.
    spoken: Option<(String, usize)>,
    calls: Vec<Call>,
    ids_issued: usize,
    pub(super) out: VecDeque<Value>,
}

struct Call {
    id: String,
    then: String,
    stage: Stage,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Stage {
    Pending,
    Answered,
    Reported,
}

impl Conversation {
    pub(super) fn new(answers: Answers, report: SharedReport) -> Self {
        let created = json!({ "type": "session.created", "session": { "type": "realtime", "tools": [] } });
        Self {
            answers,
            answers_given: 0,
            last_text: String::new(),
            report,
            speech_detector: SpeechDetector::new(None),
            uncommitted: 0,
            is_configured: false,
            response: None,
            spoken: None,
            calls: Vec::new(),
            ids_issued: 0,
            out: VecDeque::from([created]),
        }
    }

    pub(super) fn is_speaking(&self) -> bool {
        self.response.is_some()
    }

    /// Emits the next event of the active response.
    pub(super) fn advance(&mut self) {
        let Some(response) = &mut self.response else { return };
        match response.next_event() {
            Some(event) => {
                if response.samples > 0 {
                    self.spoken = Some((response.item.clone(), response.samples));
                }
                let is_last = event["type"] == "response.done";
                self.out.push_back(event);
                if is_last {
                    self.response = None;
                }
            }
            None => self.response = None,
        }
    }

    pub(super) fn handle_event(&mut self, event: &Value) {
        let kind = event["type"].as_str().unwrap_or_default();
        if !self.is_configured && kind != "session.update" {
            self.report.fault(format!("{kind} before the session was configured"));
        }
        match kind {
            "session.update" => self.configure(&event["session"]),
            "input_audio_buffer.append" => self.listen(event["audio"].as_str().unwrap_or_default()),
            "input_audio_buffer.commit" if self.uncommitted > 0 => self.commit(),
            "input_audio_buffer.commit" => self.refuse("input_audio_buffer_commit_empty", "nothing was said"),
            "conversation.item.create" => self.add(&event["item"]),
            "conversation.item.truncate" => self.truncate(event),
            "response.create" => self.respond(),
            "response.cancel" => match self.response.is_some() {
                true => self.cancel("client_cancelled"),
                // It may have ended in the meantime.
                false => self.out.push_back(error("response_cancel_not_active", "no response is running")),
            },
            other => self.refuse("invalid_event", &format!("an event that is not known: {other}")),
        }
    }

    fn refuse(&mut self, code: &str, what: &str) {
        self.report.fault(format!("{code}: {what}"));
        self.out.push_back(error(code, what));
    }

    fn configure(&mut self, session: &Value) {
        let tools = session["tools"].as_array().map(Vec::as_slice).unwrap_or_default();
        let is_flat = |tool: &Value| tool["type"] == "function" && tool["name"].is_string();
        let formats = ["/audio/input/format/rate", "/audio/output/format/rate"];
        if session["type"] != "realtime" {
            self.refuse("missing_required_parameter", "a session has a type");
        } else if !tools.iter().all(is_flat) {
            self.refuse("invalid_value", "a tool has its name beside its type");
        } else if formats.iter().any(|at| session.pointer(at).is_some_and(|rate| *rate != 24_000)) {
            self.refuse("invalid_value", "audio has 24000 samples in a second");
        } else {
            self.is_configured = true;
            self.out.push_back(json!({ "type": "session.updated", "session": session }));
        }
    }

    fn listen(&mut self, audio: &str) {
        let Ok(pcm) = base64_simd::STANDARD.decode_to_vec(audio) else {
            return self.refuse("invalid_value", "audio is base64");
        };
        let samples: Vec<_> = pcm.as_chunks().0.iter().map(|sample| i16::from_le_bytes(*sample)).collect();
        self.uncommitted += samples.len();
        for event in self.speech_detector.process(&samples, SAMPLE_RATE) {
            match event {
                SpeechEvent::Started(_) => self.speech_started(),
                SpeechEvent::Ended { .. } => {
                    let stopped = json!({ "type": "input_audio_buffer.speech_stopped", "audio_end_ms": 0 });
                    self.out.push_back(stopped);
                    self.commit();
                    self.answer();
                }
            }
        }
    }

    fn speech_started(&mut self) {
        self.report.lock().heard += 1;
        self.out.push_back(json!({ "type": "input_audio_buffer.speech_started", "audio_start_ms": 0 }));
        if self.response.is_some() {
            self.cancel("turn_detected");
        }
    }

    fn commit(&mut self) {
        // The client may commit in the middle of speech.
        self.speech_detector.end_stream();
        self.uncommitted = 0;
        let item = self.id("item");
        self.out.push_back(json!({ "type": "input_audio_buffer.committed", "item_id": item }));
        let transcript = json!({
            "type": "conversation.item.input_audio_transcription.completed", "item_id": item,
            "content_index": 0, "transcript": "(something was said)",
        });
        self.out.push_back(transcript);
    }

    fn add(&mut self, item: &Value) {
        match item["type"].as_str().unwrap_or_default() {
            "message" => {
                let texts = item["content"].as_array().into_iter().flatten();
                let texts: String = texts.filter_map(|part| part["text"].as_str()).collect();
                let mut report = self.report.lock();
                self.last_text.clone_from(&texts);
                if report.read.len() < MAX_ENTRIES {
                    report.read.push(texts);
                }
            }
            "function_call_output" => self.take_output(item),
            other => self.refuse("invalid_value", &format!("an item that is not known: {other}")),
        }
    }

    /// A call gets one output, and it is a text.
    fn take_output(&mut self, item: &Value) {
        let id = item["call_id"].as_str().unwrap_or_default();
        let Some(output) = item["output"].as_str() else {
            return self.refuse("invalid_type", "an output is a text");
        };
        let Some(call) = self.calls.iter_mut().find(|call| call.id == id) else {
            return self.refuse("invalid_tool_call_id", "a result of a call that was not made");
        };
        let is_first = call.stage == Stage::Pending;
        if is_first {
            call.stage = Stage::Answered;
        } else {
            self.report.fault(format!("a second result of {id}"));
        }
        let mut report = self.report.lock();
        let call = report.calls.iter_mut().find(|call| call.id == id);
        if let Some(call) = call.filter(|call| call.outputs.len() < MAX_ENTRIES) {
            call.outputs.push(output.to_owned());
        }
    }

    fn truncate(&mut self, event: &Value) {
        let end = event["audio_end_ms"].as_u64().unwrap_or(u64::MAX);
        let is_within = self.spoken.as_ref().is_some_and(|(item, samples)| {
            event["item_id"] == **item && end <= (samples / SAMPLES_PER_MILLISECOND) as u64
        });
        if !is_within {
            return self.refuse("invalid_value", "an answer is cut where it is not");
        }
        let mut report = self.report.lock();
        if report.truncated.len() < MAX_ENTRIES {
            report.truncated.push(end);
        }
        drop(report);
        self.out.push_back(json!({ "type": "conversation.item.truncated", "audio_end_ms": end }));
    }

    fn respond(&mut self) {
        if self.response.is_some() {
            let what = "Conversation already has an active response";
            self.out.push_back(error("conversation_already_has_active_response", what));
            return;
        }
        if self.calls.iter().any(|call| call.stage == Stage::Pending) {
            self.report.fault("a response was asked for while a call waits for its result");
        }
        self.answer();
    }

    /// Speaks about the next output that was not reported, or gives the next answer.
    fn answer(&mut self) {
        let (id, item) = (self.id("resp"), self.id("item"));
        let open = self.calls.iter_mut().find(|call| call.stage == Stage::Answered);
        let response = if let Some(call) = open {
            call.stage = Stage::Reported;
            Response::say(id, item, &call.then)
        } else {
            match self.next_answer() {
                None => Response::say(id, item, "I have nothing more to say."),
                Some(Answer::Say(text)) => Response::say(id, item, &text),
                Some(Answer::Call { name, arguments, then }) => {
                    let call = self.id("call");
                    let report = CallReport { id: call.clone(), name: name.clone(), outputs: Vec::new() };
                    self.report.lock().calls.push(report);
                    self.calls.push(Call { id: call.clone(), then: then.clone(), stage: Stage::Pending });
                    Response::call(id, item, &call, &name, &arguments.to_string())
                }
            }
        };
        let created = json!({ "id": response.id, "object": "realtime.response", "status": "in_progress" });
        self.out.push_back(json!({ "type": "response.created", "response": created }));
        self.response = Some(response);
    }

    fn next_answer(&mut self) -> Option<Answer> {
        self.answers_given += 1;
        match &self.answers {
            Answers::InOrder(answers) => answers.get(self.answers_given - 1).cloned(),
            Answers::ByKeyword(answers) => {
                let fitting = answers.iter().find(|(words, _)| self.last_text.contains(words.as_str()));
                fitting.map(|(_, answer)| answer.clone())
            }
        }
    }

    fn cancel(&mut self, reason: &str) {
        if let Some(response) = self.response.take() {
            self.report.lock().cancelled += 1;
            self.out.extend(response.cancelled(reason));
        }
    }

    fn id(&mut self, kind: &str) -> String {
        self.ids_issued += 1;
        format!("{kind}_{}", self.ids_issued)
    }
}

#[cfg(test)]
mod tests;
