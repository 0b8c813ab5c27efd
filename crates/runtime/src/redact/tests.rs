use proptest::prelude::{Just, Strategy, any, prop, prop_oneof, proptest};
use serde_json::json;

use super::*;

/// The definition of a booking with a card, a list of people and a note.
fn parameters() -> Value {
    let text = || json!({ "type": "string" });
    json!({
        "type": "object", "additionalProperties": false,
        "properties": {
            "attendees": { "type": "array", "items": text() },
            "card": {
                "type": "object", "additionalProperties": false,
                "properties": { "number": { "type": ["string", "integer"] }, "kind": { "enum": ["visa", "amex"] } },
            },
            "people": { "type": "array", "items": { "$ref": "#/$defs/person" } },
            "city": text(),
            "count": { "type": "integer" },
            "labels": { "type": "object", "additionalProperties": text() },
        },
        "$defs": { "person": {
            "type": "object", "properties": { "phone": { "type": "integer" }, "name": text() },
        } },
    })
}

const SENSITIVE: [&str; 3] = ["/attendees", "/card/number", "/people/phone"];

fn metadata(sensitive: &[&str]) -> Metadata {
    serde_json::from_value(json!({
        "toolId": "t", "version": "1.0.0", "description": "d", "category": "action", "sideEffects": "writes",
        "idempotent": false, "requiresConfirmation": false, "allowedModes": ["text"], "latencyBudgetMs": 1,
        "sensitive": sensitive,
    }))
    .unwrap()
}

fn shown(args: Value) -> Value {
    redacted(Some(SensitiveArguments::of(&metadata(&SENSITIVE), &parameters())), &args)
}

#[test]
fn what_a_pointer_names_is_hidden_whole_and_the_rest_stays_readable() {
    assert_eq!(
        shown(json!({
            "attendees": ["a@b.c"], "card": { "number": 1, "kind": "visa" }, "city": "Oslo", "count": 3,
            "people": [{ "phone": 1, "name": "Ann" }, { "phone": 2 }], "labels": { "any": "x" },
        })),
        json!({
            "attendees": HIDDEN, "card": { "number": HIDDEN, "kind": "visa" }, "city": "Oslo", "count": 3,
            "people": [{ "phone": HIDDEN, "name": "Ann" }, { "phone": HIDDEN }], "labels": { "any": "x" },
        })
    );
}

#[test]
fn misspelt_unknown_and_misplaced_names_hide_their_values() {
    for (args, expected) in [
        (json!({ "atendees": ["a@b.c"] }), json!({ "atendees": HIDDEN })),
        (json!({ "Attendees": "a@b.c" }), json!({ "Attendees": HIDDEN })),
        (json!({ "number": "4111" }), json!({ "number": HIDDEN })),
        (json!({ "card": { "numbr": "4111" } }), json!({ "card": { "numbr": HIDDEN } })),
        (json!({ "card": { "card": { "number": 4 } } }), json!({ "card": { "card": HIDDEN } })),
        (json!({ "card": "4111" }), json!({ "card": HIDDEN })),
        (json!({ "card": [{ "number": "4111" }] }), json!({ "card": HIDDEN })),
        (json!({ "card": { "kind": "4111" } }), json!({ "card": { "kind": HIDDEN } })),
        (json!({ "count": "4111" }), json!({ "count": HIDDEN })),
        (json!({ "city": ["4111"] }), json!({ "city": HIDDEN })),
        (json!({ "people": { "phone": 5 } }), json!({ "people": HIDDEN })),
        (json!({ "city": r#"{"card":{"number":"4111"}}"# }), json!({ "city": HIDDEN })),
        (json!({ "hunter2": true, "4111 1111": 1 }), json!({ "[hidden] 1": HIDDEN, "[hidden] 2": HIDDEN })),
        (json!(["4111"]), json!(HIDDEN)),
        (json!(r#"{"card":"4111"}"#), json!(HIDDEN)),
        (json!("4111"), json!(HIDDEN)),
    ] {
        assert_eq!(shown(args.clone()), expected, "{args}");
    }
}

#[test]
fn a_value_that_is_hidden_in_one_place_is_hidden_in_every_other() {
    assert_eq!(
        shown(json!({ "attendees": ["ann@example.com"], "city": "Oslo with ann@example.com" })),
        json!({ "attendees": HIDDEN, "city": "Oslo with [hidden]" })
    );
}

#[test]
fn without_sensitive_arguments_everything_stays_as_it_is() {
    let args = json!({ "anything": ["x"], "city": 3 });
    assert_eq!(redacted(Some(SensitiveArguments::of(&metadata(&[]), &parameters())), &args), args);
}

#[test]
fn texts_that_were_made_of_a_call_hide_its_secrets() {
    let (metadata, parameters) = (metadata(&["/card", "/people/name"]), parameters());
    let args = json!({ "card": { "number": 41_112_222, "cvc": "12" }, "people": [{ "name": "Nansen" }], "city": "Oslo" });
    let secrets = Secrets::of(SensitiveArguments::of(&metadata, &parameters), &args);
    assert_eq!(secrets.hide("41112222 of Nansen in Oslo, 12"), "[hidden] of [hidden] in Oslo, 12");
    let mut details = json!([{ "got": 41_112_222, "why": "no Nansen" }]);
    secrets.hide_in(&mut details);
    assert_eq!(details, json!([{ "got": HIDDEN, "why": "no [hidden]" }]));
}

#[test]
fn of_an_unknown_tool_everything_is_hidden() {
    assert_eq!(redacted(None, &json!({ "hunter2": "x" })), json!(HIDDEN));
}

const SECRET: &str = "hunter2-planted";

/// A value that holds the secret somewhere.
fn holding() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(json!(SECRET)),
        Just(json!(format!("my {SECRET}!"))),
        Just(json!(format!("{{\"card\":\"{SECRET}\"}}"))),
        Just(json!(format!("[\"{SECRET}\"]"))),
    ];
    leaf.prop_recursive(3, 12, 3, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 1..3).prop_map(|items| json!(items)),
            (name(), inner.clone()).prop_map(|(name, value)| json!({ name: value })),
            (name(), inner).prop_map(|(name, value)| json!(json!({ name: value }).to_string())),
        ]
    })
}

/// Names that are declared, misspelt, unknown, or the secret itself.
fn name() -> impl Strategy<Value = String> {
    prop_oneof![
        prop::sample::select(vec!["attendees", "card", "number", "kind", "people", "phone", "count"]),
        prop::sample::select(vec!["atendees", "Card", "nummber", "note", "secret", "x", SECRET]),
    ]
    .prop_map(str::to_owned)
}

proptest! {
    #[test]
    fn a_secret_in_a_wrong_place_is_shown_nowhere_and_declared_values_stay(
        misplaced in prop::collection::vec((name(), holding()), 1..4),
        city in "[a-z]{5,12}",
        count in any::<u32>(),
    ) {
        let mut args = json!({ "city": city, "count": count });
        for (name, value) in misplaced {
            if !["city", "count"].contains(&name.as_str()) {
                args[name] = value;
            }
        }
        let seen = shown(args.clone());
        assert!(!seen.to_string().contains(SECRET), "{args} is shown as {seen}");
        assert_eq!((&seen["city"], &seen["count"]), (&json!(city), &json!(count)), "{seen}");
    }
}
