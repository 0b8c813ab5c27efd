//! Encodes chat completions of the OpenAI API: the text only, without tool calls.

use std::sync::Arc;

use quarterdeck_agents::text::{Failure, StreamEvent, format_confirmation};
use quarterdeck_agents::turn::Ending;
use quarterdeck_contracts::{ErrorType, Usage};
use schemars::JsonSchema;
use serde::Serialize;

use super::{StreamEncoder, write_json};
use crate::error::{OpenAiErrorBody, OpenAiErrorDetails, OpenAiErrorType};
use crate::routes::openapi::schemas::one_of;

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

/// The data of one event. The last is `[DONE]`, or an error that ends the stream.
#[derive(JsonSchema)]
#[schemars(rename = "CompletionChunk", untagged, transform = one_of)]
#[expect(dead_code, reason = "only its schema is used")]
pub(crate) enum StreamItem<'a> {
    Chunk(Chunk<'a>),
    Error(OpenAiErrorBody<'a>),
}

#[derive(Serialize, JsonSchema)]
#[schemars(inline, title = "Chunk", deny_unknown_fields)]
pub(crate) struct Chunk<'a> {
    id: &'a str,
    #[schemars(extend("const" = "chat.completion.chunk"))]
    object: &'static str,
    created: u64,
    model: &'a str,
    #[schemars(length(max = 1))]
    choices: Vec<ChunkChoice<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    usage: Option<CompletionUsage>,
}

#[derive(Serialize, JsonSchema)]
#[schemars(inline, deny_unknown_fields)]
struct ChunkChoice<'a> {
    #[schemars(extend("const" = 0))]
    index: u32,
    delta: Delta<'a>,
    finish_reason: Option<FinishReason>,
}

#[derive(Default, Serialize, JsonSchema)]
#[schemars(inline, deny_unknown_fields)]
struct Delta<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(extend("const" = "assistant"))]
    role: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    content: Option<&'a str>,
}

/// A whole answer.
#[derive(Serialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub(crate) struct Completion<'a> {
    id: &'a str,
    #[schemars(extend("const" = "chat.completion"))]
    object: &'static str,
    created: u64,
    model: &'a str,
    choices: [CompletionChoice<'a>; 1],
    usage: CompletionUsage,
}

#[derive(Serialize, JsonSchema)]
#[schemars(inline, deny_unknown_fields)]
struct CompletionChoice<'a> {
    #[schemars(extend("const" = 0))]
    index: u32,
    message: CompletionMessage<'a>,
    finish_reason: FinishReason,
    logprobs: (),
}

#[derive(Serialize, JsonSchema)]
#[schemars(inline, deny_unknown_fields)]
struct CompletionMessage<'a> {
    #[schemars(extend("const" = "assistant"))]
    role: &'static str,
    content: &'a str,
}

#[derive(Serialize, JsonSchema)]
#[schemars(rename = "Usage", deny_unknown_fields)]
struct CompletionUsage {
    prompt_tokens: u64,
    completion_tokens: u64,
    total_tokens: u64,
}

#[derive(Clone, Copy, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
#[schemars(inline)]
enum FinishReason {
    Stop,
    Length,
    ContentFilter,
}

impl ChunkEncoder {
    pub(crate) fn new(head: CompletionHead, with_usage: bool) -> Self {
        Self { head, with_usage, has_ended: false }
    }

    fn delta(&self, delta: Delta<'_>, finish_reason: Option<FinishReason>, out: &mut Vec<u8>) {
        self.chunk(vec![ChunkChoice { index: 0, delta, finish_reason }], None, out);
    }

    fn content(&self, content: &str, out: &mut Vec<u8>) {
        self.delta(Delta { content: Some(content), ..Delta::default() }, None, out);
    }

    fn chunk(&self, choices: Vec<ChunkChoice<'_>>, usage: Option<CompletionUsage>, out: &mut Vec<u8>) {
        let CompletionHead { id, created, model } = &self.head;
        let object = "chat.completion.chunk";
        write_json(out, &Chunk { id, object, created: *created, model, choices, usage });
    }
}

impl StreamEncoder for ChunkEncoder {
    fn encode(&mut self, event: &StreamEvent, out: &mut Vec<u8>) {
        match event {
            StreamEvent::Started { .. } => {
                self.delta(Delta { role: Some("assistant"), content: Some("") }, None, out);
            }
            StreamEvent::Text(text) => self.content(text, out),
            StreamEvent::ConfirmationRequest { request, .. } => {
                self.content(&format_confirmation(request), out);
            }
            StreamEvent::Lagged { bytes } => self.content(&lag_note(*bytes), out),
            StreamEvent::Failed(failure) => {
                self.has_ended = true;
                write_json(out, &error_body(failure));
            }
            StreamEvent::Finished { .. } if self.has_ended => {}
            StreamEvent::Finished { ending, usage } => {
                self.has_ended = true;
                self.delta(Delta::default(), Some(finish_reason(ending.as_ref())), out);
                if self.with_usage {
                    self.chunk(Vec::new(), Some(usage_of(*usage)), out);
                }
                out.extend_from_slice(b"data: [DONE]\n\n");
            }
            _ => {}
        }
    }

    fn finish(&mut self, out: &mut Vec<u8>) {
        if !self.has_ended {
            let message = "The answer failed because of a server error.";
            write_json(out, &server_error(message, OpenAiErrorType::Server));
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

    pub(crate) fn completion<'a>(&'a self, head: &'a CompletionHead) -> Completion<'a> {
        let finish_reason =
            if self.is_cut { FinishReason::Length } else { finish_reason(self.ending.as_ref()) };
        let message = CompletionMessage { role: "assistant", content: &self.text };
        Completion {
            id: &head.id,
            object: "chat.completion",
            created: head.created,
            model: &head.model,
            choices: [CompletionChoice { index: 0, message, finish_reason, logprobs: () }],
            usage: usage_of(self.usage),
        }
    }
}

/// The protocol has no notes, so the gap is noted in the text.
fn lag_note(bytes: u64) -> String {
    format!("\n\n[{bytes} bytes of this answer were not read in time and are left out.]\n\n")
}

fn finish_reason(ending: Option<&Ending>) -> FinishReason {
    match ending {
        Some(Ending::Cut) => FinishReason::Length,
        Some(Ending::Filtered) => FinishReason::ContentFilter,
        _ => FinishReason::Stop,
    }
}

fn usage_of(Usage { input_tokens, output_tokens }: Usage) -> CompletionUsage {
    CompletionUsage {
        prompt_tokens: input_tokens,
        completion_tokens: output_tokens,
        total_tokens: input_tokens + output_tokens,
    }
}

pub(crate) fn error_body(failure: &Failure) -> OpenAiErrorBody<'_> {
    let is_rate_limit = failure.kind == ErrorType::RateLimit;
    let kind = if is_rate_limit { OpenAiErrorType::RateLimit } else { OpenAiErrorType::Server };
    server_error(&failure.message, kind)
}

fn server_error(message: &str, kind: OpenAiErrorType) -> OpenAiErrorBody<'_> {
    let error = OpenAiErrorDetails { message, kind, param: None, code: None };
    OpenAiErrorBody { error, timeout_until: None }
}
