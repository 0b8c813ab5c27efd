//! `POST /api/confirmations`: the user's decision about one call.

use std::sync::Arc;

use axum::body::Body;
use axum::extract::State;
use axum::http::{HeaderMap, StatusCode};
use axum::{Extension, Json};
use quarterdeck_agents::text::ConfirmationReply;
use quarterdeck_contracts::{ErrorType, Outcome, ToolResponse};
use serde::Deserialize;
use serde_json::{Value, json};

use super::openapi::{Operation, envelope, reference};
use crate::app::App;
use crate::caller::{Caller, situation};
use crate::error::ApiError;
use crate::input;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct DecisionRequest {
    token: String,
    approve: bool,
}

pub(super) async fn post(
    State(app): State<Arc<App>>,
    Extension(caller): Extension<Caller>,
    headers: HeaderMap,
    body: Body,
) -> Result<(StatusCode, Json<ToolResponse>), ApiError> {
    let DecisionRequest { token, approve } = input::typed_json(&app, body).await?;
    let user = caller.user(situation(&headers, None));
    let response =
        app.text.resolve_confirmation(&user, &ConfirmationReply { token, is_approved: approve }).await?;
    // Any outcome of the call is a success; only an invalid or expired confirmation is refused.
    let status = match &response.outcome {
        Outcome::Failure(error)
            if matches!(error.kind, ErrorType::ConfirmationInvalid | ErrorType::ConfirmationExpired) =>
        {
            StatusCode::from_u16(error.kind.http_status()).unwrap_or(StatusCode::BAD_REQUEST)
        }
        _ => StatusCode::OK,
    };
    Ok((status, Json(ToolResponse::clone(&response))))
}

pub(super) fn describe() -> Operation {
    let either = json!({ "oneOf": [reference("schemas", "ToolResponse"), reference("schemas", "Error")] });
    let invalid = || -> Option<Value> {
        Some(json!({ "error": {
            "type": "CONFIRMATION_INVALID",
            "message": "This confirmation was already answered or does not exist.", "retryable": false,
        } }))
    };
    Operation::new("answerConfirmation", "chat", "Approve or deny a tool call")
        .description(
            "The response is the envelope of the call: its result, or CONFIRMATION_DENIED. The model learns of it in the \
             next turn. Tokens come with the part `data-confirmation` of an answer, are valid once, and belong to the \
             client that received them. Unknown fields are refused.",
        )
        .body("ConfirmationAnswer", &[("approve", json!({ "token": "cnf_1", "approve": true }))])
        .json_response(200, "The envelope of the call.", reference("schemas", "ToolResponse"), Some(envelope::example()))
        .json_response(400, "The body is invalid, or no such confirmation is open.", either.clone(), invalid())
        .json_response(410, "The confirmation has expired, or its session has ended.", either, None)
        .errors(&[404])
}

pub(super) fn body_schema() -> Value {
    json!({
        "type": "object", "required": ["token", "approve"], "additionalProperties": false,
        "properties": {
            "token": { "type": "string", "description": "The token of the confirmation." },
            "approve": { "type": "boolean", "description": "Whether the call may run." },
        },
    })
}
