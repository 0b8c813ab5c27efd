//! Reads replies of chat completions.

use std::collections::VecDeque;

use quarterdeck_contracts::{
    ChatEvent, Finish, ModelMessage, ModelPart, ModelReply, PartContent, Usage, parse_json,
};
use serde_json::{Map, Value};

use super::calls::Calls;
use crate::Fault;
use crate::fault::one_line;
use crate::reply::{Accumulator, Progress, not_json};
use crate::sse::Event;

#[derive(Debug)]
pub struct OpenAiReply {
    name: String,
    thought: String,
    text: String,
    calls: Calls,
    /// What stood beside the words and wants to be returned with them.
    extra: Map<String, Value>,
    finish: Option<Finish>,
    usage: Usage,
    done: bool,
}

impl OpenAiReply {
    /// An empty reply of the named model.
    pub fn new(name: &str) -> Self {
        Self {
            name: name.to_owned(),
            thought: String::new(),
            text: String::new(),
            calls: Calls::default(),
            extra: Map::new(),
            finish: None,
            usage: Usage::default(),
            done: false,
        }
    }

    fn take_choice(&mut self, choice: &mut Value, out: &mut VecDeque<ChatEvent>) -> Result<(), Fault> {
        if let Some(Value::Object(delta)) = choice.get_mut("delta") {
            // Compatible servers know two names for thoughts.
            for member in ["reasoning_content", "reasoning"] {
                if let Some(more) = taken_text(delta, member) {
                    self.thought.push_str(&more);
                    out.push_back(ChatEvent::Thought(more));
                    break;
                }
            }
            // A refusal is text for the user, under another name.
            for member in ["content", "refusal"] {
                if let Some(more) = taken_text(delta, member) {
                    self.text.push_str(&more);
                    out.push_back(ChatEvent::Text(more));
                }
            }
            if let Some(Value::Array(calls)) = delta.get_mut("tool_calls").map(Value::take) {
                self.calls.take(calls)?;
            }
            // Gemini's compatible endpoint puts signatures here when there is no call to put them on.
            if let Some(extra) = delta.shift_remove("extra_content").filter(|extra| !extra.is_null()) {
                self.extra.insert("extra_content".to_owned(), extra);
            }
        }
        let reason = choice.get("finish_reason").and_then(Value::as_str).filter(|reason| !reason.is_empty());
        if let Some(reason) = reason {
            self.finish = Some(match reason {
                "stop" | "tool_calls" | "function_call" => Finish::Stop,
                "length" => Finish::Length,
                "content_filter" => Finish::Filtered,
                other => Finish::Other(one_line(other)),
            });
        }
        Ok(())
    }
}

impl Accumulator for OpenAiReply {
    fn take(&mut self, event: Event<'_>, out: &mut VecDeque<ChatEvent>) -> Result<(), Fault> {
        match event.data.trim() {
            "" => return Ok(()),
            "[DONE]" => {
                self.done = true;
                return Ok(());
            }
            _ => {}
        }
        let mut chunk = parse_json(event.data).map_err(|fault| not_json(&fault))?;
        if chunk.get("error").is_some_and(|error| !error.is_null()) {
            return Err(Fault::mid_stream(&chunk));
        }
        if let Some(usage) = chunk.get("usage").filter(|usage| usage.is_object()) {
            let count = |member: &str| usage.get(member).and_then(Value::as_u64).unwrap_or(0);
            let cached = usage.pointer("/prompt_tokens_details/cached_tokens").and_then(Value::as_u64);
            self.usage = Usage {
                cached_tokens: cached.unwrap_or(0),
                ..Usage::new(count("prompt_tokens"), count("completion_tokens"))
            };
        }
        // The event with the usage has no choice in it.
        let is_ours = |choice: &Value| choice.get("index").and_then(Value::as_u64).unwrap_or(0) == 0;
        let choices = chunk.get_mut("choices").and_then(Value::as_array_mut);
        for choice in choices.into_iter().flatten().filter(|choice| is_ours(choice)) {
            self.take_choice(choice, out)?;
        }
        Ok(())
    }

    fn progress(&self) -> Progress {
        match (&self.finish, self.done) {
            (_, true) => Progress::Ended,
            (Some(_), false) => Progress::Finished,
            (None, false) => Progress::Incomplete,
        }
    }

    fn finish(self) -> Result<ModelReply, Fault> {
        let Some(finish) = self.finish else {
            return Err(Fault::cut("the answer ended without a finish reason"));
        };
        let mut parts = Vec::new();
        if !self.thought.is_empty() {
            parts.push(ModelPart::new(PartContent::Thought(self.thought)));
        }
        if !self.text.is_empty() {
            parts.push(ModelPart::new(PartContent::Text(self.text)));
        }
        if !self.extra.is_empty() {
            parts.push(ModelPart { content: PartContent::Opaque, state: Some(self.extra.into()) });
        }
        parts.extend(self.calls.finish(finish == Finish::Length));
        Ok(ModelReply { message: ModelMessage { by: self.name, parts }, finish, usage: self.usage })
    }
}

/// The text of a member, if it has any.
fn taken_text(delta: &mut Map<String, Value>, member: &str) -> Option<String> {
    match delta.get_mut(member)? {
        Value::String(text) if !text.is_empty() => Some(std::mem::take(text)),
        _ => None,
    }
}
