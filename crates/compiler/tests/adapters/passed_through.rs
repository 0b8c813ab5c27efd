//! Providers that take JSON Schema as it is.

use quarterdeck_compiler::adapters::{AdaptedTool, Refusal, adapt};
use quarterdeck_contracts::Provider;
use serde_json::{Value, json};

use crate::definition::{definition, with_metadata};

fn parameters() -> Value {
    json!({
        "type": "object",
        "additionalProperties": false,
        "properties": { "größe": { "$ref": "#/$defs/n" } },
        "$defs": { "n": { "oneOf": [{ "type": "integer" }, { "type": "null" }] } },
    })
}

#[test]
fn openai_functions_carry_the_parameters_unchanged() {
    let expected = json!({
        "type": "function",
        "function": { "name": "book_table", "description": "Books a table.", "parameters": parameters() },
    });
    check(Provider::Openai, expected);
}

#[test]
fn gemini_takes_json_schema_under_its_own_name() {
    let expected = json!({ "name": "book_table", "description": "Books a table.", "parametersJsonSchema": parameters() });
    check(Provider::GeminiJsonSchema, expected);
}

#[test]
fn mcp_tools_have_a_title_and_hints() {
    let expected = json!({
        "name": "book_table",
        "title": "Book table",
        "description": "Books a table.",
        "inputSchema": parameters(),
        "annotations": { "readOnlyHint": false, "destructiveHint": true, "idempotentHint": false, "openWorldHint": false },
    });
    check(Provider::Mcp, expected);
}

#[test]
fn mcp_hints_follow_the_metadata() {
    let reading = json!({ "sideEffects": "read_only", "idempotent": true, "network": ["api.example.com"] });
    let adapted = adapt(Provider::Mcp, &with_metadata(&parameters(), reading)).unwrap();
    assert_eq!(
        adapted.declaration["annotations"],
        json!({ "readOnlyHint": true, "destructiveHint": false, "idempotentHint": true, "openWorldHint": true })
    );
}

#[test]
fn mcp_declares_results_that_are_objects() {
    let returns = json!({ "type": "object", "properties": { "id": { "type": "string" } } });
    let output = |returns: Value| {
        let adapted =
            adapt(Provider::Mcp, &with_metadata(&parameters(), json!({ "returns": returns }))).unwrap();
        adapted.declaration.get("outputSchema").cloned()
    };
    assert_eq!(output(returns.clone()), Some(returns));
    assert_eq!(output(json!({ "type": "array" })), None);
}

#[test]
fn mcp_refuses_parameters_that_are_no_object() {
    let refusals = adapt(Provider::Mcp, &definition(&json!({ "anyOf": [] }))).unwrap_err();
    assert_eq!(
        refusals,
        [Refusal { at: String::new(), reason: "MCP wants `\"type\": \"object\"` here".to_owned() }]
    );
}

fn check(provider: Provider, declaration: Value) {
    let adapted = adapt(provider, &definition(&parameters())).unwrap();
    assert_eq!(adapted, AdaptedTool { declaration, losses: Vec::new() });
}
