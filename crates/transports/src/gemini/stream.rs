//! Reads Gemini's replies.
//!
//! Each event is a piece of the reply with whole parts in it. There is no closing event: the reply is complete when
//! the body ends and a reason to end has been given.

use std::collections::VecDeque;

use quarterdeck_contracts::{
    ChatErrorKind, ChatEvent, Finish, MAX_CALLS_PER_MESSAGE, ModelCall, ModelMessage, ModelPart, ModelReply,
    PartContent, Usage, parse_json_noting_duplicates,
};
use serde_json::{Map, Value};

use crate::Fault;
use crate::arguments::{self, CallEvent};
use crate::fault::one_line;
use crate::reply::{Accumulator, MAX_PARTS, Progress, model_call, not_json, too_many_calls, too_many_parts};
use crate::sse::Event;

#[derive(Debug)]
pub struct GeminiReply {
    message: ModelMessage,
    calls: usize,
    finish: Option<Finish>,
    usage: Usage,
}

impl GeminiReply {
    /// An empty reply of the named model.
    pub fn new(name: &str) -> Self {
        let message = ModelMessage { by: name.to_owned(), parts: Vec::new() };
        Self { message, calls: 0, finish: None, usage: Usage::default() }
    }

    fn take_candidate(
        &mut self,
        candidate: &mut Value,
        event: CallEvent<'_>,
        out: &mut VecDeque<ChatEvent>,
    ) -> Result<(), Fault> {
        let parts = candidate.pointer_mut("/content/parts").map(Value::take);
        if let Some(Value::Array(parts)) = parts {
            for part in parts {
                let Value::Object(part) = part else { continue };
                self.take_part(part, event, out)?;
            }
        }
        // A continuation would need another request, which is not made: the reply ends here.
        let goes_on = candidate.get("continuationToken").is_some_and(|token| !token.is_null());
        let reason =
            candidate.get("finishReason").and_then(Value::as_str).filter(|reason| !reason.is_empty());
        if let Some(reason) = reason {
            let message = candidate.get("finishMessage").and_then(Value::as_str);
            self.finish = Some(finish(reason, message));
        }
        if goes_on {
            self.finish = Some(Finish::Length);
        }
        Ok(())
    }

    fn take_part(
        &mut self,
        mut part: Map<String, Value>,
        event: CallEvent<'_>,
        out: &mut VecDeque<ChatEvent>,
    ) -> Result<(), Fault> {
        let content = if let Some(Value::Object(call)) = part.get_mut("functionCall") {
            self.calls += 1;
            if self.calls > MAX_CALLS_PER_MESSAGE {
                return Err(too_many_calls());
            }
            let content = PartContent::Call(take_call(call, event));
            if call.is_empty() {
                part.shift_remove("functionCall");
            }
            content
        } else if let Some(Value::String(text)) = part.get_mut("text") {
            let text = std::mem::take(text);
            part.shift_remove("text");
            let is_thought = part.get("thought").and_then(Value::as_bool).unwrap_or(false);
            if is_thought {
                part.shift_remove("thought");
            }
            hand_on(&text, is_thought, out);
            if is_thought { PartContent::Thought(text) } else { PartContent::Text(text) }
        } else {
            PartContent::Opaque
        };
        let state = (!part.is_empty()).then_some(Value::Object(part));
        self.keep(ModelPart { content, state });
        if self.message.parts.len() > MAX_PARTS { Err(too_many_parts()) } else { Ok(()) }
    }

    /// Joins plain text with plain text. A part with a signature stays a part of its own, even without words.
    fn keep(&mut self, part: ModelPart) {
        let last = self.message.parts.last_mut().filter(|last| last.state.is_none() && part.state.is_none());
        match (last.map(|last| &mut last.content), &part.content) {
            (Some(PartContent::Text(text)), PartContent::Text(more))
            | (Some(PartContent::Thought(text)), PartContent::Thought(more)) => text.push_str(more),
            _ => {
                let is_nothing = match &part.content {
                    PartContent::Text(text) | PartContent::Thought(text) => text.is_empty(),
                    PartContent::Call(_) => false,
                    PartContent::Opaque => true,
                };
                if !is_nothing || part.state.is_some() {
                    self.message.parts.push(part);
                }
            }
        }
    }
}

