//! `GET /api/tools`: the tools of the registry.

use std::sync::Arc;

use axum::extract::State;
use axum::{Extension, Json};
use quarterdeck_agents::text::Refusal;
use quarterdeck_contracts::{Category, Confirmation, Mode, SideEffects, ToolId};
use quarterdeck_runtime::{LoadedTool, Snapshot};
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::{Value, json};

use super::openapi::Operation;
use super::openapi::envelope::object;
use crate::app::App;
use crate::caller::Caller;
use crate::error::ApiError;
use crate::input::Id;

/// A tool without parameters and guide.
#[derive(Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(rename = "Tool")]
pub(super) struct ToolSummary {
    id: ToolId,
    version: String,
    category: Category,
    summary: String,
    description: String,
    side_effects: SideEffects,
    requires_confirmation: Confirmation,
    allowed_modes: Vec<Mode>,
    latency_budget_ms: u64,
}

#[derive(Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(super) struct ToolList {
    registry_version: String,
    /// The commit that the registry was built from.
    commit: Option<String>,
    tools: Vec<ToolSummary>,
}

#[derive(Serialize, JsonSchema)]
pub(super) struct ToolDetails {
    #[serde(flatten)]
    tool: ToolSummary,
    /// JSON Schema of the arguments.
    #[schemars(schema_with = "object")]
    parameters: Value,
    /// The guide, in Markdown.
    documentation: String,
}

pub(super) async fn list(
    State(app): State<Arc<App>>,
    Extension(caller): Extension<Caller>,
) -> Result<Json<ToolList>, ApiError> {
    let snapshot = tools_of(&app, &caller)?;
    Ok(Json(ToolList {
        registry_version: snapshot.version().to_owned(),
        commit: snapshot.commit().map(str::to_owned),
        tools: snapshot.tools().map(ToolSummary::new).collect(),
    }))
}

/// The tools that a new session of the caller would get.
fn tools_of(app: &App, caller: &Caller) -> Result<Arc<Snapshot>, ApiError> {
    let pin = app.orchestrator.choose_tools(&caller.client, &app.registry).map_err(Refusal::Session)?;
    Ok(pin.snapshot)
}

pub(super) async fn get(
    State(app): State<Arc<App>>,
    Extension(caller): Extension<Caller>,
    Id(id): Id,
) -> Result<Json<ToolDetails>, ApiError> {
    let snapshot = tools_of(&app, &caller)?;
    let Some(tool) = snapshot.find(&id) else {
        return Err(ApiError::not_found("Tool not found. `GET /api/tools` lists the tools."));
    };
    Ok(Json(ToolDetails {
        tool: ToolSummary::new(tool),
        parameters: tool.compiled().json_schema.clone(),
        documentation: tool.documentation().to_owned(),
    }))
}

impl ToolSummary {
    pub(super) fn new(tool: &LoadedTool) -> Self {
        let metadata = tool.metadata();
        Self {
            id: metadata.tool_id.clone(),
            version: metadata.version.to_string(),
            category: metadata.category,
            summary: tool.summary().to_owned(),
            description: metadata.description.clone(),
            side_effects: metadata.side_effects,
            requires_confirmation: metadata.requires_confirmation,
            allowed_modes: metadata.allowed_modes.clone(),
            latency_budget_ms: metadata.latency_budget_ms,
        }
    }
}

pub(super) fn describe_list() -> Operation {
    let example = json!({ "registryVersion": "1.0.3fa9c2e1", "commit": "a1b2c3d4", "tools": [example()] });
    Operation::new("listTools", "tools", "List the tools").json_response::<ToolList>(
        200,
        "All tools.",
        Some(example),
    )
}

pub(super) fn describe() -> Operation {
    let mut example = example();
    example["parameters"] = json!({ "type": "object", "properties": { "query": { "type": "string" } } });
    example["documentation"] = "# Search\n\nFinds records by words.".into();
    Operation::new("getTool", "tools", "Get a tool with its parameters and guide")
        .path_id("The tool's id.", "kb_search")
        .json_response::<ToolDetails>(200, "The tool.", Some(example))
        .errors(&[404])
}

fn example() -> Value {
    json!({
        "id": "kb_search", "version": "1.0.0", "category": "retrieval", "summary": "Finds records.",
        "description": "Finds records of the knowledge base.", "sideEffects": "read_only",
        "requiresConfirmation": false, "allowedModes": ["text", "voice"], "latencyBudgetMs": 800,
    })
}
