//! The changes since the previous registry, which the caller of the server has compared.

use schemars::JsonSchema;
use serde::Serialize;
use serde_json::Value;

use crate::routes::openapi::envelope::any;

/// The difference between two registries.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct RegistryChange {
    /// The previous version.
    pub previous: String,
    /// Whether callers break.
    pub is_breaking: bool,
    /// In the order they were found.
    pub changes: Vec<ToolChange>,
}

/// One change of a tool.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
#[schemars(rename = "ToolChange")]
pub struct ToolChange {
    /// The tool.
    pub tool: String,
    /// The effect on callers: `breaks`, `changes`, `adds`.
    #[schemars(extend("enum" = ["breaks", "changes", "adds"]))]
    pub effect: String,
    /// One sentence.
    pub what: String,
    /// Arguments that were accepted before and are refused now.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "any")]
    pub example: Option<Value>,
}
