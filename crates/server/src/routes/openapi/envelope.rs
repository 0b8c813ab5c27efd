//! The shapes of types that other crates serialise. Tests hold real responses to them.

use std::borrow::Cow;

use quarterdeck_contracts::{ConfirmBy, ErrorType};
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde_json::{Value, json};

use super::schemas::one_of;

pub(crate) fn example() -> Value {
    json!({
        "ok": true, "data": { "eventId": "evt_1" },
        "meta": {
            "toolId": "calendar_create_event", "toolVersion": "1.0.0", "registryVersion": "1.0.3fa9c2e1",
            "responseSchemaVersion": "1.1.0", "duration": 12, "timestamp": "2026-11-15T09:30:00Z",
        },
    })
}

pub(crate) struct ErrorTypeShape;

impl JsonSchema for ErrorTypeShape {
    fn schema_name() -> Cow<'static, str> {
        "ErrorType".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({ "enum": ErrorType::ALL, "description": "The type of error." })
    }
}

/// Exactly one per call.
#[derive(JsonSchema)]
#[schemars(rename = "ToolResponse", untagged, deny_unknown_fields, transform = one_of)]
#[expect(dead_code, reason = "only its schema is used")]
pub(crate) enum EnvelopeShape {
    #[schemars(title = "Success")]
    Success {
        #[schemars(extend("const" = true))]
        ok: bool,
        /// The tool's result; null for a pure side effect.
        data: Value,
        /// Changes to the session that the handler requests, in order.
        #[schemars(skip_serializing_if = "Vec::is_empty")]
        intents: Vec<IntentShape>,
        meta: MetaShape,
    },
    #[schemars(title = "Failure")]
    Failure {
        #[schemars(extend("const" = false))]
        ok: bool,
        error: Box<ToolErrorShape>,
        /// Changes to the session that the handler requests, in order.
        #[schemars(skip_serializing_if = "Vec::is_empty")]
        intents: Vec<IntentShape>,
        meta: MetaShape,
    },
}

#[derive(JsonSchema)]
#[schemars(inline)]
#[expect(dead_code, reason = "only its schema is used")]
pub(crate) struct IntentShape {
    #[schemars(schema_with = "any")]
    r#type: Value,
}

#[derive(JsonSchema)]
#[schemars(rename = "ToolError", rename_all = "camelCase", deny_unknown_fields)]
#[expect(dead_code, reason = "only its schema is used")]
pub(crate) struct ToolErrorShape {
    r#type: ErrorTypeShape,
    /// One sentence that the model can act on.
    message: String,
    retryable: bool,
    /// For VALIDATION the list of `{path, keyword, message}`.
    #[schemars(skip_serializing_if = "Value::is_null")]
    details: Value,
    /// What to do instead.
    #[schemars(skip_serializing_if = "Option::is_none")]
    suggestion: Option<String>,
    /// Whether some changes may have been made.
    #[schemars(skip_serializing_if = "Option::is_none")]
    partial_side_effects: Option<bool>,
    #[schemars(skip_serializing_if = "Option::is_none")]
    idempotency_required: Option<bool>,
    #[schemars(skip_serializing_if = "Option::is_none")]
    retry_after_ms: Option<u64>,
    #[schemars(skip_serializing_if = "Option::is_none")]
    max_retries: Option<u32>,
    #[schemars(rename = "confirmation_request", skip_serializing_if = "Option::is_none")]
    confirmation_request: Option<ConfirmationShape>,
}

/// Asks the user to approve exactly this call.
#[derive(JsonSchema)]
#[schemars(rename = "ConfirmationRequest", deny_unknown_fields)]
#[expect(dead_code, reason = "only its schema is used")]
pub(crate) struct ConfirmationShape {
    /// Answers the confirmation. For the client, never for the model.
    #[schemars(skip_serializing_if = "Option::is_none")]
    token: Option<String>,
    /// Milliseconds since 1970.
    expires: u64,
    tool: String,
    /// The arguments of the call.
    args: Value,
    /// One sentence for the user.
    preview: String,
    /// Why the user is asked, where the tool asks only at times.
    #[schemars(skip_serializing_if = "Option::is_none")]
    reason: Option<String>,
    /// How the user may answer; without it, in any way.
    #[schemars(rename = "confirmBy", skip_serializing_if = "Option::is_none")]
    confirm_by: Option<ConfirmBy>,
    /// What the user must say to approve it by voice. For the client, never for the model.
    #[schemars(skip_serializing_if = "Option::is_none")]
    code: Option<String>,
}

#[derive(JsonSchema)]
#[schemars(rename = "Meta", rename_all = "camelCase", deny_unknown_fields)]
#[expect(dead_code, reason = "only its schema is used")]
pub(crate) struct MetaShape {
    tool_id: String,
    tool_version: String,
    registry_version: String,
    response_schema_version: String,
    /// Whole milliseconds.
    duration: u64,
    #[schemars(extend("format" = "date-time"))]
    timestamp: String,
    #[schemars(skip_serializing_if = "Option::is_none")]
    retry_count: Option<u32>,
    /// The call that made this one.
    #[schemars(skip_serializing_if = "Option::is_none")]
    parent_call_id: Option<String>,
    /// A task that continues after the response.
    #[schemars(skip_serializing_if = "Option::is_none")]
    background_task_id: Option<String>,
    /// A replayed response.
    #[schemars(rename = "_idempotent_cache_hit", skip_serializing_if = "Option::is_none")]
    idempotent_cache_hit: Option<bool>,
    #[schemars(rename = "_original_turn", skip_serializing_if = "Option::is_none")]
    original_turn: Option<u64>,
}

/// A gate's verdict about a call.
#[derive(JsonSchema)]
#[schemars(rename = "Gate", deny_unknown_fields)]
#[expect(dead_code, reason = "only its schema is used")]
pub(crate) struct GateShape {
    gate: String,
    #[schemars(extend("enum" = [
        "passed", "changed", "reserved", "replayed", "refused", "asked", "approved", "scheduled",
        "not_reached",
    ]))]
    verdict: String,
    /// Details of the verdict.
    #[schemars(skip_serializing_if = "Value::is_null")]
    note: Value,
}

/// A line of the audit log. Further fields depend on the event.
#[derive(JsonSchema)]
#[schemars(rename = "AuditLine", rename_all = "camelCase")]
#[expect(dead_code, reason = "only its schema is used")]
pub(crate) struct AuditLineShape {
    #[schemars(skip_serializing_if = "Option::is_none")]
    seq: Option<i64>,
    event: String,
    /// `handler` where the event is a tool's own.
    #[schemars(skip_serializing_if = "Option::is_none")]
    source: Option<String>,
    time: String,
    #[schemars(skip_serializing_if = "Option::is_none")]
    session_id: Option<String>,
    #[schemars(skip_serializing_if = "Option::is_none")]
    client_id: Option<String>,
    #[schemars(skip_serializing_if = "String::is_empty", extend("type" = ["null", "string"]))]
    tool_id: String,
    #[schemars(skip_serializing_if = "Option::is_none")]
    ok: Option<bool>,
    #[schemars(skip_serializing_if = "Option::is_none")]
    error_type: Option<ErrorTypeShape>,
}

/// Any JSON.
pub(crate) fn any(_: &mut SchemaGenerator) -> Schema {
    json_schema!({})
}

/// Any JSON object.
pub(crate) fn object(_: &mut SchemaGenerator) -> Schema {
    json_schema!({ "type": "object" })
}

/// A JSON object or null.
pub(crate) fn nullable_object(_: &mut SchemaGenerator) -> Schema {
    json_schema!({ "type": ["object", "null"] })
}
