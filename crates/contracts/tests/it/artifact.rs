use quarterdeck_contracts::{Artifact, Provider};
use serde_json::json;

#[test]
fn an_artifact_survives_the_round_trip() {
    let wire = json!({
        "formatVersion": 1,
        "version": "1.0.3fa9c2e1",
        "contentHash": "3fa9c2e1",
        "gitCommit": null,
        "buildTimestamp": "2026-01-13T09:00:00Z",
        "responseSchemaVersion": "1.1.0",
        "tools": [{
            "toolId": "kb_search",
            "version": "1.0.0",
            "description": "Searches.",
            "category": "retrieval",
            "sideEffects": "read_only",
            "idempotent": true,
            "requiresConfirmation": false,
            "allowedModes": ["text", "voice"],
            "latencyBudgetMs": 800,
            "jsonSchema": { "type": "object", "additionalProperties": false },
            "providerSchemas": { "openai": {}, "geminiNative": {}, "mcp": {} },
            "lossy": { "geminiNative": [{ "what": "format", "at": ["/properties/day"], "counterExample": { "day": "x" } }] },
            "summary": "Searches.",
            "documentation": "# Search",
            "handler": { "kind": "js", "path": "kb-search/handler.js", "files": { "kb-search/handler.js": "abc" } },
            "hash": "def"
        }]
    });
    let artifact: Artifact = serde_json::from_value(wire.clone()).unwrap();
    assert_eq!(serde_json::to_string(&artifact).unwrap(), wire.to_string());
}

#[test]
fn providers_are_named_alike_in_code_and_on_the_wire() {
    for provider in Provider::ALL {
        assert_eq!(serde_json::to_value(provider).unwrap(), json!(provider.as_str()));
    }
}
