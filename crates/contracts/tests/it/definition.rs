use std::path::Path;

use quarterdeck_contracts::{Confirmation, Definition};
use serde_json::{Value, json};

fn full() -> Value {
    json!({
        "$schema": "../../schemas/tool.schema.json",
        "toolId": "calendar_create_event",
        "version": "1.0.0",
        "description": "Books a meeting.",
        "category": "action",
        "sideEffects": "writes",
        "idempotent": false,
        "requiresConfirmation": true,
        "allowedModes": ["text"],
        "latencyBudgetMs": 3000,
        "timeoutMs": 9000,
        "control": true,
        "repeatable": true,
        "capabilities": ["calendar", "store"],
        "network": ["api.example.com"],
        "rateLimit": { "calls": 1, "windowMs": 60000, "per": "client" },
        "availability": { "authenticated": true, "claims": { "role": ["staff"] }, "requires": ["calendar"] },
        "returns": { "type": "object" },
        "preview": "Create “{title}”",
        "confirmWhen": {
            "notRequestedThisTurn": true, "topics": "private", "over": { "/guests": 20, "/price": 99.5 },
            "claims": ["staff"],
        },
        "requestedBy": { "en": ["book *", "* meeting *"], "de": ["buche *"] },
        "confirmBy": "code",
        "sensitive": ["/attendees"],
        "acknowledged": ["geminiNative: format"],
        "parameters": { "type": "object", "additionalProperties": false, "required": [], "properties": { "z": {}, "a": {} } }
    })
}

#[test]
fn every_field_survives_the_round_trip_in_its_order() {
    let definition: Definition = serde_json::from_value(full()).unwrap();
    assert_eq!(serde_json::to_string(&definition).unwrap(), full().to_string());
}

#[test]
fn what_an_author_leaves_out_stays_out() {
    let mut minimal = full();
    let required = [
        "toolId",
        "version",
        "description",
        "category",
        "sideEffects",
        "idempotent",
        "requiresConfirmation",
        "allowedModes",
        "latencyBudgetMs",
        "parameters",
    ];
    minimal.as_object_mut().unwrap().retain(|name, _| required.contains(&name.as_str()));
    let definition: Definition = serde_json::from_value(minimal.clone()).unwrap();
    assert_eq!(serde_json::to_value(&definition).unwrap(), minimal);
}

#[test]
fn confirmation_is_yes_no_or_by_policy() {
    for (value, confirmation) in [
        (json!(true), Confirmation::Always),
        (json!(false), Confirmation::Never),
        (json!("policy"), Confirmation::Policy),
    ] {
        assert_eq!(serde_json::from_value::<Confirmation>(value.clone()).unwrap(), confirmation);
        assert_eq!(serde_json::to_value(confirmation).unwrap(), value);
    }
    assert!(serde_json::from_value::<Confirmation>(json!("always")).is_err());
}

#[test]
fn a_timeout_that_is_not_declared_is_five_budgets_and_at_least_two_seconds() {
    let with = |budget: u64| {
        let mut definition: Definition = serde_json::from_value(full()).unwrap();
        definition.metadata.timeout_ms = None;
        definition.metadata.latency_budget_ms = budget;
        definition.metadata.effective_timeout_ms()
    };
    assert_eq!(with(100), 2_000);
    assert_eq!(with(1_000), 5_000);
    assert_eq!(with(u64::MAX), u64::MAX);
}

/// `UPDATE_EXPECT=1 cargo nextest run -p quarterdeck-contracts --features json-schema` writes the file anew.
#[test]
fn the_published_schema_is_the_one_that_the_types_give() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../schemas/tool.schema.json");
    let generated = format!("{:#}\n", quarterdeck_contracts::definition_schema());
    expect_test::expect_file![path].assert_eq(&generated);
}
