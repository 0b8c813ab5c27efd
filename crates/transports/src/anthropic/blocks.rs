//! The content blocks of a message, while they arrive.

use std::collections::VecDeque;

use quarterdeck_contracts::{CallArguments, ChatEvent, ModelCall, ModelPart, PartContent};
use serde_json::{Map, Value};

use crate::arguments::{self, ArgumentText};
use crate::reply::model_call;

#[derive(Debug)]
pub(crate) struct Block {
    pub(crate) index: u64,
    kind: Kind,
    /// Text or thought so far.
    text: String,
    /// Pieces of `input`, for calls of every kind.
    input: ArgumentText,
    /// All members but those that the kind has a place for.
    members: Map<String, Value>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    Text,
    Thinking,
    ToolUse,
    /// Redacted thoughts, server tools and unknown blocks: kept and returned.
    Opaque,
}

impl Block {
    /// A block as `content_block_start` announces it.
    pub(crate) fn start(index: u64, mut members: Map<String, Value>, out: &mut VecDeque<ChatEvent>) -> Self {
        let (kind, text) = match members.get("type").and_then(Value::as_str) {
            Some("text") => (Kind::Text, "text"),
            Some("thinking") => (Kind::Thinking, "thinking"),
            Some("tool_use") => (Kind::ToolUse, ""),
            _ => (Kind::Opaque, ""),
        };
        let text = match members.shift_remove(text) {
            Some(Value::String(text)) => text,
            _ => String::new(),
        };
        if kind != Kind::Opaque {
            members.shift_remove("type");
        }
        let mut block = Self { index, kind, text: String::new(), input: ArgumentText::default(), members };
        block.add_text(text, out);
        block
    }

    /// One `content_block_delta`. Unknown kinds are skipped.
    pub(crate) fn delta(&mut self, delta: &mut Map<String, Value>, out: &mut VecDeque<ChatEvent>) {
        let kind = match delta.get("type") {
            Some(Value::String(kind)) => kind.clone(),
            _ => return,
        };
        let mut text = |member: &str| match delta.get_mut(member) {
            Some(Value::String(text)) => std::mem::take(text),
            _ => String::new(),
        };
        match (kind.as_str(), self.kind) {
            ("text_delta", Kind::Text) => self.add_text(text("text"), out),
            ("thinking_delta", Kind::Thinking) => self.add_text(text("thinking"), out),
            ("input_json_delta", _) => self.input.push(&text("partial_json")),
            ("signature_delta", _) => self.add_member("signature", &text("signature")),
            ("citations_delta", _) => {
                let citation = delta.get_mut("citation").map(Value::take).unwrap_or_default();
                let citations = self.members.entry("citations").or_insert(Value::Null);
                match citations {
                    Value::Array(citations) => citations.push(citation),
                    none => *none = Value::Array(vec![citation]),
                }
            }
            _ => {}
        }
    }

    pub(crate) fn is_call(&self) -> bool {
        self.kind == Kind::ToolUse
    }

    /// The block as a part, or nothing if there is nothing in it. Of a reply that was cut, the last call is too.
    pub(crate) fn finish(mut self, is_cut: bool) -> Option<ModelPart> {
        let content = match self.kind {
            Kind::Text => PartContent::Text(self.text),
            Kind::Thinking => PartContent::Thought(self.text),
            Kind::ToolUse => PartContent::Call(self.take_call(is_cut)),
            Kind::Opaque => {
                // The start had a placeholder, or all of it when nothing followed.
                if !self.input.is_empty() {
                    let CallArguments::Json(input) = self.input.parse() else {
                        return None;
                    };
                    self.members.insert("input".to_owned(), input);
                }
                PartContent::Opaque
            }
        };
        let is_nothing = matches!(&content, PartContent::Text(text) if text.is_empty());
        let state = (!self.members.is_empty()).then_some(Value::Object(self.members));
        (!is_nothing || state.is_some()).then_some(ModelPart { content, state })
    }

    fn take_call(&mut self, is_cut: bool) -> ModelCall {
        let mut text = |member: &str| match self.members.shift_remove(member) {
            Some(Value::String(text)) => text,
            _ => String::new(),
        };
        let (id, name) = (text("id"), text("name"));
        let placeholder = self.members.shift_remove("input").filter(|input| !input.is_null());
        let pieces = std::mem::take(&mut self.input);
        let arguments = match placeholder {
            _ if is_cut => pieces.cut(),
            Some(input) if pieces.is_empty() => arguments::bounded(input),
            _ => pieces.parse(),
        };
        model_call(id, name, arguments)
    }

    fn add_text(&mut self, text: String, out: &mut VecDeque<ChatEvent>) {
        if text.is_empty() {
            return;
        }
        self.text.push_str(&text);
        match self.kind {
            Kind::Text => out.push_back(ChatEvent::Text(text)),
            Kind::Thinking => out.push_back(ChatEvent::Thought(text)),
            Kind::ToolUse | Kind::Opaque => {}
        }
    }

    fn add_member(&mut self, member: &str, more: &str) {
        match self.members.entry(member).or_insert(Value::Null) {
            Value::String(text) => text.push_str(more),
            none => *none = more.into(),
        }
    }
}
