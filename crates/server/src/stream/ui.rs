//! Encodes the UI message stream of the AI SDK, which `useChat` reads.
//!
//! Only parts that both supported majors of the SDK know are sent. Tools are always `dynamic`, because a front end
//! cannot know a registry's tools at build time.

mod part;

use std::collections::HashSet;

use quarterdeck_agents::text::{Failure, StreamEvent};
use quarterdeck_agents::turn::{Ending, TurnCall};
use quarterdeck_contracts::{CallArguments, ConfirmationRequest, ErrorType, Outcome, ToolResponse, Usage};
use quarterdeck_runtime::gates::Trace;
use serde_json::json;

use super::data_part::{DataPart, ServerData};
use super::{StreamEncoder, write_json};
use crate::caller::SessionTokens;
use crate::citations::{Citations, Source};
use crate::file_link::FileLinks;
use part::{BlockId, FinishMetadata, FinishReason, StartMetadata, UiUsage};
pub(crate) use part::{SOURCE_MEDIA_TYPE, StreamPart};

const LAG_MESSAGE: &str = "Part of this answer was not read in time. Reload the conversation to see it.";

#[derive(Default)]
pub(crate) struct UiMessageEncoder {
    /// Makes the links to files that answers show. Without it, none are shown.
    links: Option<FileLinks>,
    /// For a client that comes back with a session token.
    tokens: Option<SessionTokens>,
    pub(super) citations: Citations,
    open: Option<Block>,
    /// Numbers the text blocks.
    blocks: u32,
    in_step: bool,
    has_ended: bool,
    /// Calls with unreadable arguments, which the client already shows as failed.
    broken: HashSet<String>,
    /// Calls of this answer that have no result yet.
    running: HashSet<String>,
}

/// The open block.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Block {
    Text,
    Reasoning,
}

impl StreamEncoder for UiMessageEncoder {
    fn encode(&mut self, event: &StreamEvent, out: &mut Vec<u8>) {
        match event {
            StreamEvent::Started { message_id, session_id } => {
                self.links.iter_mut().for_each(|links| links.set_session(session_id));
                let session_token = self.tokens.as_ref().map(|tokens| tokens.issue(Some(session_id)));
                let message_metadata = StartMetadata { session_id, session_token };
                write_json(out, &StreamPart::Start { message_id, message_metadata });
            }
            StreamEvent::RoundStarted => {
                self.end_step(out);
                write_json(out, &StreamPart::StartStep);
                self.in_step = true;
            }
            StreamEvent::Text(text) => {
                self.citations.add_text(text);
                self.delta(Block::Text, text, out);
            }
            StreamEvent::Thought(text) => self.delta(Block::Reasoning, text, out),
            StreamEvent::ToolCall(call) => self.tool_call(call, out),
            StreamEvent::ConfirmationRequest { id, request } => confirmation(id, request, out),
            StreamEvent::ToolResult { id, response, gates } => {
                self.close_block(out);
                self.running.remove(&**id);
                self.citations.add_result(response);
                if !self.broken.contains(&**id) {
                    tool_result(id, response, out);
                    self.files(id, response, out);
                }
                gates_of(id, gates.as_deref(), out);
            }
            StreamEvent::Progress { id, text } => {
                let data = json!({ "callId": id, "text": text });
                write_json(out, &StreamPart::Data(ServerData::Progress.part(Some(id), data)));
            }
            StreamEvent::PartialResult { id, response } => self.partial_result(id, response, out),
            StreamEvent::LateToolResult { id, name, response, gates } => {
                let data = json!({ "callId": id, "tool": name, "response": response });
                write_json(out, &StreamPart::Data(ServerData::Outcome.part(Some(id), data)));
                self.files(id, response, out);
                gates_of(id, gates.as_deref(), out);
            }
            StreamEvent::Data { name, value } => {
                if let Some(part) = DataPart::from_event(name, value) {
                    write_json(out, &StreamPart::Data(part));
                }
            }
            StreamEvent::Lagged { bytes } => {
                // The text after the gap is a new block.
                self.close_block(out);
                let data = json!({ "bytes": bytes, "message": LAG_MESSAGE });
                write_json(out, &StreamPart::Data(ServerData::LeftOut.part(None, data)));
            }
            StreamEvent::Failed(failure) => {
                self.close_block(out);
                write_json(out, &StreamPart::Error { error_text: error_text(failure) });
            }
            StreamEvent::Finished { ending, usage } => self.end_message(ending.as_ref(), *usage, out),
        }
    }

