//! `GET /api/tools`: the tools of the registry.

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
        return Err(ApiError::not_found("Tool not found. `GET /api/tools` lists the tools."));
    };
    let mut details = summary(tool);
    details["parameters"] = tool.compiled().json_schema.clone();
    details["documentation"] = json!(tool.documentation());
    Ok(Json(details))
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

pub(super) fn describe_list() -> Operation {
    let schema = json!({
        "type": "object", "required": ["registryVersion", "commit", "tools"],
        "properties": {
            "registryVersion": { "type": "string" },
            "commit": { "type": ["string", "null"], "description": "The commit that the registry was built from." },
            "tools": { "type": "array", "items": reference("schemas", "Tool") },
        },
    });
    let example = json!({ "registryVersion": "1.0.3fa9c2e1", "commit": "a1b2c3d4", "tools": [example()] });
    Operation::new("listTools", "tools", "List the tools").json_response(
        200,
        "All tools.",
        schema,
        Some(example),
    )
}

pub(super) fn describe() -> Operation {
    let whole = json!({
        "allOf": [reference("schemas", "Tool")], "required": ["parameters", "documentation"],
        "properties": {
            "parameters": { "type": "object", "description": "JSON Schema of the arguments." },
            "documentation": { "type": "string", "description": "The guide, in Markdown." },
        },
    });
    let mut example = example();
    example["parameters"] = json!({ "type": "object", "properties": { "query": { "type": "string" } } });
    example["documentation"] = "# Search\n\nFinds records by words.".into();
    Operation::new("getTool", "tools", "Get a tool with its parameters and guide")
        .path_id("The tool's id.", "kb_search")
        .json_response(200, "The tool.", whole, Some(example))
        .errors(&[404])
}

/// A tool without parameters and guide.
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

fn example() -> Value {
    json!({
        "id": "kb_search", "version": "1.0.0", "category": "retrieval", "summary": "Finds records.",
        "description": "Finds records of the knowledge base.", "sideEffects": "read_only",
        "requiresConfirmation": false, "allowedModes": ["text", "voice"], "latencyBudgetMs": 800,
    })
}
