//! `GET /api/deck/registry`: the loaded tools, and the changes since the previous registry.

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
                "parameters": tool.compiled().json_schema, "example": first_example(tool.documentation()),
            })
        })
        .collect();
    Json(json!({
        "version": snapshot.version(), "contentHash": snapshot.content_hash(), "commit": snapshot.commit(),
        "isLocked": app.registry.is_locked(), "tools": tools, "change": app.operations.change,
    }))
}

/// The first JSON block under the guide's examples, which the compiler has checked.
fn first_example(guide: &str) -> Option<Value> {
    let mut lines = guide.lines().skip_while(|line| line.trim() != "## Examples").skip(1);
    let opened =
        lines.by_ref().take_while(|line| !line.starts_with("## ")).any(|line| line.trim() == "```json");
    let block: Vec<&str> = lines.take_while(|line| line.trim() != "```").collect();
    let call: Value = serde_json::from_str(&block.join("\n")).ok()?;
    (opened && call.is_object()).then_some(call)
}

pub(super) fn describe() -> Operation {
    let tool = json!({
        "type": "object", "required": ["id", "version", "category", "parameters"],
        "properties": {
            "id": { "type": "string" }, "version": { "type": "string" },
            "category": { "enum": ["retrieval", "action", "utility"] },
            "parameters": { "type": "object", "description": "JSON Schema of the arguments." },
            "example": { "type": ["object", "null"], "description": "The first example of its guide." },
        },
    });
    let change = json!({
        "type": ["object", "null"], "required": ["previous", "isBreaking", "changes"],
        "description": "The changes since the previous registry; null if there is none.",
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
    operation("getRegistry", "Get the registry and its changes").json_response(
        200,
        "The registry.",
        schema,
        None,
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_json_block_under_examples_is_the_example() {
        let guide = "# Tool\n\n```json\n{ \"not\": 1 }\n```\n\n## Examples\n\nOne:\n\n```json\n{\n  \"a\": 1\n}\n```\n\n\
                     Response data:\n\n```json\n{ \"b\": 2 }\n```\n";
        assert_eq!(first_example(guide), Some(json!({ "a": 1 })));
        assert_eq!(first_example("## Examples\n\nNone.\n\n## Watch Out\n\n```json\n{}\n```\n"), None);
        assert_eq!(first_example("## Examples\n\n```json\n[1]\n```\n"), None);
        assert_eq!(first_example(""), None);
    }
}
