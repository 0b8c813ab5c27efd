//! Encodes chat completions of the OpenAI API: the text only, without tool calls.

use std::sync::Arc;

use quarterdeck_agents::text::{Failure, StreamEvent, format_confirmation};
use quarterdeck_agents::turn::Ending;
use quarterdeck_contracts::{ErrorType, Usage};
use schemars::JsonSchema;
use serde::Serialize;

use super::{StreamEncoder, write_json};
use crate::citations::{Citation, Citations};
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
    citations: Citations,
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
    /// What the text cites; in one chunk before the end.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[schemars(default)]
    annotations: Vec<Annotation<'a>>,
}

/// A record on the web that the text cites.
#[derive(Serialize, JsonSchema)]
#[schemars(inline, deny_unknown_fields)]
struct Annotation<'a> {
    #[schemars(extend("const" = "url_citation"))]
    r#type: &'static str,
    url_citation: UrlCitation<'a>,
}

#[derive(Serialize, JsonSchema)]
#[schemars(inline, deny_unknown_fields)]
struct UrlCitation<'a> {
    /// The first character of the citation in the content.
    start_index: usize,
    /// The one after its last.
    end_index: usize,
    url: &'a str,
    title: &'a str,
}

/// Records without an address have no form in this protocol.
fn annotations(citations: &Citations) -> Vec<Annotation<'_>> {
    let on_the_web = citations.all().iter().filter_map(|Citation { source, start, end }| {
        let (url, title) = (source.url.as_deref()?, &*source.title);
        let url_citation = UrlCitation { start_index: *start, end_index: *end, url, title };
        Some(Annotation { r#type: "url_citation", url_citation })
    });
    on_the_web.collect()
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
    /// What the text cites.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[schemars(default)]
    annotations: Vec<Annotation<'a>>,
}

#[derive(Serialize, JsonSchema)]
#[schemars(rename = "Usage", deny_unknown_fields)]
struct CompletionUsage {
    prompt_tokens: u64,
    completion_tokens: u64,
    total_tokens: u64,
    prompt_tokens_details: PromptTokens,
}

#[derive(Serialize, JsonSchema)]
#[schemars(inline, deny_unknown_fields)]
struct PromptTokens {
    /// How much of the prompt the provider had in its cache.
    cached_tokens: u64,
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
        Self { head, with_usage, has_ended: false, citations: Citations::default() }
    }

    fn delta(&self, delta: Delta<'_>, finish_reason: Option<FinishReason>, out: &mut Vec<u8>) {
        self.chunk(vec![ChunkChoice { index: 0, delta, finish_reason }], None, out);
    }

    fn content(&mut self, content: &str, out: &mut Vec<u8>) {
        self.citations.add_text(content);
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
                self.delta(
                    Delta { role: Some("assistant"), content: Some(""), ..Delta::default() },
                    None,
                    out,
                );
            }
            StreamEvent::Text(text) => self.content(text, out),
            StreamEvent::ConfirmationRequest { request, .. } => {
                self.content(&format_confirmation(request), out);
            }
            StreamEvent::ToolResult { response, .. } => self.citations.add_result(response),
            StreamEvent::Lagged { bytes } => self.content(&lag_note(*bytes), out),
            StreamEvent::Failed(failure) => {
                self.has_ended = true;
                write_json(out, &error_body(failure));
            }
            StreamEvent::Finished { .. } if self.has_ended => {}
            StreamEvent::Finished { ending, usage } => {
                self.has_ended = true;
                let annotations = annotations(&self.citations);
                if !annotations.is_empty() {
                    self.delta(Delta { annotations, ..Delta::default() }, None, out);
                }
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
    /// Whether the model has called tools, so that something may have been done.
    pub(crate) has_called: bool,
    ending: Option<Ending>,
    usage: Usage,
    is_cut: bool,
    citations: Citations,
}

/// Longer answers are cut; clients that stream get them whole.
const MAX_COMPLETION_BYTES: usize = 1 << 20;

impl CompletionCollector {
    pub(crate) fn add(&mut self, event: &StreamEvent) {
        match event {
            StreamEvent::Text(text) if self.text.len() + text.len() > MAX_COMPLETION_BYTES => {
                self.is_cut = true
            }
            StreamEvent::Text(text) if !self.is_cut => self.push(text),
            StreamEvent::ToolResult { response, .. } => self.citations.add_result(response),
            StreamEvent::ConfirmationRequest { request, .. } => self.push(&format_confirmation(request)),
            StreamEvent::Lagged { bytes } => self.push(&lag_note(*bytes)),
            StreamEvent::ToolCall(_) => self.has_called = true,
            StreamEvent::Failed(failure) => self.failure = Some(failure.clone()),
            StreamEvent::Finished { ending, usage } => {
                self.ending = ending.clone();
                self.usage = *usage;
            }
            _ => {}
        }
    }

    fn push(&mut self, text: &str) {
        self.citations.add_text(text);
        self.text.push_str(text);
    }

    pub(crate) fn completion<'a>(&'a self, head: &'a CompletionHead) -> Completion<'a> {
        let finish_reason =
            if self.is_cut { FinishReason::Length } else { finish_reason(self.ending.as_ref()) };
        let annotations = annotations(&self.citations);
        let message = CompletionMessage { role: "assistant", content: &self.text, annotations };
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

fn usage_of(usage: Usage) -> CompletionUsage {
    let Usage { input_tokens, output_tokens, cached_tokens, .. } = usage;
    CompletionUsage {
        prompt_tokens: input_tokens,
        completion_tokens: output_tokens,
        total_tokens: input_tokens.saturating_add(output_tokens),
        prompt_tokens_details: PromptTokens { cached_tokens },
    }
}

fn error_body(failure: &Failure) -> OpenAiErrorBody<'_> {
    let is_rate_limit = failure.kind == ErrorType::RateLimit;
    let kind = if is_rate_limit { OpenAiErrorType::RateLimit } else { OpenAiErrorType::Server };
    server_error(&failure.message, kind)
}

fn server_error(message: &str, kind: OpenAiErrorType) -> OpenAiErrorBody<'_> {
    let error = OpenAiErrorDetails { message, kind, param: None, code: None };
    OpenAiErrorBody { error, timeout_until: None }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use quarterdeck_contracts::{HandlerAnswer, Meta};
    use serde_json::{Value, json};

    use super::*;

    fn events() -> Vec<StreamEvent> {
        let meta: Meta = serde_json::from_value(json!({
            "toolId": "kb_search", "toolVersion": "1.0.0", "registryVersion": "1.0.0", "responseSchemaVersion": "1.1.0",
            "duration": 0, "timestamp": "2026-01-13T09:00:00Z",
        }))
        .unwrap();
        let found = json!({ "results": [
            { "id": "doc:fram", "title": "The Fram", "url": "https://example.com/fram" }, { "id": "doc:ice" },
        ] });
        let response = Arc::new(HandlerAnswer::success(found).stamp(meta));
        vec![
            StreamEvent::Started { message_id: "m1".into(), session_id: "s1".into() },
            StreamEvent::ToolResult { id: "c1".into(), response, gates: None },
            StreamEvent::Text("Für Nansen gebaut [doc:fr".into()),
            StreamEvent::Text("am] [doc:ice].".into()),
            StreamEvent::Finished { ending: Some(Ending::Answered), usage: Usage::default() },
        ]
    }

    fn head() -> CompletionHead {
        CompletionHead { id: "chatcmpl-1".into(), created: 0, model: "quarterdeck".into() }
    }

    fn annotation() -> Value {
        let citation = json!({ "start_index": 18, "end_index": 28, "url": "https://example.com/fram", "title": "The Fram" });
        json!([{ "type": "url_citation", "url_citation": citation }])
    }

    #[test]
    fn citations_on_the_web_are_annotations_of_a_whole_answer() {
        let mut collector = CompletionCollector::default();
        events().iter().for_each(|event| collector.add(event));
        let head = head();
        let message = json!(collector.completion(&head))["choices"][0]["message"].clone();
        assert_eq!(message["annotations"], annotation());
        let content: Vec<char> = message["content"].as_str().unwrap().chars().collect();
        assert_eq!(content[18..28].iter().collect::<String>(), "[doc:fram]");
        let none = json!(CompletionCollector::default().completion(&head));
        assert_eq!(none["choices"][0]["message"].get("annotations"), None);
    }

    #[test]
    fn citations_on_the_web_are_annotations_before_the_end_of_a_stream() {
        let mut encoder = ChunkEncoder::new(head(), false);
        let mut out = Vec::new();
        events().iter().for_each(|event| encoder.encode(event, &mut out));
        let text = String::from_utf8(out).unwrap();
        let data = text.split("\n\n").filter_map(|event| event.strip_prefix("data: {"));
        let chunks: Vec<Value> =
            data.map(|data| serde_json::from_str(&format!("{{{data}")).unwrap()).collect();
        let [.., annotated, last] = chunks.as_slice() else { panic!("{text}") };
        assert_eq!(annotated["choices"][0]["delta"], json!({ "annotations": annotation() }));
        assert_eq!(last["choices"][0]["finish_reason"], "stop");
    }
}
