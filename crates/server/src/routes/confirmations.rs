//! `POST /api/confirmations`: the user's decision about one call.

use std::sync::Arc;

use axum::body::Body;
use axum::extract::State;
use axum::http::{HeaderMap, StatusCode};
use axum::{Extension, Json};
use quarterdeck_agents::text::ConfirmationReply;
use quarterdeck_contracts::{ErrorType, Outcome, ToolResponse};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::json;

use super::openapi::Operation;
use super::openapi::envelope::{self, EnvelopeShape};
use super::openapi::schemas::one_of;
use crate::app::App;
use crate::caller::{Caller, situation};
use crate::error::{ApiError, ErrorBody};
use crate::input;

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "ConfirmationAnswer")]
struct DecisionRequest {
    /// The token of the confirmation.
    token: String,
    /// Whether the call may run.
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
    let show = app.settings.page.load().show;
    Ok((status, Json(show.response(&response).into_owned())))
}

/// The envelope of a call that did not run, or an error of the request.
#[derive(JsonSchema)]
#[schemars(inline, untagged, transform = one_of)]
#[expect(dead_code, reason = "only its schema is used")]
enum RefusedShape<'a> {
    Envelope(Box<EnvelopeShape>),
    Error(ErrorBody<'a>),
}

pub(super) fn describe() -> Operation {
    let invalid = json!({ "error": {
        "type": "CONFIRMATION_INVALID", "message": "This confirmation was already answered or does not exist.",
        "retryable": false,
    } });
    Operation::new("answerConfirmation", "chat", "Approve or deny a tool call")
        .description(
            "The response is the envelope of the call: its result, or CONFIRMATION_DENIED. The model learns of it in \
             the next turn. Tokens come with the part `data-confirmation` of an answer, are valid once, and belong to \
             the client that received them. Unknown fields are refused.",
        )
        .body::<DecisionRequest>(&[("approve", json!({ "token": "cnf_1", "approve": true }))])
        .json_response::<EnvelopeShape>(200, "The envelope of the call.", Some(envelope::example()))
        .json_response::<RefusedShape<'_>>(
            400,
            "The body is invalid, or no such confirmation is open.",
            Some(invalid),
        )
        .json_response::<RefusedShape<'_>>(410, "The confirmation has expired, or its session has ended.", None)
        .errors(&[404])
}
