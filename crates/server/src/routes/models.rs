//! `GET /v1/models`: one entry, the agent.

use std::sync::Arc;

use axum::Json;
use axum::extract::State;
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use serde_json::{Value, json};

use super::openapi::{Operation, reference};
use crate::app::App;
use crate::error::ApiError;
use crate::input::Id;

/// The agent's model name.
pub(super) const AGENT: &str = "quarterdeck";
/// Required by the API.
const CREATED: u64 = 1_760_000_000;

pub(super) async fn list() -> Json<Value> {
    Json(json!({ "object": "list", "data": [entry()] }))
}

pub(super) async fn get(State(_): State<Arc<App>>, Id(id): Id) -> Response {
    if id == AGENT { Json(entry()).into_response() } else { not_found(&id).openai() }
}

/// The requested model; none means the agent.
pub(super) fn check(_: &App, model: &Value) -> Result<&'static str, ApiError> {
    match model {
        Value::Null => Ok(AGENT),
        Value::String(name) if name == AGENT => Ok(AGENT),
        Value::String(name) => Err(not_found(name)),
        _ => Err(ApiError { param: Some("model"), ..ApiError::validation("`model` must be a string.") }),
    }
}

fn entry() -> Value {
    json!({ "id": AGENT, "object": "model", "created": CREATED, "owned_by": "quarterdeck" })
}

fn not_found(name: &str) -> ApiError {
    ApiError {
        status: StatusCode::NOT_FOUND,
        param: Some("model"),
        code: Some("model_not_found"),
        ..ApiError::not_found(format!("Unknown model `{name}`; use `{AGENT}`."))
    }
}

pub(super) fn describe_list() -> Operation {
    let data = json!({ "type": "array", "items": reference("schemas", "Model") });
    let schema = json!({
        "type": "object", "required": ["object", "data"], "additionalProperties": false,
        "properties": { "object": { "const": "list" }, "data": data },
    });
    let example = json!({ "object": "list", "data": [entry()] });
    Operation::new("listModels", "openai", "List the models").json_response(
        200,
        "The agent.",
        schema,
        Some(example),
    )
}

pub(super) fn describe() -> Operation {
    Operation::new("getModel", "openai", "Get a model")
        .path_id("The model's id.", AGENT)
        .json_response(200, "The model.", reference("schemas", "Model"), Some(entry()))
        .errors(&[404])
}
