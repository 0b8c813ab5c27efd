//! `GET /api/deck/registry`: the loaded tools, and the changes since the previous registry.

use axum::Json;
use axum::extract::State;
use quarterdeck_runtime::LoadedTool;
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::Value;

use super::{Operator, Shared, operation};
use crate::deck::RegistryChange;
use crate::routes::openapi::Operation;
use crate::routes::openapi::envelope::{nullable_object, object};
use crate::routes::tools::ToolSummary;

#[derive(Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(super) struct RegistryView {
    version: String,
    content_hash: String,
    commit: Option<String>,
    is_locked: bool,
    tools: Vec<RegistryTool>,
    /// The changes since the previous registry; null if there is none.
    change: Option<RegistryChange>,
}

#[derive(Serialize, JsonSchema)]
pub(super) struct RegistryTool {
    #[serde(flatten)]
    tool: ToolSummary,
    /// JSON Schema of the arguments.
    #[schemars(schema_with = "object")]
    parameters: Value,
    /// The first example of its guide.
    #[schemars(schema_with = "nullable_object")]
    example: Option<Value>,
}

pub(super) async fn get(State(app): Shared, _: Operator) -> Json<RegistryView> {
    let snapshot = app.registry.snapshot();
    Json(RegistryView {
        version: snapshot.version().to_owned(),
        content_hash: snapshot.content_hash().to_owned(),
        commit: snapshot.commit().map(str::to_owned),
        is_locked: app.registry.is_locked(),
        tools: snapshot.tools().map(registry_tool).collect(),
        change: app.operations.change.clone(),
    })
}

fn registry_tool(tool: &LoadedTool) -> RegistryTool {
    RegistryTool {
        tool: ToolSummary::new(tool),
        parameters: tool.compiled().json_schema.clone(),
        example: first_example(tool.documentation()),
    }
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
    operation("getRegistry", "Get the registry and its changes").json_response::<RegistryView>(
        200,
        "The registry.",
        None,
    )
}

#[cfg(test)]
mod tests {
    use serde_json::json;

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
