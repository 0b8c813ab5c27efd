//! The UI message stream of the AI SDK: what `useChat` reads.
//!
//! Only parts that both majors of the SDK know are sent. Tools are always `dynamic`, because a front end cannot know at
//! build time which tools a registry will hold.

use std::collections::HashSet;

use quarterdeck_agents::text::{Failure, StreamEvent};
use quarterdeck_agents::turn::{Ending, TurnCall};
use quarterdeck_contracts::{CallArguments, ConfirmationRequest, ErrorType, Outcome, ToolResponse, Usage};
use quarterdeck_runtime::gates::Trace;
use serde::Serialize;
use serde_json::{Value, json};

use super::{Words, write_json};

/// Writes a turn as a UI message.
#[derive(Default)]
pub(crate) struct UiMessage {
    open: Option<Open>,
    /// How many blocks of text there were; each has an id of its own.
    blocks: u32,
    in_step: bool,
    has_ended: bool,
    /// Calls whose arguments could not be read: the client knows already that they failed.
    broken: HashSet<String>,
}

/// What a reader is told that did not read in time.
const LEFT_OUT: &str =
    "A part of this answer was not read in time and is left out here. Load the conversation to read it.";

/// A block that more text can go to.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Open {
    Text,
    Reasoning,
}

/// A piece of text. By far the most frequent part, so it is written without a map.
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

impl Words for UiMessage {
    fn say(&mut self, event: &StreamEvent, out: &mut Vec<u8>) {
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
            StreamEvent::Text(text) => self.delta(Open::Text, text, out),
            StreamEvent::Thought(text) => self.delta(Open::Reasoning, text, out),
            StreamEvent::ToolCall(call) => self.call(call, out),
            StreamEvent::ConfirmationRequest { id, request } => asked(id, request, out),
            StreamEvent::ToolResult { id, response, gates } => {
                self.close(out);
                if !self.broken.contains(&**id) {
                    answered(id, response, out);
                }
                went_through(id, gates.as_deref(), out);
            }
            StreamEvent::Progress { id, text } => {
                data("progress", Some(id), json!({ "callId": id, "text": text }), out)
            }
            StreamEvent::LateToolResult { id, name, response, gates } => {
                data("outcome", Some(id), json!({ "callId": id, "tool": name, "response": response }), out);
                went_through(id, gates.as_deref(), out);
            }
            StreamEvent::Data { name, value } => data(name, None, value.clone(), out),
            StreamEvent::Lagged { bytes } => {
                // What follows does not go on where the words before it ended.
                self.close(out);
                data("left-out", None, json!({ "bytes": bytes, "message": LEFT_OUT }), out);
            }
            StreamEvent::Failed(failure) => {
                self.close(out);
                write_json(out, &json!({ "type": "error", "errorText": error_text(failure) }));
            }
            StreamEvent::Finished { ending, usage } => self.finish(ending.as_ref(), *usage, out),
        }
    }

    fn end(&mut self, out: &mut Vec<u8>) {
        if !self.has_ended {
            let failure = Failure {
                kind: ErrorType::Internal,
                message: "The answer broke off because of a fault on our side.".into(),
                retryable: true,
            };
            self.say(&StreamEvent::Failed(failure), out);
            self.say(&StreamEvent::Finished { ending: Some(Ending::Failed), usage: Usage::default() }, out);
        }
    }
}

impl UiMessage {
    fn delta(&mut self, kind: Open, text: &str, out: &mut Vec<u8>) {
        if self.open != Some(kind) {
            self.close(out);
            self.blocks += 1;
            let start = if kind == Open::Text { "text-start" } else { "reasoning-start" };
            write_json(out, &json!({ "type": start, "id": BlockId(self.blocks) }));
            self.open = Some(kind);
        }
        let r#type = if kind == Open::Text { "text-delta" } else { "reasoning-delta" };
        write_json(out, &Delta { r#type, id: BlockId(self.blocks), delta: text });
    }

    fn close(&mut self, out: &mut Vec<u8>) {
        if let Some(kind) = self.open.take() {
            let end = if kind == Open::Text { "text-end" } else { "reasoning-end" };
            write_json(out, &json!({ "type": end, "id": BlockId(self.blocks) }));
        }
    }

    fn end_step(&mut self, out: &mut Vec<u8>) {
        self.close(out);
        if std::mem::take(&mut self.in_step) {
            write_json(out, &json!({ "type": "finish-step" }));
        }
    }

    fn call(&mut self, shown: &TurnCall, out: &mut Vec<u8>) {
        self.close(out);
        let (id, name) = (&shown.id, &shown.call.name);
        match &shown.call.arguments {
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
                        "errorText": "The model's arguments cannot be read as JSON.", "dynamic": true,
                    }),
                );
            }
        }
    }

    fn finish(&mut self, ending: Option<&Ending>, usage: Usage, out: &mut Vec<u8>) {
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

/// A part for the page.
fn data(name: &str, id: Option<&str>, value: Value, out: &mut Vec<u8>) {
    let mut part = json!({ "type": format!("data-{name}"), "data": value });
    if let Some(id) = id {
        part["id"] = id.into();
    }
    write_json(out, &part);
}

/// A question: the SDK's own part, and one with what a person needs to decide.
fn asked(id: &str, request: &ConfirmationRequest, out: &mut Vec<u8>) {
    let Some(token) = &request.token else { return };
    let token = token.expose();
    write_json(out, &json!({ "type": "tool-approval-request", "approvalId": token, "toolCallId": id }));
    write_json(out, &confirmation_part(id, token, request));
}

/// The part, as the stream and a conversation that is looked at later have it.
pub(crate) fn confirmation_part(id: &str, token: &str, request: &ConfirmationRequest) -> Value {
    let shown = json!({
        "callId": id, "token": token, "tool": request.tool, "args": request.args, "preview": request.preview,
        "expires": request.expires,
    });
    json!({ "type": "data-confirmation", "id": id, "data": shown })
}

fn answered(id: &str, response: &ToolResponse, out: &mut Vec<u8>) {
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

/// What the gates said about a call: a part of its own, because the envelope is the same for whoever called.
fn went_through(id: &str, gates: Option<&Trace>, out: &mut Vec<u8>) {
    if let Some(gates) = gates {
        write_json(out, &gates_part(id, gates));
    }
}

/// The part, as the stream and a conversation that is looked at later have it.
pub(crate) fn gates_part(id: &str, gates: &Trace) -> Value {
    json!({ "type": "data-gates", "id": id, "data": { "toolCallId": id, "gates": gates.explain() } })
}

/// The error part has one text, so what a program wants to know is JSON in it.
fn error_text(failure: &Failure) -> String {
    json!({ "type": failure.kind, "message": failure.message, "retryable": failure.retryable }).to_string()
}
