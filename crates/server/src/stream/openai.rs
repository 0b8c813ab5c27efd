//! Encodes chat completions of the OpenAI API: the text only, without tool calls.

use std::sync::Arc;

use quarterdeck_agents::text::{Failure, StreamEvent, format_confirmation};
use quarterdeck_agents::turn::Ending;
use quarterdeck_contracts::{ErrorType, Usage};
use serde::Serialize;
use serde_json::{Value, json};

use super::{StreamEncoder, write_json};

/// The fields that all chunks of an answer share.
#[derive(Clone)]
pub(crate) struct CompletionHead {
    pub(crate) id: Arc<str>,
    pub(crate) created: u64,
    pub(crate) model: Arc<str>,
}

pub(crate) struct ChunkEncoder {
    head: CompletionHead,
    with_usage: bool,
    has_ended: bool,
}

impl ChunkEncoder {
    pub(crate) fn new(head: CompletionHead, with_usage: bool) -> Self {
        Self { head, with_usage, has_ended: false }
    }

    fn delta(&self, delta: impl Serialize, finish: Option<&str>, out: &mut Vec<u8>) {
        let choices = [Choice { index: 0, delta, finish_reason: finish }];
        write_json(out, &Chunk::new(&self.head, choices));
    }
}

#[derive(Serialize)]
struct Chunk<'a, C> {
    id: &'a str,
    object: &'static str,
    created: u64,
    model: &'a str,
    choices: C,
}

impl<'a, C> Chunk<'a, C> {
    fn new(head: &'a CompletionHead, choices: C) -> Self {
        Self {
            id: &head.id,
            object: "chat.completion.chunk",
            created: head.created,
            model: &head.model,
            choices,
        }
    }
}

#[derive(Serialize)]
struct Choice<'a, D> {
    index: u32,
    delta: D,
    finish_reason: Option<&'a str>,
}

#[derive(Serialize)]
struct Content<'a> {
    content: &'a str,
}

impl StreamEncoder for ChunkEncoder {
    fn encode(&mut self, event: &StreamEvent, out: &mut Vec<u8>) {
        match event {
            StreamEvent::Started { .. } => {
                self.delta(json!({ "role": "assistant", "content": "" }), None, out)
            }
            StreamEvent::Text(text) => self.delta(Content { content: text }, None, out),
            StreamEvent::ConfirmationRequest { request, .. } => {
                self.delta(json!({ "content": format_confirmation(request) }), None, out)
            }
            StreamEvent::Lagged { bytes } => self.delta(json!({ "content": lag_note(*bytes) }), None, out),
            StreamEvent::Failed(failure) => {
                self.has_ended = true;
                write_json(out, &json!({ "error": error(failure) }));
            }
            StreamEvent::Finished { .. } if self.has_ended => {}
            StreamEvent::Finished { ending, usage } => {
                self.has_ended = true;
                self.delta(json!({}), Some(finish_reason(ending.as_ref())), out);
                if self.with_usage {
                    let mut chunk = json!(Chunk::new(&self.head, [(); 0]));
                    chunk["usage"] = usage_of(*usage);
                    write_json(out, &chunk);
                }
                out.extend_from_slice(b"data: [DONE]\n\n");
            }
            _ => {}
        }
    }

    fn finish(&mut self, out: &mut Vec<u8>) {
        if !self.has_ended {
            let message = "The answer failed because of a server error.";
            write_json(
                out,
                &json!({ "error": { "message": message, "type": "server_error", "param": null, "code": null } }),
            );
        }
    }
}

/// Collects a whole answer.
#[derive(Default)]
pub(crate) struct CompletionCollector {
    pub(crate) text: String,
    pub(crate) failure: Option<Failure>,
    ending: Option<Ending>,
    usage: Usage,
    is_cut: bool,
}

/// Longer answers are cut; clients that stream get them whole.
const MAX_COMPLETION_BYTES: usize = 1 << 20;

impl CompletionCollector {
    pub(crate) fn add(&mut self, event: &StreamEvent) {
        match event {
            StreamEvent::Text(text) if self.text.len() + text.len() > MAX_COMPLETION_BYTES => {
                self.is_cut = true
            }
            StreamEvent::Text(text) if !self.is_cut => self.text.push_str(text),
            StreamEvent::ConfirmationRequest { request, .. } => {
                self.text.push_str(&format_confirmation(request))
            }
            StreamEvent::Lagged { bytes } => self.text.push_str(&lag_note(*bytes)),
            StreamEvent::Failed(failure) => self.failure = Some(failure.clone()),
            StreamEvent::Finished { ending, usage } => {
                self.ending = ending.clone();
                self.usage = *usage;
            }
            _ => {}
        }
    }

    pub(crate) fn completion(&self, head: &CompletionHead) -> Value {
        let message = json!({ "role": "assistant", "content": self.text });
        let reason = if self.is_cut { "length" } else { finish_reason(self.ending.as_ref()) };
        let choice = json!({ "index": 0, "message": message, "finish_reason": reason, "logprobs": null });
        json!({
            "id": head.id, "object": "chat.completion", "created": head.created, "model": head.model,
            "choices": [choice], "usage": usage_of(self.usage),
        })
    }
}

/// The protocol has no notes, so the gap is noted in the text.
fn lag_note(bytes: u64) -> String {
    format!("\n\n[{bytes} bytes of this answer were not read in time and are left out.]\n\n")
}

fn finish_reason(ending: Option<&Ending>) -> &'static str {
    match ending {
        Some(Ending::Cut) => "length",
        Some(Ending::Filtered) => "content_filter",
        _ => "stop",
    }
}

fn usage_of(usage: Usage) -> Value {
    let (prompt, completion) = (usage.input_tokens, usage.output_tokens);
    json!({ "prompt_tokens": prompt, "completion_tokens": completion, "total_tokens": prompt + completion })
}

pub(crate) fn error(failure: &Failure) -> Value {
    let kind = if failure.kind == ErrorType::RateLimit { "rate_limit_error" } else { "server_error" };
    json!({ "message": failure.message, "type": kind, "param": null, "code": null })
}
