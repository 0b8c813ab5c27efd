//! `GET /metrics`: for people and scripts as JSON, for Prometheus as its text. Operators only.

use std::sync::Arc;

use axum::extract::{Query, State};
use axum::http::{HeaderMap, header};
use axum::response::{IntoResponse, Response};
use axum::{Extension, Json};
use quarterdeck_contracts::ErrorType;
use serde::Deserialize;

use crate::app::App;
use crate::caller::Caller;
use crate::error::ApiError;

#[derive(Deserialize)]
pub(super) struct Asked {
    format: Option<String>,
}

pub(super) async fn get(
    State(app): State<Arc<App>>,
    Extension(caller): Extension<Caller>,
    Query(asked): Query<Asked>,
    headers: HeaderMap,
) -> Result<Response, ApiError> {
    if !caller.is_operator {
        return Err(ApiError::new(
            ErrorType::Auth,
            "This is for operators: send the admin token as a bearer token.",
        ));
    }
    let accepts = headers.get(header::ACCEPT).and_then(|accept| accept.to_str().ok()).unwrap_or("");
    let is_prometheus = match asked.format.as_deref() {
        Some("prometheus") => true,
        Some("json") => false,
        Some(_) => return Err(ApiError::validation("`format` is `json` or `prometheus`.")),
        None => accepts.contains("text/plain") || accepts.contains("openmetrics"),
    };
    let metrics = app.orchestrator.metrics();
    if is_prometheus {
        let kind = [(header::CONTENT_TYPE, "text/plain; version=0.0.4; charset=utf-8")];
        return Ok((kind, metrics.prometheus()).into_response());
    }
    Ok(Json(metrics.json()).into_response())
}
