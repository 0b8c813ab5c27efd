//! The AI SDK's UI messages: what `useChat` posts, and the parts of the stream that it reads.

use serde_json::{Map, Value, json};

use super::operation::reference;

/// A short answer as it goes over the wire.
pub(crate) const STREAM: &str = "\
data: {\"type\":\"start\",\"messageId\":\"msg_1\",\"messageMetadata\":{\"sessionId\":\"ses_1\"}}\n\n\
data: {\"type\":\"start-step\"}\n\n\
data: {\"type\":\"text-start\",\"id\":\"t1\"}\n\n\
data: {\"type\":\"text-delta\",\"id\":\"t1\",\"delta\":\"Good morning.\"}\n\n\
data: {\"type\":\"text-end\",\"id\":\"t1\"}\n\n\
data: {\"type\":\"finish-step\"}\n\n\
data: {\"type\":\"finish\",\"finishReason\":\"stop\",\"messageMetadata\":{\"usage\":\
{\"inputTokens\":812,\"outputTokens\":4,\"totalTokens\":816}}}\n\n\
data: [DONE]\n\n";

pub(super) fn schemas() -> Vec<(&'static str, Value)> {
    vec![
        ("ChatRequest", request()),
        ("PostedMessage", posted()),
        ("UiMessage", message()),
        ("UiMessagePart", message_part()),
        ("UiStreamPart", stream_part()),
    ]
}

fn request() -> Value {
    let optional = json!({ "type": ["string", "null"] });
    let place = |about: &str| json!({ "type": ["string", "null"], "description": about });
    let shared = |more: Value| {
        let mut properties = json!({
            "id": place("The client's own name for the conversation."),
            "sessionId": place("The session, as the answer to an earlier message named it. It counts before `id`."),
            "timeZone": { "description": "Where the person is, as an IANA name." },
            "locale": { "description": "The person's language, as a BCP 47 tag." },
        });
        if let (Some(properties), Value::Object(more)) = (properties.as_object_mut(), more) {
            properties.extend(more);
        }
        properties
    };
    let message = json!({
        "type": "string", "minLength": 1, "maxLength": super::super::chat::LONGEST,
        "description": "What the person says. Some of it must be visible.",
    });
    let plain = json!({
        "title": "Plain", "type": "object", "required": ["message"], "not": { "required": ["messages"] },
        "properties": shared(json!({ "message": message })),
    });
    let messages = json!({
        "type": "array", "minItems": 1, "items": reference("schemas", "PostedMessage"),
        "description": "The conversation as the page has it. Only the last message is believed; the history is ours.",
    });
    let posted = json!({
        "title": "useChat", "type": "object", "required": ["messages"],
        "description": "What the AI SDK's `useChat` posts. The last message is the person's, or the assistant's with \
                        the person's answers to its questions.",
        "properties": shared(json!({
            "messages": messages,
            "trigger": { "examples": ["submit-message", "regenerate-message"] },
            "messageId": optional,
        })),
    });
    json!({ "description": "Unknown fields are ignored.", "oneOf": [plain, posted] })
}

/// What nobody believes is not judged either, so this says less than the message that is given back.
fn posted() -> Value {
    json!({
        "type": "object", "required": ["role"],
        "description": "A `UiMessage` as the page has it.",
        "properties": {
            "id": { "description": "What the page calls it." },
            "role": { "type": "string", "examples": ["user", "assistant"] },
            "parts": { "description": "A list of `UiMessagePart`. The text of those of type `text` is read, and the \
                                       `approval` of those whose state is `approval-responded`." },
        },
    })
}

fn message() -> Value {
    json!({
        "type": "object", "required": ["role", "parts"],
        "properties": {
            "id": { "type": "string" },
            "role": { "enum": ["user", "assistant", "system"] },
            "parts": { "type": "array", "items": reference("schemas", "UiMessagePart") },
            "metadata": {},
        },
    })
}

