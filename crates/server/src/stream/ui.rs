//! Encodes the UI message stream of the AI SDK, which `useChat` reads.
//!
//! Only parts that both supported majors of the SDK know are sent. Tools are always `dynamic`, because a front end cannot
//! know a registry's tools at build time.

use std::collections::HashSet;

use quarterdeck_agents::text::{Failure, StreamEvent};
use quarterdeck_agents::turn::{Ending, TurnCall};
use quarterdeck_contracts::{CallArguments, ConfirmationRequest, ErrorType, Outcome, ToolResponse, Usage};
use quarterdeck_runtime::gates::Trace;
use serde::Serialize;
use serde_json::{Value, json};

use super::{StreamEncoder, write_json};

#[derive(Default)]
pub(crate) struct UiMessageEncoder {
    open: Option<Block>,
    /// Numbers the text blocks.
    blocks: u32,
    in_step: bool,
    has_ended: bool,
    /// Calls with unreadable arguments, which the client already shows as failed.
    broken: HashSet<String>,
}

const LAG_MESSAGE: &str = "Part of this answer was not read in time. Reload the conversation to see it.";

/// The open block.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Block {
    Text,
    Reasoning,
}

/// By far the most frequent part, so it is serialised without a map.
#[derive(Serialize)]
struct Delta<'a> {
    r#type: &'static str,
    id: BlockId,
    delta: &'a str,
}

#[derive(Clone, Copy)]
struct BlockId(u32);

impl Serialize for BlockId {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(&format_args!("t{}", self.0))
    }
}

impl StreamEncoder for UiMessageEncoder {
    fn encode(&mut self, event: &StreamEvent, out: &mut Vec<u8>) {
        match event {
            StreamEvent::Started { message_id, session_id } => write_json(
                out,
                &json!({ "type": "start", "messageId": message_id, "messageMetadata": { "sessionId": session_id } }),
            ),
            StreamEvent::RoundStarted => {
                self.end_step(out);
                write_json(out, &json!({ "type": "start-step" }));
                self.in_step = true;
            }
            StreamEvent::Text(text) => self.delta(Block::Text, text, out),
            StreamEvent::Thought(text) => self.delta(Block::Reasoning, text, out),
            StreamEvent::ToolCall(call) => self.tool_call(call, out),
            StreamEvent::ConfirmationRequest { id, request } => confirmation(id, request, out),
            StreamEvent::ToolResult { id, response, gates } => {
                self.close_block(out);
                if !self.broken.contains(&**id) {
                    tool_result(id, response, out);
                }
                gates_of(id, gates.as_deref(), out);
            }
            StreamEvent::Progress { id, text } => {
                data("progress", Some(id), json!({ "callId": id, "text": text }), out)
            }
            StreamEvent::LateToolResult { id, name, response, gates } => {
                data("outcome", Some(id), json!({ "callId": id, "tool": name, "response": response }), out);
                gates_of(id, gates.as_deref(), out);
            }
            StreamEvent::Data { name, value } => data(name, None, value.clone(), out),
            StreamEvent::Lagged { bytes } => {
                // The text after the gap is a new block.
                self.close_block(out);
                data("left-out", None, json!({ "bytes": bytes, "message": LAG_MESSAGE }), out);
            }
            StreamEvent::Failed(failure) => {
                self.close_block(out);
                write_json(out, &json!({ "type": "error", "errorText": error_text(failure) }));
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
            };
            self.encode(&StreamEvent::Failed(failure), out);
            self.encode(
                &StreamEvent::Finished { ending: Some(Ending::Failed), usage: Usage::default() },
                out,
            );
        }
    }
}

