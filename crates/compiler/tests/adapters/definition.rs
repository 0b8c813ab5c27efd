//! A definition around parameters, for tests that care about nothing else.

use quarterdeck_contracts::Definition;
use serde_json::{Value, json};

pub(crate) fn definition(parameters: &Value) -> Definition {
    with_metadata(parameters, json!({}))
}

/// `changes` replace or add fields of `schema.json`.
pub(crate) fn with_metadata(parameters: &Value, changes: Value) -> Definition {
    let mut source = json!({
        "toolId": "book_table",
        "version": "1.0.0",
        "description": "Books a table.",
        "category": "action",
        "sideEffects": "writes",
        "idempotent": false,
        "requiresConfirmation": true,
        "allowedModes": ["text"],
        "latencyBudgetMs": 800,
        "parameters": parameters,
    });
    for (field, value) in changes.as_object().unwrap() {
        source[field] = value.clone();
    }
    serde_json::from_value(source).unwrap()
}