impl Accumulator for GeminiReply {
    fn take(&mut self, event: Event<'_>, out: &mut VecDeque<ChatEvent>) -> Result<(), Fault> {
        if event.data.trim().is_empty() {
            return Ok(());
        }
        let parsed = parse_json_noting_duplicates(event.data);
        let (mut chunk, has_duplicate_keys) = parsed.map_err(|fault| not_json(&fault))?;
        if chunk.get("error").is_some_and(|error| !error.is_null()) {
            return Err(Fault::mid_stream(&chunk));
        }
        if let Some(usage) = chunk.get("usageMetadata").filter(|usage| usage.is_object()) {
            // A running total: the last one counts.
            self.usage = read_usage(usage);
        }
        let candidates = chunk.get_mut("candidates").and_then(Value::as_array_mut);
        let is_ours = |candidate: &Value| candidate.get("index").and_then(Value::as_u64).unwrap_or(0) == 0;
        let candidate = candidates.and_then(|all| all.iter_mut().find(|candidate| is_ours(candidate)));
        if let Some(candidate) = candidate {
            return self.take_candidate(candidate, CallEvent { text: event.data, has_duplicate_keys }, out);
        }
        match chunk.get("promptFeedback") {
            Some(feedback) => refusal(feedback),
            None => Ok(()),
        }
    }

    fn progress(&self) -> Progress {
        if self.finish.is_some() { Progress::Finished } else { Progress::Incomplete }
    }

    fn finish(self) -> Result<ModelReply, Fault> {
        match self.finish {
            Some(finish) => Ok(ModelReply { message: self.message, finish, usage: self.usage }),
            None => Err(Fault::cut("the answer ended without a finish reason")),
        }
    }
}

fn take_call(call: &mut Map<String, Value>, event: CallEvent<'_>) -> ModelCall {
    let mut text = |member: &str| match call.shift_remove(member) {
        Some(Value::String(text)) => text,
        _ => String::new(),
    };
    let (id, name) = (text("id"), text("name"));
    let args = call.shift_remove("args").filter(|args| !args.is_null());
    let args = args.unwrap_or_else(|| Value::Object(Map::new()));
    model_call(id, name, arguments::from_event(args, event))
}

fn hand_on(text: &str, is_thought: bool, out: &mut VecDeque<ChatEvent>) {
    if text.is_empty() {
        return;
    }
    let text = text.to_owned();
    out.push_back(if is_thought { ChatEvent::Thought(text) } else { ChatEvent::Text(text) });
}

fn refusal(feedback: &Value) -> Result<(), Fault> {
    let Some(reason) = feedback.get("blockReason").and_then(Value::as_str) else { return Ok(()) };
    let message = feedback.get("blockReasonMessage").and_then(Value::as_str);
    let detail = match message {
        Some(message) => format!("the prompt is blocked: {reason} ({})", one_line(message)),
        None => format!("the prompt is blocked: {reason}"),
    };
    Err(Fault::new(ChatErrorKind::Refused, detail))
}

fn finish(reason: &str, message: Option<&str>) -> Finish {
    match reason {
        "STOP" => Finish::Stop,
        "MAX_TOKENS" | "CONTINUATION" => Finish::Length,
        "SAFETY"
        | "RECITATION"
        | "BLOCKLIST"
        | "PROHIBITED_CONTENT"
        | "SPII"
        | "IMAGE_SAFETY"
        | "IMAGE_PROHIBITED_CONTENT"
        | "IMAGE_RECITATION" => Finish::Filtered,
        _ => Finish::Other(match message {
            Some(message) => format!("{reason}: {}", one_line(message)),
            None => reason.to_owned(),
        }),
    }
}

fn read_usage(usage: &Value) -> Usage {
    let count = |member: &str| usage.get(member).and_then(Value::as_u64).unwrap_or(0);
    Usage {
        cached_tokens: count("cachedContentTokenCount"),
        ..Usage::new(
            count("promptTokenCount").saturating_add(count("toolUsePromptTokenCount")),
            count("candidatesTokenCount").saturating_add(count("thoughtsTokenCount")),
        )
    }
}
