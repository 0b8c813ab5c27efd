//! `GET /api/deck/registry`: the tools that are loaded, and how they differ from those before.

use axum::Json;
use axum::extract::State;
use serde_json::{Value, json};

use super::{Operator, Shared, operation};
use crate::routes::openapi::Operation;

pub(super) async fn get(State(app): Shared, _: Operator) -> Json<Value> {
    let snapshot = app.registry.snapshot();
    let tools: Vec<Value> = snapshot
        .tools()
        .map(|tool| {
            let metadata = tool.metadata();
            json!({
                "id": metadata.tool_id, "version": metadata.version, "category": metadata.category,
                "sideEffects": metadata.side_effects, "allowedModes": metadata.allowed_modes,
                "requiresConfirmation": metadata.requires_confirmation, "summary": tool.summary(),
                "parameters": tool.compiled().json_schema,
            })
        })
        .collect();
    Json(json!({
        "version": snapshot.version(), "contentHash": snapshot.content_hash(), "commit": snapshot.commit(),
        "isLocked": app.registry.is_locked(), "tools": tools, "change": app.operations.change,
    }))
}

pub(super) fn described() -> Operation {
    let tool = json!({
        "type": "object", "required": ["id", "version", "category", "parameters"],
        "properties": {
            "id": { "type": "string" }, "version": { "type": "string" },
            "category": { "enum": ["retrieval", "action", "utility"] },
            "parameters": { "type": "object", "description": "JSON Schema of the arguments." },
        },
    });
    let change = json!({
        "type": ["object", "null"], "required": ["previous", "isBreaking", "changes"],
        "description": "How it differs from the registry before; null when none is known.",
        "properties": {
            "previous": { "type": "string" }, "isBreaking": { "type": "boolean" },
            "changes": {
                "type": "array",
                "items": {
                    "type": "object", "required": ["tool", "effect", "what"],
                    "properties": {
                        "tool": { "type": "string" }, "effect": { "enum": ["breaks", "changes", "adds"] },
                        "what": { "type": "string" },
                        "example": { "description": "Arguments that were accepted before and are refused now." },
                    },
                },
            },
        },
    });
    let schema = json!({
        "type": "object", "required": ["version", "contentHash", "commit", "isLocked", "tools", "change"],
        "properties": {
            "version": { "type": "string" }, "contentHash": { "type": "string" },
            "commit": { "type": ["string", "null"] }, "isLocked": { "type": "boolean" },
            "tools": { "type": "array", "items": tool }, "change": change,
        },
    });
    operation("getRegistry", "The registry, and how it differs from the one before").gives_json(
        200,
        "The registry.",
        schema,
        None,
    )
}
