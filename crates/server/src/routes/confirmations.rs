//! `POST /api/confirmations`: a person's word about one call.

use std::sync::Arc;

use axum::body::Body;
use axum::extract::State;
use axum::http::{HeaderMap, StatusCode};
use axum::{Extension, Json};
use quarterdeck_agents::text::Decision;
use quarterdeck_contracts::{ErrorType, Outcome, ToolResponse};
use serde::Deserialize;

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
    let response = app.text.confirm(&visitor, &Decision { token, is_approved: approve }).await?;
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