    fn finish(&mut self, out: &mut Vec<u8>) {
        if !self.has_ended {
            let failure = Failure {
                kind: ErrorType::Internal,
                message: "The answer failed because of a server error.".into(),
                retryable: true,
                cause: None,
                retry_after: None,
            };
            self.encode(&StreamEvent::Failed(failure), out);
            let ending = Some(Ending::Failed);
            self.encode(&StreamEvent::Finished { ending, usage: Usage::default() }, out);
        }
    }
}

impl UiMessageEncoder {
    pub(crate) fn new(links: FileLinks, tokens: Option<SessionTokens>) -> Self {
        Self { links: Some(links), tokens, ..Self::default() }
    }

    /// The files that a result shows: the SDK's own part, and one that says whose they are and what they show.
    fn files(&self, call: &str, response: &ToolResponse, out: &mut Vec<u8>) {
        for file in self.links.iter().flat_map(|links| links.of(call, response)) {
            write_json(out, &StreamPart::File { url: &file.url, media_type: file.media_type.media_type() });
            write_json(out, &StreamPart::Data(file.part()));
        }
    }

    /// Of a result that is not shown itself: its files, and its records where the text cites them.
    pub(super) fn show_files(&mut self, call: &str, response: &ToolResponse, out: &mut Vec<u8>) {
        self.close_block(out);
        self.citations.add_result(response);
        self.files(call, response, out);
    }

    fn delta(&mut self, kind: Block, delta: &str, out: &mut Vec<u8>) {
        if self.open != Some(kind) {
            self.close_block(out);
            self.blocks += 1;
            let id = BlockId(self.blocks);
            let start = match kind {
                Block::Text => StreamPart::TextStart { id },
                Block::Reasoning => StreamPart::ReasoningStart { id },
            };
            write_json(out, &start);
            self.open = Some(kind);
        }
        let id = BlockId(self.blocks);
        let part = match kind {
            Block::Text => StreamPart::TextDelta { id, delta },
            Block::Reasoning => StreamPart::ReasoningDelta { id, delta },
        };
        write_json(out, &part);
    }

    fn close_block(&mut self, out: &mut Vec<u8>) {
        let id = BlockId(self.blocks);
        match self.open.take() {
            Some(Block::Text) => {
                write_json(out, &StreamPart::TextEnd { id });
                for source in self.citations.take_new_sources() {
                    write_json(out, &source_part(&source));
                }
            }
            Some(Block::Reasoning) => write_json(out, &StreamPart::ReasoningEnd { id }),
            None => {}
        }
    }

    fn end_step(&mut self, out: &mut Vec<u8>) {
        self.close_block(out);
        if std::mem::take(&mut self.in_step) {
            write_json(out, &StreamPart::FinishStep);
        }
    }

    fn tool_call(&mut self, turn_call: &TurnCall, out: &mut Vec<u8>) {
        self.close_block(out);
        let (tool_call_id, tool_name) = (&*turn_call.id, &*turn_call.call.name);
        let part = match &turn_call.call.arguments {
            CallArguments::Json(input) => {
                self.running.insert(turn_call.id.clone());
                StreamPart::ToolInputAvailable { tool_call_id, tool_name, input, dynamic: true }
            }
            CallArguments::Broken(input) => {
                self.broken.insert(turn_call.id.clone());
                let error_text = "The model's arguments are not JSON.";
                StreamPart::ToolInputError { tool_call_id, tool_name, input, error_text, dynamic: true }
            }
        };
        write_json(out, &part);
    }

    /// The SDK refuses the output of a call that is not in the message, and one after the result would replace it.
    fn partial_result(&mut self, id: &str, response: &ToolResponse, out: &mut Vec<u8>) {
        if self.running.contains(id) {
            let part = StreamPart::ToolOutputAvailable {
                tool_call_id: id,
                output: response,
                preliminary: true,
                dynamic: true,
            };
            return write_json(out, &part);
        }
        let Outcome::Success(data) = &response.outcome else { return };
        let data = json!({ "callId": id, "data": data });
        write_json(out, &StreamPart::Data(ServerData::Partial.part(Some(id), data)));
    }

