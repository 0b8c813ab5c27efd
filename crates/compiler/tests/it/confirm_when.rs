use expect_test::expect;
use serde_json::{Value, json};

use crate::world::{check, patched};

fn action(more: Value) -> Value {
    let mut patch = json!({
        "category": "action", "sideEffects": "writes", "idempotent": false, "requiresConfirmation": "policy",
        "parameters": { "properties": {
            "amount": { "type": "number", "description": "How much." },
            "rows": {
                "type": "array", "description": "What.",
                "items": {
                    "type": "object", "additionalProperties": false,
                    "properties": { "price": { "type": "integer", "description": "How much." } },
                },
            },
        } },
    });
    for (name, value) in more.as_object().into_iter().flatten() {
        patch[name] = value.clone();
    }
    patch
}

#[test]
fn a_policy_with_conditions_and_phrases_is_sound() {
    check(
        &patched(action(json!({
            "confirmWhen": {
                "notRequestedThisTurn": true, "topics": "sensitive", "over": { "/amount": 100, "/rows/*/price": 9.5 },
                "claims": ["staff"],
            },
            "requestedBy": { "en": ["draw *", "make * picture *"], "pt-BR": ["desenhe *"] },
        }))),
        expect![[r#"
            fine
        "#]],
    );
}

#[test]
fn conditions_that_no_gate_would_judge_are_refused() {
    check(
        &patched(action(
            json!({ "requiresConfirmation": true, "confirmWhen": { "notRequestedThisTurn": true } }),
        )),
        expect![[r#"
            error QD0119 greet/schema.json:45:3 `"confirmWhen"`
              `confirmWhen` is not asked: the user approves each call, or none
              help: set "requiresConfirmation" to "policy", or remove `confirmWhen`
        "#]],
    );
    check(
        &patched(action(
            json!({ "confirmWhen": { "over": { "/amount": 1 } }, "requestedBy": { "en": ["draw *"] } }),
        )),
        expect![[r#"
            error QD0119 greet/schema.json:50:3 `"requestedBy"`
              `requestedBy` is not asked: no condition depends on what the user asked for
              help: add `"notRequestedThisTurn": true` to `confirmWhen`, or remove `requestedBy`
        "#]],
    );
}

#[test]
fn how_the_user_approves_is_one_of_three_ways_of_a_tool_that_asks() {
    for by in ["any", "page", "code"] {
        check(
            &patched(action(json!({ "requiresConfirmation": true, "confirmBy": by }))),
            expect![[r#"
                fine
            "#]],
        );
    }
    check(
        &patched(json!({ "confirmBy": "page" })),
        expect![[r#"
            error QD0143 greet/schema.json:27:16 `"page"`
              `confirmBy` has no effect: the user is never asked
              help: set "requiresConfirmation" to true or "policy", or remove `confirmBy`
        "#]],
    );
    check(
        &patched(action(json!({ "requiresConfirmation": true, "confirmBy": "voice" }))),
        expect![[r#"
            error QD0103 greet/schema.json:45:16 `"voice"`
              confirmBy must be one of "any", "page", "code" (got "voice")
              help: write "any", "page" or "code"
        "#]],
    );
}

#[test]
fn a_policy_that_asks_about_every_call_is_pointed_out() {
    for more in [
        json!({}),
        json!({ "confirmWhen": { "notRequestedThisTurn": false } }),
        json!({ "confirmWhen": { "notRequestedThisTurn": true } }),
    ] {
        let expected = match more.pointer("/confirmWhen/notRequestedThisTurn") {
            None => expect![[r#"
                warning QD0120 greet/schema.json:8:27 `"policy"`
                  without `confirmWhen`, the user is asked about every call
                  help: add a `confirmWhen`, or set "requiresConfirmation" to true
            "#]],
            Some(Value::Bool(false)) => expect![[r#"
                warning QD0120 greet/schema.json:45:3 `"confirmWhen"`
                  `confirmWhen` has no condition, so the user is asked about every call
                  help: name a condition, such as `"notRequestedThisTurn": true`
            "#]],
            Some(_) => expect![[r#"
                warning QD0120 greet/schema.json:46:29 `true`
                  without `requestedBy`, nothing that the user says counts as asking, and they are asked about every call
                  help: add `"requestedBy": { "en": ["draw *"] }` with phrases of users
            "#]],
        };
        check(&patched(action(more)), expected);
    }
}

#[test]
fn in_the_older_form_the_word_alone_says_it_all() {
    let files = patched(action(json!({})));
    std::fs::remove_file(files.join("greet/guide.md")).unwrap();
    files.write("greet/doc_summary.md", "Greets someone by name. Use it when a conversation begins.");
    let sections = [
        "Summary",
        "Preconditions",
        "Postconditions",
        "Invariants",
        "Failure Modes",
        "Examples",
        "Common Mistakes",
    ];
    let text: String = sections.iter().map(|section| format!("## {section}\n\nText.\n\n")).collect();
    files.write("greet/doc.md", format!("# Greet\n\n{text}"));
    check(
        &files,
        expect![[r#"
        fine
    "#]],
    );
}

#[test]
fn thresholds_lead_to_numbers_and_phrases_have_words() {
    check(
        &patched(action(json!({
            "confirmWhen": { "notRequestedThisTurn": true, "over": { "/amont": 1, "/name": 2, "rows": 3 } },
            "requestedBy": { "en": ["*", "draw*", "x".repeat(201)], "english language": ["draw"] },
        }))),
        expect![[r#"
            error QD0121 greet/schema.json:48:17 `1`
              "/amont" leads to no parameter that is a number
              help: write `/` and the name of a parameter of type number or integer, such as "/amount"
            error QD0121 greet/schema.json:49:16 `2`
              "/name" leads to no parameter that is a number
              help: write `/` and the name of a parameter of type number or integer, such as "/amount"
            error QD0121 greet/schema.json:50:15 `3`
              "rows" leads to no parameter that is a number
              help: write `/` and the name of a parameter of type number or integer, such as "/amount"
            error QD0122 greet/schema.json:55:7 `"*"`
              a phrase has at least one word beside `*`
              help: write words that users say, such as "draw *" or "make * picture *"
            error QD0122 greet/schema.json:56:7 `"draw*"`
              `*` stands for whole words, with a space on each side
              help: write words that users say, such as "draw *" or "make * picture *"
            error QD0122 greet/schema.json:57:7 `"xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx"`
              a phrase has at most 200 characters
              help: write words that users say, such as "draw *" or "make * picture *"
            error QD0122 greet/schema.json:59:5 `"english language"`
              "english language" is not the tag of a language
              help: write a tag such as "en" or "pt-BR"
        "#]],
    );
    let many: Vec<_> = (0..501).map(|number| format!("draw {number}")).collect();
    check(
        &patched(action(
            json!({ "confirmWhen": { "notRequestedThisTurn": true }, "requestedBy": { "en": many } }),
        )),
        expect![[r#"
            error QD0122 greet/schema.json:48:3 `"requestedBy"`
              there are 501 phrases, and at most 500 are taken
              help: let `*` stand for what differs between them
        "#]],
    );
}

#[test]
fn a_condition_of_the_wrong_kind_is_refused() {
    check(
        &patched(action(json!({
            "confirmWhen": { "topics": ["a"], "over": { "/amount": "100" }, "claims": [], "unless": 1 },
            "requestedBy": { "en": "draw *" },
        }))),
        expect![[r#"
            error QD0103 greet/schema.json:45:3 `"confirmWhen"`
              unknown parameter "unless" in confirmWhen; known are "notRequestedThisTurn", "topics", "over", "claims"
              help: name conditions out of notRequestedThisTurn, topics, over and claims
            error QD0103 greet/schema.json:46:5 `"topics"`
              confirmWhen.topics must be a string (got an array of 1 item)
              help: name conditions out of notRequestedThisTurn, topics, over and claims
            error QD0103 greet/schema.json:50:18 `"100"`
              confirmWhen.over./amount must be a number (got "100")
              help: name conditions out of notRequestedThisTurn, topics, over and claims
            error QD0103 greet/schema.json:52:5 `"claims"`
              confirmWhen.claims must have at least 1 item (got 0)
              help: name conditions out of notRequestedThisTurn, topics, over and claims
            error QD0119 greet/schema.json:55:3 `"requestedBy"`
              `requestedBy` is not asked: no condition depends on what the user asked for
              help: add `"notRequestedThisTurn": true` to `confirmWhen`, or remove `requestedBy`
            error QD0103 greet/schema.json:56:11 `"draw *"`
              requestedBy.en must be an array (got "draw *")
              help: write `{ "en": ["draw *"] }`
        "#]],
    );
}
