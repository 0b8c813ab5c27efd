//! Content hashes: what makes two artifacts, tools or handlers the same. The compiler writes them, the registry
//! checks them, so they are defined once.

use std::collections::BTreeMap;
use std::fmt::Write;

use serde_json::json;
use sha2::{Digest, Sha256};

use crate::{CompiledTool, canonical_json};

/// SHA-256 in hex.
pub fn sha256(bytes: &[u8]) -> String {
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

/// The hash of a native handler: of every Rust file of its folder, by path relative to the folder.
pub fn native_source_hash<'a, B: AsRef<[u8]>>(files: impl IntoIterator<Item = (&'a str, B)>) -> String {
    let files: BTreeMap<&str, B> = files.into_iter().collect();
    let mut content = Vec::new();
    for (path, bytes) in files {
        for part in [path.as_bytes(), bytes.as_ref()] {
            content.extend_from_slice(part);
            content.push(0);
        }
    }
    sha256(&content)
}
