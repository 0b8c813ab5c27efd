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

/// What the agent is called.
pub(super) const AGENT: &str = "quarterdeck";
/// When it was made: the API wants a number.
const CREATED: u64 = 1_760_000_000;

pub(super) async fn list() -> Json<Value> {
    Json(json!({ "object": "list", "data": [entry()] }))
}

pub(super) async fn get(State(_): State<Arc<App>>, Id(id): Id) -> Response {
    if id == AGENT { Json(entry()).into_response() } else { unknown(&id).openai() }
}

/// The model that a request names. One that names none means the agent.
pub(super) fn check(_: &App, model: &Value) -> Result<&'static str, ApiError> {
    match model {
        Value::Null => Ok(AGENT),
        Value::String(name) if name == AGENT => Ok(AGENT),
        Value::String(name) => Err(unknown(name)),
        _ => Err(ApiError { param: Some("model"), ..ApiError::validation("`model` must be a string.") }),
    }
}

fn entry() -> Value {
    json!({ "id": AGENT, "object": "model", "created": CREATED, "owned_by": "quarterdeck" })
}

fn unknown(name: &str) -> ApiError {
    ApiError {
        status: StatusCode::NOT_FOUND,
        param: Some("model"),
        code: Some("model_not_found"),
        ..ApiError::not_found(format!("There is no model called `{name}`; this server has `{AGENT}`."))
    }
}

pub(super) fn list_described() -> Operation {
    let data = json!({ "type": "array", "items": reference("schemas", "Model") });
    let schema = json!({
        "type": "object", "required": ["object", "data"], "additionalProperties": false,
        "properties": { "object": { "const": "list" }, "data": data },
    });
    let example = json!({ "object": "list", "data": [entry()] });
    Operation::new("listModels", "openai", "The models: the agent alone").gives_json(
        200,
        "One entry.",
        schema,
        Some(example),
    )
}

pub(super) fn described() -> Operation {
    Operation::new("getModel", "openai", "One model")
        .takes_id("The model's id.", AGENT)
        .gives_json(200, "The model.", reference("schemas", "Model"), Some(entry()))
        .refuses(&[404])
}