    fn end_message(&mut self, ending: Option<&Ending>, usage: Usage, out: &mut Vec<u8>) {
        self.has_ended = true;
        if ending == Some(&Ending::Aborted) {
            write_json(out, &StreamPart::Abort { reason: "cancelled" });
        } else {
            self.end_step(out);
            let finish_reason = match ending {
                None => FinishReason::ToolCalls,
                Some(Ending::Cut) => FinishReason::Length,
                Some(Ending::Filtered) => FinishReason::ContentFilter,
                Some(Ending::Failed | Ending::Empty) => FinishReason::Error,
                Some(_) => FinishReason::Stop,
            };
            let message_metadata = FinishMetadata { usage: UiUsage::new(usage) };
            write_json(out, &StreamPart::Finish { finish_reason, message_metadata });
        }
        out.extend_from_slice(b"data: [DONE]\n\n");
    }
}

fn source_part(source: &Source) -> StreamPart<'_> {
    let Source { id: source_id, title, url } = source;
    match url {
        Some(url) => StreamPart::SourceUrl { source_id, url, title },
        None => StreamPart::SourceDocument { source_id, media_type: SOURCE_MEDIA_TYPE, title },
    }
}

/// A confirmation: the SDK's own part, and one with what the user needs to decide.
fn confirmation(id: &str, request: &ConfirmationRequest, out: &mut Vec<u8>) {
    let Some(token) = &request.token else { return };
    let token = token.expose();
    write_json(out, &StreamPart::ToolApprovalRequest { approval_id: token, tool_call_id: id });
    write_json(out, &StreamPart::Data(confirmation_part(id, token, request)));
}

/// The same part in the stream and in a stored conversation.
pub(crate) fn confirmation_part<'a>(id: &'a str, token: &str, request: &ConfirmationRequest) -> DataPart<'a> {
    let ConfirmationRequest { tool, args, preview, reason, expires, confirm_by, code, .. } = request;
    let mut data = json!({
        "callId": id, "token": token, "tool": tool, "args": args, "preview": preview, "expires": expires,
    });
    if let Some(reason) = reason {
        data["reason"] = json!(reason);
    }
    if !confirm_by.is_any() {
        data["confirmBy"] = json!(confirm_by);
    }
    if let Some(code) = code {
        data["code"] = json!(code.expose());
    }
    ServerData::Confirmation.part(Some(id), data)
}

fn tool_result(tool_call_id: &str, response: &ToolResponse, out: &mut Vec<u8>) {
    let part = match &response.outcome {
        Outcome::Success(_) => StreamPart::ToolOutputAvailable {
            tool_call_id,
            output: response,
            preliminary: false,
            dynamic: true,
        },
        Outcome::Failure(error) if error.kind == ErrorType::ConfirmationDenied => {
            StreamPart::ToolOutputDenied { tool_call_id }
        }
        Outcome::Failure(error) => {
            StreamPart::ToolOutputError { tool_call_id, error_text: &error.message, dynamic: true }
        }
    };
    write_json(out, &part);
}

/// The gates' verdicts have their own part, because they are not in the envelope.
fn gates_of(id: &str, gates: Option<&Trace>, out: &mut Vec<u8>) {
    if let Some(gates) = gates {
        write_json(out, &StreamPart::Data(gates_part(id, gates)));
    }
}

/// The same part in the stream and in a stored conversation.
pub(crate) fn gates_part<'a>(id: &'a str, gates: &Trace) -> DataPart<'a> {
    ServerData::Gates.part(Some(id), json!({ "toolCallId": id, "gates": gates.explain() }))
}

