//! `GET /v1/models`: one entry, the agent.

use axum::Json;
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::{Value, json};

use super::openapi::Operation;
use crate::error::ApiError;
use crate::input::Id;

/// The agent's model name.
pub(super) const AGENT: &str = "quarterdeck";
/// Required by the API.
const CREATED: u64 = 1_760_000_000;

/// A model of the OpenAI API.
#[derive(Serialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub(super) struct Model {
    id: &'static str,
    #[schemars(extend("const" = "model"))]
    object: &'static str,
    created: u64,
    owned_by: &'static str,
}

#[derive(Serialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub(super) struct ModelList {
    #[schemars(extend("const" = "list"))]
    object: &'static str,
    data: [Model; 1],
}

const ENTRY: Model = Model { id: AGENT, object: "model", created: CREATED, owned_by: "quarterdeck" };

pub(super) async fn list() -> Json<ModelList> {
    Json(ModelList { object: "list", data: [ENTRY] })
}

pub(super) async fn get(Id(id): Id) -> Response {
    if id == AGENT { Json(ENTRY).into_response() } else { not_found(&id).openai() }
}

/// The requested model; none means the agent.
pub(super) fn check(model: &Value) -> Result<&'static str, ApiError> {
    match model {
        Value::Null => Ok(AGENT),
        Value::String(name) if name == AGENT => Ok(AGENT),
        Value::String(name) => Err(not_found(name)),
        _ => Err(ApiError { param: Some("model"), ..ApiError::validation("`model` must be a string.") }),
    }
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
    let example = json!(ModelList { object: "list", data: [ENTRY] });
    Operation::new("listModels", "openai", "List the models").json_response::<ModelList>(
        200,
        "The agent.",
        Some(example),
    )
}

pub(super) fn describe() -> Operation {
    Operation::new("getModel", "openai", "Get a model")
        .path_id("The model's id.", AGENT)
        .json_response::<Model>(200, "The model.", Some(json!(ENTRY)))
        .errors(&[404])
}
