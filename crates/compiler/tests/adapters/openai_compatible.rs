//! The form for servers of other makers: what their grammars take, and what is told of the rest.

use proptest::prelude::*;
use quarterdeck_compiler::adapters::adapt;
use quarterdeck_compiler::adapters::counter_example::instance;
use quarterdeck_compiler::adapters::openai_compatible::anchored;
use quarterdeck_contracts::{Loss, Provider};
use quarterdeck_schema::Schema;
use quarterdeck_testkit::jsonl;
use serde_json::{Value, json};

use crate::definition::definition;
use crate::random_schema::{Typed, parameters};

#[test]
fn a_pattern_is_anchored_at_both_ends() {
    for (pattern, expected) in [
        ("^[A-Z]{2}$", "^[A-Z]{2}$"),
        ("^person:", r#"^person:[^"\\\x00-\x1F]*$"#),
        ("mp3$", r#"^[^"\\\x00-\x1F]*mp3$"#),
        (r"^\d{4}-\d{2}$", "^[0-9]{4}-[0-9]{2}$"),
        (r"^[\w.\-]+?@(?:a|b)\.example$", "^[A-Za-z0-9_.-]+@(a|b)[.]example$"),
        (r"^(?<year>[^/]*)\/x$", r#"^([^/"\\\x00-\x1F]*)[/]x$"#),
        (r"^a\$", r#"^a[$][^"\\\x00-\x1F]*$"#),
    ] {
        assert_eq!(anchored(pattern).as_deref(), Some(expected), "{pattern}");
    }
}

#[test]
fn a_pattern_that_a_grammar_does_not_have_is_left_out() {
    let looks = ["^(?=a)b$", "^(?!a)b$", "^(?<=a)b$", r"^a\b$", r"^(a)\1$", r"^\p{L}$", r"^\s$"];
    let signs =
        ["^a|b$", "^(|a)$", "^*$", "^a**$", "^a{2000}$", "^a{,3}$", "^[]$", r"^\\$", r#"^"$"#, "^[ -z]$"];
    for pattern in looks.iter().chain(&signs) {
        assert_eq!(anchored(pattern), None, "{pattern}");
    }
}

#[test]
fn what_is_left_out_is_told_with_arguments_that_show_it() {
    let parameters = json!({
        "type": "object",
        "properties": {
            "id": { "type": "string", "pattern": r"^(?!x)\S+$" },
            "body": { "type": "string", "maxLength": 10_000 },
            "tags": { "type": "array", "items": { "type": "string" }, "uniqueItems": true },
        },
    });
    let adapted = adapt(Provider::OpenaiCompatible, &definition(&parameters)).unwrap();
    assert_eq!(
        adapted.declaration["function"]["parameters"],
        json!({
            "type": "object",
            "properties": {
                "id": { "type": "string" },
                "body": { "type": "string" },
                "tags": { "type": "array", "items": { "type": "string" } },
            },
        })
    );
    let told: Vec<_> = adapted.losses.iter().map(|loss| (loss.what.as_str(), loss.at.join(" "))).collect();
    assert_eq!(
        told,
        [
            ("maxLength", "/properties/body/maxLength".to_owned()),
            ("pattern", "/properties/id/pattern".to_owned()),
            ("uniqueItems", "/properties/tags/uniqueItems".to_owned()),
        ]
    );
    // A text of ten thousand signs would show nothing that the name of the loss does not say.
    let shown: Vec<_> = adapted.losses.iter().map(|loss| loss.counter_example.is_some()).collect();
    assert_eq!(shown, [false, true, true]);
}

#[test]
fn every_schema_says_what_it_is() {
    let any = json!({ "type": ["string", "number", "boolean", "object", "array", "null"] });
    let mut described = any.clone();
    described["description"] = "Anything.".into();
    let parameters = json!({
        "type": "object",
        "properties": { "a": true, "b": { "description": "Anything." }, "c": { "enum": [1, null] } },
        "additionalProperties": false,
    });
    let (declared, losses) = adapted(&parameters);
    assert_eq!(declared["properties"]["a"], any);
    assert_eq!(declared["properties"]["b"], described);
    assert_eq!(declared["properties"]["c"], json!({ "enum": [1, null] }));
    assert_eq!(declared["additionalProperties"], false);
    assert_eq!(losses, []);
}

#[test]
fn lengths_beside_a_pattern_that_stays_are_left_out() {
    let text = json!({ "type": "string", "pattern": "^[a-z]+$", "maxLength": 9 });
    let (declared, losses) = adapted(&json!({ "type": "object", "properties": { "a": text } }));
    assert_eq!(declared["properties"]["a"], json!({ "type": "string", "pattern": "^[a-z]+$" }));
    assert_eq!(losses[0].what, "maxLength");
}

#[test]
fn real_tools_lose_nothing_in_silence() {
    let mut judged = 0;
    for row in jsonl("schemas/corpus.jsonl").unwrap_or_default() {
        let Ok(adapted) = adapt(Provider::OpenaiCompatible, &definition(&row["parameters"])) else {
            continue;
        };
        let declared = &adapted.declaration["function"]["parameters"];
        let original = Schema::compile(&row["parameters"]).unwrap();
        let arguments = instance(declared);
        if adapted.losses.is_empty() && Schema::compile(declared).unwrap().accepts(&arguments) {
            assert!(original.accepts(&arguments), "{}: {arguments}", row["id"]);
            judged += 1;
        }
    }
    assert!(judged == 0 || judged > 300, "only {judged} tools lose nothing");
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(300) })]

    /// What a pattern becomes admits nothing that the original refuses.
    #[test]
    fn an_anchored_pattern_admits_no_more(
        pattern in r"\^?([a-c.]|\\d|\\w|\[a-c\]|\[\^b\]|\(a\|b\)|(?:a|\.)[*+?]){0,5}\$?",
        text in r"[a-c.\n 1]{0,6}",
    ) {
        prop_assume!(Schema::compile(&json!({ "type": "string", "pattern": pattern })).is_ok());
        if let Some(written) = anchored(&pattern) {
            let schema = |pattern: &str| Schema::compile(&json!({ "type": "string", "pattern": pattern })).unwrap();
            if schema(&written).accepts(&json!(text)) {
                prop_assert!(schema(&pattern).accepts(&json!(text)), "{pattern} {written} {text:?}");
            } else if text.chars().all(|c| c != '\n') {
                prop_assert!(!schema(&pattern).accepts(&json!(text)), "{pattern} {written} {text:?}");
            }
        }
    }

    /// Whatever foreign patterns look like, what is written can be compiled.
    #[test]
    fn an_anchored_pattern_is_a_pattern(pattern in r"[\^\$a\\dws\[\]()?:|*+{}0-9,.\-]{0,12}") {
        if let Some(written) = anchored(&pattern)
            && Schema::compile(&json!({ "type": "string", "pattern": pattern })).is_ok()
        {
            prop_assert!(Schema::compile(&json!({ "type": "string", "pattern": written })).is_ok(), "{written}");
        }
    }

    #[test]
    fn no_declaration_has_what_a_server_refuses(parameters in parameters(Typed::Sometimes)) {
        let (declared, _) = adapted(&parameters);
        let text = declared.to_string();
        for keyword in ["\"uniqueItems\":", "\"multipleOf\":", "\"not\":", "\"patternProperties\":"] {
            prop_assert!(!text.contains(keyword), "{text}");
        }
    }
}

fn adapted(parameters: &Value) -> (Value, Vec<Loss>) {
    let adapted = adapt(Provider::OpenaiCompatible, &definition(parameters)).unwrap();
    (adapted.declaration["function"]["parameters"].clone(), adapted.losses)
}
