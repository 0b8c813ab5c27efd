//! Schemas of the envelope: the result of a tool call.

use quarterdeck_contracts::ErrorType;
use serde_json::{Value, json};

use super::operation::reference;

pub(crate) fn example() -> Value {
    json!({
        "ok": true, "data": { "eventId": "evt_1" },
        "meta": {
            "toolId": "calendar_create_event", "toolVersion": "1.0.0", "registryVersion": "1.0.3fa9c2e1",
            "responseSchemaVersion": "1.1.0", "duration": 12, "timestamp": "2026-11-15T09:30:00Z",
        },
    })
}

pub(super) fn schemas() -> Vec<(&'static str, Value)> {
    vec![
        ("ErrorType", json!({ "enum": ErrorType::ALL, "description": "The type of error." })),
        ("ToolResponse", response()),
        ("ToolError", error()),
        ("ConfirmationRequest", confirmation_request()),
        ("Meta", meta()),
    ]
}

fn response() -> Value {
    let intents = json!({
        "type": "array", "items": { "type": "object", "required": ["type"] },
        "description": "Changes to the session that the handler requests, in order.",
    });
    let success = json!({
        "title": "Success", "type": "object", "required": ["ok", "data", "meta"], "additionalProperties": false,
        "properties": {
            "ok": { "const": true },
            "data": { "description": "The tool's result; null for a pure side effect." },
            "intents": intents, "meta": reference("schemas", "Meta"),
        },
    });
    let failure = json!({
        "title": "Failure", "type": "object", "required": ["ok", "error", "meta"], "additionalProperties": false,
        "properties": {
            "ok": { "const": false }, "error": reference("schemas", "ToolError"),
            "intents": intents, "meta": reference("schemas", "Meta"),
        },
    });
    json!({ "description": "Exactly one per call.", "oneOf": [success, failure] })
}

fn error() -> Value {
    json!({
        "type": "object", "required": ["type", "message", "retryable"], "additionalProperties": false,
        "properties": {
            "type": reference("schemas", "ErrorType"),
            "message": { "type": "string", "description": "One sentence that the model can act on." },
            "retryable": { "type": "boolean" },
            "details": { "description": "For VALIDATION the list of `{path, keyword, message}`." },
            "suggestion": { "type": "string", "description": "What to do instead." },
            "partialSideEffects": { "type": "boolean", "description": "Whether some changes may have been made." },
            "idempotencyRequired": { "type": "boolean" },
            "retryAfterMs": { "type": "integer", "minimum": 0 },
            "maxRetries": { "type": "integer", "minimum": 0 },
            "confirmation_request": reference("schemas", "ConfirmationRequest"),
        },
    })
}

fn confirmation_request() -> Value {
    json!({
        "type": "object", "required": ["expires", "tool", "args", "preview"], "additionalProperties": false,
        "description": "Asks the user to approve exactly this call.",
        "properties": {
            "token": { "type": "string", "description": "Answers the confirmation. For the client, never for the model." },
            "expires": { "type": "integer", "description": "Milliseconds since 1970." },
            "tool": { "type": "string" },
            "args": { "description": "The arguments of the call." },
            "preview": { "type": "string", "description": "One sentence for the user." },
        },
    })
}

fn meta() -> Value {
    json!({
        "type": "object", "additionalProperties": false,
        "required": [
            "toolId", "toolVersion", "registryVersion", "responseSchemaVersion", "duration", "timestamp",
        ],
        "properties": {
            "toolId": { "type": "string" },
            "toolVersion": { "type": "string" },
            "registryVersion": { "type": "string" },
            "responseSchemaVersion": { "type": "string" },
            "duration": { "type": "integer", "minimum": 0, "description": "Whole milliseconds." },
            "timestamp": { "type": "string", "format": "date-time" },
            "retryCount": { "type": "integer", "minimum": 0 },
            "parentCallId": { "type": "string", "description": "The call that made this one." },
            "backgroundTaskId": { "type": "string", "description": "A task that continues after the response." },
            "_idempotent_cache_hit": { "type": "boolean", "description": "A replayed response." },
            "_original_turn": { "type": "integer", "minimum": 0 },
        },
    })
}