fn message_part() -> Value {
    json!({
        "type": "object", "required": ["type"],
        "description": "Words, a file, or a call with what it came to.",
        "properties": {
            "type": { "type": "string", "examples": ["text", "file", "dynamic-tool"] },
            "text": { "type": "string" },
            "filename": { "type": "string" },
            "toolName": { "type": "string" },
            "toolCallId": { "type": "string" },
            "state": { "type": "string", "examples": [
                "done", "input-available", "output-available", "output-error", "output-denied",
            ] },
            "input": { "description": "What the tool was called with." },
            "output": reference("schemas", "ToolResponse"),
            "errorText": { "type": "string" },
        },
    })
}

/// The data of one event. `[DONE]` ends the stream and is no JSON.
fn stream_part() -> Value {
    let text = || json!({ "type": "string" });
    let kinds = [
        part("start", &[("messageId", text()), ("messageMetadata", json!({ "type": "object" }))], &[]),
        part("start-step", &[], &[]),
        part("finish-step", &[], &[]),
        part("text-start", &[("id", text())], &[]),
        part("text-delta", &[("id", text()), ("delta", text())], &[]),
        part("text-end", &[("id", text())], &[]),
        part("reasoning-start", &[("id", text())], &[]),
        part("reasoning-delta", &[("id", text()), ("delta", text())], &[]),
        part("reasoning-end", &[("id", text())], &[]),
        part(
            "tool-input-available",
            &[("toolCallId", text()), ("toolName", text()), ("input", json!({}))],
            &DYNAMIC,
        ),
        part(
            "tool-input-error",
            &[("toolCallId", text()), ("toolName", text()), ("input", json!({})), ("errorText", text())],
            &DYNAMIC,
        ),
        part("tool-approval-request", &[("approvalId", text()), ("toolCallId", text())], &[]),
        part(
            "tool-output-available",
            &[("toolCallId", text()), ("output", reference("schemas", "ToolResponse"))],
            &DYNAMIC,
        ),
        part("tool-output-error", &[("toolCallId", text()), ("errorText", text())], &DYNAMIC),
        part("tool-output-denied", &[("toolCallId", text())], &[]),
        part(
            "error",
            &[("errorText", json!({ "type": "string", "description": "JSON: type, message, retryable." }))],
            &[],
        ),
        part("abort", &[("reason", text())], &[]),
        part(
            "finish",
            &[("finishReason", finish_reason()), ("messageMetadata", json!({ "type": "object" }))],
            &[],
        ),
        data_part(),
    ];
    json!({
        "description": "The data of one event. The last event's is `[DONE]`, which is no JSON; comment lines keep idle \
                        connections open.",
        "oneOf": kinds,
    })
}

/// A field that says that a tool was not known when the page was built.
const DYNAMIC: [&str; 1] = ["dynamic"];

fn part(kind: &str, fields: &[(&str, Value)], flags: &[&str]) -> Value {
    let mut properties = Map::from_iter([("type".to_owned(), json!({ "const": kind }))]);
    let mut required = vec!["type"];
    for (name, schema) in fields {
        properties.insert((*name).to_owned(), schema.clone());
        required.push(name);
    }
    for name in flags {
        properties.insert((*name).to_owned(), json!({ "type": "boolean" }));
    }
    json!({
        "title": kind, "type": "object", "required": required, "properties": properties, "additionalProperties": false,
    })
}

fn data_part() -> Value {
    json!({
        "title": "data-…", "type": "object", "required": ["type", "data"], "additionalProperties": false,
        "description": "For the page: `data-confirmation`, `data-gates`, `data-progress`, `data-outcome`, `data-timeout`, \
                        `data-voice-session-start`, `data-history-trimmed`, `data-left-out` (what this reader did not \
                        read in time), and what tools send.",
        "properties": {
            "type": { "type": "string", "pattern": "^data-" },
            "id": { "type": "string", "description": "The call. A later part of the same id takes its place." },
            "data": {},
        },
    })
}

fn finish_reason() -> Value {
    json!({ "enum": ["stop", "length", "content-filter", "tool-calls", "error"] })
}
