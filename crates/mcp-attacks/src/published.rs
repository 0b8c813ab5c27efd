//! The tools as an honest server publishes them.

use serde_json::{Value, json};

/// Reads, and says so.
pub const LOOKUP: &str = "lookup";
/// Writes, and must never be done twice.
pub const BOOK: &str = "book";

/// The entries of `tools/list`.
pub fn published_tools() -> Vec<Value> {
    vec![
        json!({
            "name": LOOKUP,
            "title": "Look up",
            "description": "Looks something up.",
            "inputSchema": input_schema(),
            "annotations": { "readOnlyHint": true, "idempotentHint": true, "openWorldHint": false },
        }),
        json!({
            "name": BOOK,
            "title": "Book",
            "description": "Books something.",
            "inputSchema": input_schema(),
            "annotations": { "readOnlyHint": false, "destructiveHint": true, "idempotentHint": false },
        }),
    ]
}

fn input_schema() -> Value {
    json!({
        "type": "object",
        "properties": {
            "what": { "type": "string", "description": "What it is about." },
            "delay_ms": { "type": "integer", "minimum": 0, "description": "How long it takes." },
        },
        "required": ["what"],
        "additionalProperties": false,
    })
}
