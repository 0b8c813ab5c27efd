//! How a registry differs from the one before it. Whoever starts the server has compared them.

use serde::Serialize;
use serde_json::Value;

/// The difference between two registries.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct RegistryChange {
    /// The version of the registry before.
    pub previous: String,
    /// Whether something that worked before does not any more.
    pub is_breaking: bool,
    /// What has changed.
    pub changes: Vec<Change>,
}

/// One change.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Change {
    /// The tool.
    pub tool: String,
    /// What it means for callers: `breaks`, `changes`, `adds`.
    pub effect: String,
    /// What it is.
    pub what: String,
    /// Arguments that were accepted before and are refused now.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub example: Option<Value>,
}
