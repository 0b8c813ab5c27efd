//! `GET /api/tools`: what the registry holds.

use std::sync::Arc;

use axum::Json;
use axum::extract::{Path, State};
use quarterdeck_runtime::LoadedTool;
use serde_json::{Value, json};

use crate::app::App;
use crate::error::ApiError;

pub(super) async fn list(State(app): State<Arc<App>>) -> Json<Value> {
    let snapshot = app.registry.snapshot();
    let tools: Vec<Value> = snapshot.tools().map(summary).collect();
    Json(json!({ "registryVersion": snapshot.version(), "commit": snapshot.commit(), "tools": tools }))
}

pub(super) async fn get(
    State(app): State<Arc<App>>,
    Path(id): Path<String>,
) -> Result<Json<Value>, ApiError> {
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
