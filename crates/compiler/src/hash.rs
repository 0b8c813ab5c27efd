//! Content hashes: what makes two artifacts the same.

use quarterdeck_contracts::{CompiledTool, canonical_json};
use serde_json::json;
use sha2::{Digest, Sha256};

/// SHA-256 in hex.
pub(crate) fn sha256(bytes: &[u8]) -> String {
    use std::fmt::Write;
    Sha256::digest(bytes).iter().fold(String::with_capacity(64), |mut hex, byte| {
        // Writing to a string cannot fail.
        let _ = write!(hex, "{byte:02x}");
        hex
    })
}

/// The content hash of one tool: everything about it but the hash itself.
pub fn tool_hash(tool: &CompiledTool) -> String {
    let mut content = serde_json::to_value(tool).unwrap_or_default();
    if let Some(fields) = content.as_object_mut() {
        fields.remove("hash");
    }
    sha256(canonical_json(&content).as_bytes())
}

/// The content hash of a registry, from the hashes of its tools.
pub fn artifact_hash(response_schema_version: &str, tools: &[CompiledTool]) -> String {
    let tools: Vec<_> =
        tools.iter().map(|tool| json!({ "toolId": tool.metadata.tool_id, "hash": tool.hash })).collect();
    let content = json!({ "responseSchemaVersion": response_schema_version, "tools": tools });
    sha256(canonical_json(&content).as_bytes())
}
