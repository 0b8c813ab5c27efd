//! `GET /openapi.json`: the HTTP API, described, and `/docs`, a page that shows the description.

use axum::Json;
use axum::http::header;
use axum::response::{IntoResponse, Response};
use serde_json::{Value, json};

pub(super) async fn get() -> Json<Value> {
    Json(document())
}

pub(super) async fn docs() -> Response {
    ([(header::CONTENT_TYPE, "text/html; charset=utf-8")], "").into_response()
}

/// The description.
pub fn document() -> Value {
    json!({ "openapi": "3.1.0", "info": { "title": "Quarterdeck", "version": env!("CARGO_PKG_VERSION") }, "paths": {} })
}
