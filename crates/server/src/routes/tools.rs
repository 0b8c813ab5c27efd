//! `GET /api/tools`: what the registry holds.

use std::sync::Arc;

use axum::Json;
use axum::extract::State;
use quarterdeck_runtime::LoadedTool;
use serde_json::{Value, json};

use super::openapi::{Operation, reference};
use crate::app::App;
use crate::error::ApiError;
use crate::input::Id;

pub(super) async fn list(State(app): State<Arc<App>>) -> Json<Value> {
    let snapshot = app.registry.snapshot();
    let tools: Vec<Value> = snapshot.tools().map(summary).collect();
    Json(json!({ "registryVersion": snapshot.version(), "commit": snapshot.commit(), "tools": tools }))
}

pub(super) async fn get(State(app): State<Arc<App>>, Id(id): Id) -> Result<Json<Value>, ApiError> {
    let snapshot = app.registry.snapshot();
    let Some(tool) = snapshot.find(&id) else {
        return Err(ApiError::not_found("There is no such tool. `GET /api/tools` lists them."));
    };
    let mut shown = summary(tool);
    shown["parameters"] = tool.compiled().json_schema.clone();
    shown["documentation"] = json!(tool.documentation());
    Ok(Json(shown))
}

fn summary(tool: &LoadedTool) -> Value {
    let metadata = tool.metadata();
    json!({
        "id": metadata.tool_id, "version": metadata.version, "category": metadata.category,
        "summary": tool.summary(), "description": metadata.description, "sideEffects": metadata.side_effects,
        "requiresConfirmation": metadata.requires_confirmation, "allowedModes": metadata.allowed_modes,
        "latencyBudgetMs": metadata.latency_budget_ms,
    })
}

pub(super) fn list_described() -> Operation {
    let schema = json!({
        "type": "object", "required": ["registryVersion", "commit", "tools"],
        "properties": {
            "registryVersion": { "type": "string" },
            "commit": { "type": ["string", "null"], "description": "What the registry was built from." },
            "tools": { "type": "array", "items": reference("schemas", "Tool") },
        },
    });
    let example = json!({ "registryVersion": "1.0.3fa9c2e1", "commit": "a1b2c3d4", "tools": [shown()] });
    Operation::new("listTools", "tools", "The tools").gives_json(200, "All of them.", schema, Some(example))
}

pub(super) fn described() -> Operation {
    let whole = json!({
        "allOf": [reference("schemas", "Tool")], "required": ["parameters", "documentation"],
        "properties": {
            "parameters": { "type": "object", "description": "JSON Schema of the arguments." },
            "documentation": { "type": "string", "description": "The guide, in Markdown." },
        },
    });
    let mut example = shown();
    example["parameters"] = json!({ "type": "object", "properties": { "query": { "type": "string" } } });
    example["documentation"] = "# Search\n\nFinds records by words.".into();
    Operation::new("getTool", "tools", "One tool, with its parameters and its guide")
        .takes_id("The tool's id.", "kb_search")
        .gives_json(200, "The tool.", whole, Some(example))
        .refuses(&[404])
}

/// A tool without its parameters and its guide, for the shared schemas.
pub(super) fn schema() -> Value {
    json!({
        "type": "object",
        "required": [
            "id", "version", "category", "summary", "description", "sideEffects", "requiresConfirmation",
            "allowedModes", "latencyBudgetMs",
        ],
        "properties": {
            "id": { "type": "string" },
            "version": { "type": "string" },
            "category": { "enum": ["retrieval", "action", "utility"] },
            "summary": { "type": "string" },
            "description": { "type": "string" },
            "sideEffects": { "enum": ["none", "read_only", "writes"] },
            "requiresConfirmation": { "enum": [true, false, "policy"] },
            "allowedModes": { "type": "array", "items": { "enum": ["text", "voice"] } },
            "latencyBudgetMs": { "type": "integer", "minimum": 0 },
        },
    })
}

fn shown() -> Value {
    json!({
        "id": "kb_search", "version": "1.0.0", "category": "retrieval", "summary": "Finds records.",
        "description": "Finds records of the knowledge base.", "sideEffects": "read_only",
        "requiresConfirmation": false, "allowedModes": ["text", "voice"], "latencyBudgetMs": 800,
    })
}