impl UiMessageEncoder {
    fn delta(&mut self, kind: Block, text: &str, out: &mut Vec<u8>) {
        if self.open != Some(kind) {
            self.close_block(out);
            self.blocks += 1;
            let start = if kind == Block::Text { "text-start" } else { "reasoning-start" };
            write_json(out, &json!({ "type": start, "id": BlockId(self.blocks) }));
            self.open = Some(kind);
        }
        let r#type = if kind == Block::Text { "text-delta" } else { "reasoning-delta" };
        write_json(out, &Delta { r#type, id: BlockId(self.blocks), delta: text });
    }

    fn close_block(&mut self, out: &mut Vec<u8>) {
        if let Some(kind) = self.open.take() {
            let end = if kind == Block::Text { "text-end" } else { "reasoning-end" };
            write_json(out, &json!({ "type": end, "id": BlockId(self.blocks) }));
        }
    }

    fn end_step(&mut self, out: &mut Vec<u8>) {
        self.close_block(out);
        if std::mem::take(&mut self.in_step) {
            write_json(out, &json!({ "type": "finish-step" }));
        }
    }

    fn tool_call(&mut self, turn_call: &TurnCall, out: &mut Vec<u8>) {
        self.close_block(out);
        let (id, name) = (&turn_call.id, &turn_call.call.name);
        match &turn_call.call.arguments {
            CallArguments::Json(input) => write_json(
                out,
                &json!({
                    "type": "tool-input-available", "toolCallId": id, "toolName": name, "input": input,
                    "dynamic": true,
                }),
            ),
            CallArguments::Broken(text) => {
                self.broken.insert(id.clone());
                write_json(
                    out,
                    &json!({
                        "type": "tool-input-error", "toolCallId": id, "toolName": name, "input": text,
                        "errorText": "The model's arguments are not JSON.", "dynamic": true,
                    }),
                );
            }
        }
    }

    fn end_message(&mut self, ending: Option<&Ending>, usage: Usage, out: &mut Vec<u8>) {
        self.has_ended = true;
        if ending == Some(&Ending::Aborted) {
            write_json(out, &json!({ "type": "abort", "reason": "cancelled" }));
        } else {
            self.end_step(out);
            let reason = match ending {
                None => "tool-calls",
                Some(Ending::Cut) => "length",
                Some(Ending::Filtered) => "content-filter",
                Some(Ending::Failed | Ending::Empty) => "error",
                Some(_) => "stop",
            };
            let (input, output) = (usage.input_tokens, usage.output_tokens);
            let usage =
                json!({ "inputTokens": input, "outputTokens": output, "totalTokens": input + output });
            write_json(
                out,
                &json!({ "type": "finish", "finishReason": reason, "messageMetadata": { "usage": usage } }),
            );
        }
        out.extend_from_slice(b"data: [DONE]\n\n");
    }
}

fn data(name: &str, id: Option<&str>, value: Value, out: &mut Vec<u8>) {
    let mut part = json!({ "type": format!("data-{name}"), "data": value });
    if let Some(id) = id {
        part["id"] = id.into();
    }
    write_json(out, &part);
}

/// A confirmation: the SDK's own part, and one with what the user needs to decide.
fn confirmation(id: &str, request: &ConfirmationRequest, out: &mut Vec<u8>) {
    let Some(token) = &request.token else { return };
    let token = token.expose();
    write_json(out, &json!({ "type": "tool-approval-request", "approvalId": token, "toolCallId": id }));
    write_json(out, &confirmation_part(id, token, request));
}

/// The same part in the stream and in a stored conversation.
pub(crate) fn confirmation_part(id: &str, token: &str, request: &ConfirmationRequest) -> Value {
    let data = json!({
        "callId": id, "token": token, "tool": request.tool, "args": request.args, "preview": request.preview,
        "expires": request.expires,
    });
    json!({ "type": "data-confirmation", "id": id, "data": data })
}

fn tool_result(id: &str, response: &ToolResponse, out: &mut Vec<u8>) {
    let part = match &response.outcome {
        Outcome::Success(_) => {
            json!({ "type": "tool-output-available", "toolCallId": id, "output": response, "dynamic": true })
        }
        Outcome::Failure(error) if error.kind == ErrorType::ConfirmationDenied => {
            json!({ "type": "tool-output-denied", "toolCallId": id })
        }
        Outcome::Failure(error) => {
            json!({ "type": "tool-output-error", "toolCallId": id, "errorText": error.message, "dynamic": true })
        }
    };
    write_json(out, &part);
}

/// The gates' verdicts have their own part, because they are not in the envelope.
fn gates_of(id: &str, gates: Option<&Trace>, out: &mut Vec<u8>) {
    if let Some(gates) = gates {
        write_json(out, &gates_part(id, gates));
    }
}

/// The same part in the stream and in a stored conversation.
pub(crate) fn gates_part(id: &str, gates: &Trace) -> Value {
    json!({ "type": "data-gates", "id": id, "data": { "toolCallId": id, "gates": gates.explain() } })
}

/// An error part has only a text, so it holds JSON for programs.
fn error_text(failure: &Failure) -> String {
    json!({ "type": failure.kind, "message": failure.message, "retryable": failure.retryable }).to_string()
}
