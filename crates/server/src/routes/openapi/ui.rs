//! Schemas of the AI SDK's UI messages and stream parts.

use serde_json::{Map, Value, json};

use super::operation::reference;

/// An example of a stream.
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
        ("PostedMessage", posted_message()),
        ("UiMessage", message()),
        ("UiMessagePart", message_part()),
        ("UiStreamPart", stream_part()),
    ]
}

fn request() -> Value {
    let optional = json!({ "type": ["string", "null"] });
    let id = |about: &str| json!({ "type": ["string", "null"], "description": about });
    let shared = |more: Value| {
        let mut properties = json!({
            "id": id("The client's own id of the conversation."),
            "sessionId": id("The session id from an earlier answer. It takes precedence over `id`."),
            "timeZone": { "description": "The user's time zone, an IANA name." },
            "locale": { "description": "The user's language, a BCP 47 tag." },
        });
        if let (Some(properties), Value::Object(more)) = (properties.as_object_mut(), more) {
            properties.extend(more);
        }
        properties
    };
    let message = json!({
        "type": "string", "minLength": 1, "maxLength": super::super::chat::MAX_MESSAGE_CHARS,
        "description": "The user's message, not blank.",
    });
    let plain = json!({
        "title": "Plain", "type": "object", "required": ["message"], "not": { "required": ["messages"] },
        "properties": shared(json!({ "message": message })),
    });
    let messages = json!({
        "type": "array", "minItems": 1, "items": reference("schemas", "PostedMessage"),
        "description": "The conversation as the page has it. Only the last message is read; the server keeps the history.",
    });
    let use_chat = json!({
        "title": "useChat", "type": "object", "required": ["messages"],
        "description": "The AI SDK's `useChat` format. The last message is the user's, or the assistant's with the \
                        user's answers to confirmations.",
        "properties": shared(json!({
            "messages": messages,
            "trigger": { "examples": ["submit-message", "regenerate-message"] },
            "messageId": optional,
        })),
    });
    json!({ "description": "Unknown fields are ignored.", "oneOf": [plain, use_chat] })
}

/// Fields that are ignored are not validated, so this is looser than `UiMessage`.
fn posted_message() -> Value {
    json!({
        "type": "object", "required": ["role"],
        "description": "A `UiMessage` as the page has it.",
        "properties": {
            "id": { "description": "The page's id of the message." },
            "role": { "type": "string", "examples": ["user", "assistant"] },
            "parts": { "description": "A list of `UiMessagePart`. Read are the text of `text` parts and the `approval` of \
                                       parts with the state `approval-responded`." },
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
        "description": "Text, a file, or a tool call with its result.",
        "properties": {
            "type": { "type": "string", "examples": ["text", "file", "dynamic-tool"] },
            "text": { "type": "string" },
            "filename": { "type": "string" },
            "toolName": { "type": "string" },
            "toolCallId": { "type": "string" },
            "state": { "type": "string", "examples": [
                "done", "input-available", "output-available", "output-error", "output-denied",
            ] },
            "input": { "description": "The arguments." },
            "output": reference("schemas", "ToolResponse"),
            "errorText": { "type": "string" },
        },
    })
}

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
        "description": "The data of one event. The last is `[DONE]`, which is not JSON; comment lines keep idle \
                        connections open.",
        "oneOf": kinds,
    })
}

/// The tool was not known when the page was built.
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
                        `data-voice-session-start`, `data-history-trimmed`, `data-left-out` (text that was not read in \
                        time), and the tools' own messages.",
        "properties": {
            "type": { "type": "string", "pattern": "^data-" },
            "id": { "type": "string", "description": "The call. A later part with the same id replaces this one." },
            "data": {},
        },
    })
}

fn finish_reason() -> Value {
    json!({ "enum": ["stop", "length", "content-filter", "tool-calls", "error"] })
}
