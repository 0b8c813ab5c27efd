//! `POST /api/confirmations`: a person's word about one call.

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
struct Word {
    token: String,
    approve: bool,
}

pub(super) async fn post(
    State(app): State<Arc<App>>,
    Extension(caller): Extension<Caller>,
    headers: HeaderMap,
    body: Body,
) -> Result<(StatusCode, Json<ToolResponse>), ApiError> {
    let Word { token, approve } = input::typed(&app, body).await?;
    let visitor = caller.visitor(situation(&headers, None));
    let response =
        app.text.resolve_confirmation(&visitor, &ConfirmationReply { token, is_approved: approve }).await?;
    // Whatever came of the call is an answer; only a question that could not be answered is a refusal.
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

pub(super) fn described() -> Operation {
    let either = json!({ "oneOf": [reference("schemas", "ToolResponse"), reference("schemas", "Error")] });
    let refused = || -> Option<Value> {
        Some(json!({ "error": {
            "type": "CONFIRMATION_INVALID",
            "message": "This question has been answered already, or does not exist.", "retryable": false,
        } }))
    };
    Operation::new("answerConfirmation", "chat", "Approve or deny a call that waits for the person's word")
        .about(
            "The answer is the envelope of the call: what it came to, or CONFIRMATION_DENIED. The model learns of it in \
             the next turn. Tokens come with the part `data-confirmation` of an answer, can be used once, and belong to \
             the client that was asked. An unknown field is refused.",
        )
        .takes_body("ConfirmationAnswer", &[("approve", json!({ "token": "cnf_1", "approve": true }))])
        .gives_json(200, "What came of the call.", reference("schemas", "ToolResponse"), Some(envelope::example()))
        .gives_json(400, "The body is not understood, or no such question is open.", either.clone(), refused())
        .gives_json(410, "The question has expired, or its session has ended.", either, None)
        .refuses(&[404])
}

/// The body, for the shared schemas.
pub(super) fn body_schema() -> Value {
    json!({
        "type": "object", "required": ["token", "approve"], "additionalProperties": false,
        "properties": {
            "token": { "type": "string", "description": "What the person was shown." },
            "approve": { "type": "boolean", "description": "Whether the call may run." },
        },
    })
}