/// An error part has only a text, so it holds JSON for programs.
fn error_text(failure: &Failure) -> String {
    json!({ "type": failure.kind, "message": failure.message, "retryable": failure.retryable }).to_string()
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use quarterdeck_contracts::{HandlerAnswer, Meta, ModelCall};
    use serde_json::Value;

    use super::*;

    fn encoded(encoder: &mut UiMessageEncoder, event: &StreamEvent) -> Vec<Value> {
        let mut out = Vec::new();
        encoder.encode(event, &mut out);
        let text = String::from_utf8(out).unwrap_or_default();
        text.lines()
            .filter_map(|line| line.strip_prefix("data: "))
            .filter_map(|json| serde_json::from_str(json).ok())
            .collect()
    }

    fn response(data: Value) -> Arc<ToolResponse> {
        let meta: Meta = serde_json::from_value(json!({
            "toolId": "build", "toolVersion": "1.0.0", "registryVersion": "1.0.0", "responseSchemaVersion": "1.1.0",
            "duration": 0, "timestamp": "2026-01-13T09:00:00Z",
        }))
        .unwrap_or_else(|error| panic!("{error}"));
        Arc::new(HandlerAnswer::success(data).stamp(meta))
    }

    #[test]
    fn partial_results_are_preliminary_outputs_until_the_result_is_there() {
        let mut encoder = UiMessageEncoder::default();
        let call = ModelCall {
            id: Some("c1".into()),
            name: "build".into(),
            arguments: CallArguments::Json(json!({})),
        };
        encoded(&mut encoder, &StreamEvent::ToolCall(Arc::new(TurnCall { id: "c1".into(), call })));
        let partial = |data: Value| StreamEvent::PartialResult { id: "c1".into(), response: response(data) };
        let parts = encoded(&mut encoder, &partial(json!({ "half": true })));
        assert_eq!(parts.len(), 1);
        assert_eq!(
            (
                &parts[0]["type"],
                &parts[0]["toolCallId"],
                &parts[0]["preliminary"],
                &parts[0]["output"]["data"]
            ),
            (&json!("tool-output-available"), &json!("c1"), &json!(true), &json!({ "half": true }))
        );
        let result = StreamEvent::ToolResult { id: "c1".into(), response: response(json!(1)), gates: None };
        let parts = encoded(&mut encoder, &result);
        assert_eq!((&parts[0]["type"], parts[0].get("preliminary")), (&json!("tool-output-available"), None));
        // The SDK would take it for the result.
        let parts = encoded(&mut encoder, &partial(json!({ "late": true })));
        let expected = json!({ "type": "data-partial", "id": "c1", "data": { "callId": "c1", "data": { "late": true } } });
        assert_eq!(parts, [expected]);
    }

    #[test]
    fn a_confirmation_has_its_reason_where_there_is_one() {
        let mut request: ConfirmationRequest = serde_json::from_value(json!({
            "token": "qdc_1", "expires": 5, "tool": "draw", "args": {}, "preview": "Draw?", "reason": "It is a lot.",
        }))
        .unwrap();
        let part = |request: &ConfirmationRequest| json!(confirmation_part("c1", "qdc_1", request));
        assert_eq!(part(&request)["data"]["reason"], "It is a lot.");
        request.reason = None;
        assert_eq!(part(&request)["data"].get("reason"), None);
        assert_eq!(part(&request)["data"].get("confirmBy"), None);
    }

    #[test]
    fn a_confirmation_says_how_it_is_answered_where_that_is_demanded() {
        let request: ConfirmationRequest = serde_json::from_value(json!({
            "token": "qdc_1", "expires": 5, "tool": "pay", "args": {}, "preview": "Pay?", "confirmBy": "code", "code": "4170",
        }))
        .unwrap();
        let data = json!(confirmation_part("c1", "qdc_1", &request))["data"].take();
        assert_eq!((&data["confirmBy"], &data["code"]), (&json!("code"), &json!("4170")));
    }

    #[test]
    fn cited_records_are_source_parts_after_their_text_and_once() {
        let mut encoder = UiMessageEncoder::default();
        let found = json!({ "results": [
            { "id": "doc:fram", "title": "The Fram", "url": "https://example.com/fram" },
            { "id": "doc:ice", "title": "Ice" }, { "id": "doc:dog", "title": "Dogs" },
        ] });
        encoded(
            &mut encoder,
            &StreamEvent::ToolResult { id: "c1".into(), response: response(found), gates: None },
        );
        let mut parts = Vec::new();
        for event in [
            StreamEvent::Text("The ship [doc:fr".into()),
            StreamEvent::Text("am] froze in [doc:ice].".into()),
            StreamEvent::RoundStarted,
            StreamEvent::Text("Again [doc:fram] and [doc:whale].".into()),
            StreamEvent::Finished { ending: None, usage: Usage::default() },
        ] {
            parts.extend(encoded(&mut encoder, &event));
        }
        let at = |kind: &str| parts.iter().position(|part| part["type"] == kind).unwrap();
        assert_eq!(
            parts[at("source-url")],
            json!({ "type": "source-url", "sourceId": "doc:fram", "url": "https://example.com/fram", "title": "The Fram" })
        );
        assert_eq!(
            parts[at("source-document")],
            json!({ "type": "source-document", "sourceId": "doc:ice", "mediaType": "text/plain", "title": "Ice" })
        );
        assert!(at("text-end") < at("source-url"));
        let sources = parts.iter().filter(|part| part["type"].as_str().unwrap().starts_with("source-"));
        assert_eq!(sources.count(), 2, "what is not cited, or not known, is no source");
    }
}
