//! What holds for every schema in Gemini's dialect, whatever it was made from.

use std::collections::HashMap;

use proptest::prelude::*;
use quarterdeck_compiler::adapters::adapt;
use quarterdeck_compiler::adapters::counter_example::instance;
use quarterdeck_compiler::adapters::gemini_native::{convert, to_json_schema};
use quarterdeck_contracts::Provider;
use quarterdeck_schema::Schema;
use quarterdeck_testkit::jsonl;
use serde_json::{Value, json};

use crate::definition::definition;
use crate::random_schema::{Typed, parameters};

const ALLOWED: [&str; 18] = [
    "type",
    "nullable",
    "description",
    "enum",
    "format",
    "items",
    "properties",
    "required",
    "anyOf",
    "minItems",
    "maxItems",
    "minLength",
    "maxLength",
    "minProperties",
    "maxProperties",
    "minimum",
    "maximum",
    "pattern",
];

/// Conversions that admit less than the original: the dialect must name a type where there is none, and a schema
/// inside itself is taken for an object.
const NARROWING: [&str; 3] = ["untyped schema", "array without items", "recursive $ref"];

#[test]
fn every_row_of_the_corpus_keeps_to_the_dialect() {
    for row in jsonl("schemas/corpus.jsonl").unwrap_or_default() {
        let converted = convert(&row["parameters"]).unwrap();
        converted.parameters.iter().for_each(assert_dialect);
    }
}

#[test]
fn every_accepted_call_of_the_corpus_is_admitted() {
    let (Some(corpus), Some(cases)) = (jsonl("schemas/corpus.jsonl"), jsonl("schemas/ajv-cases.jsonl"))
    else {
        return;
    };
    let sources: HashMap<_, _> =
        corpus.iter().map(|row| (row["id"].as_str().unwrap(), &row["parameters"])).collect();
    let mut schemas: HashMap<&str, Option<(Schema, Schema)>> = HashMap::new();
    let mut admitted = 0;
    for case in cases.iter().filter(|case| case["accepted"] == true) {
        let id = case["schema"].as_str().unwrap();
        let schema = schemas.entry(id).or_insert_with(|| {
            let converted = convert(sources[id]).unwrap();
            let narrowed = converted.notes.keys().any(|what| NARROWING.contains(what));
            let plain = converted.parameters.as_ref().map_or_else(|| json!({}), to_json_schema);
            (!narrowed).then(|| (Schema::compile(sources[id]).unwrap(), Schema::compile(&plain).unwrap()))
        });
        let Some((original, admitting)) = schema else { continue };
        // Defaults are filled before a call is judged.
        let arguments = case.get("args_after").unwrap_or(&case["args"]);
        if original.accepts(arguments) {
            assert!(admitting.accepts(arguments), "{id}: {arguments}");
            admitted += 1;
        }
    }
    assert!(admitted > 1_000, "only {admitted} calls were judged");
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(300) })]

    #[test]
    fn every_schema_keeps_to_the_dialect(parameters in parameters(Typed::Sometimes)) {
        let converted = convert(&parameters).unwrap();
        converted.parameters.iter().for_each(assert_dialect);
        for place in converted.notes.values().flatten() {
            prop_assert!(parameters.pointer(place).is_some(), "{place} is not in {parameters}");
        }
    }

    #[test]
    fn every_counter_example_is_admitted_and_refused(parameters in parameters(Typed::Sometimes)) {
        let Ok(original) = Schema::compile(&parameters) else { return Ok(()) };
        let Ok(adapted) = adapt(Provider::GeminiNative, &definition(&parameters)) else { return Ok(()) };
        let plain = adapted.declaration.get("parameters").map_or_else(|| json!({}), to_json_schema);
        for example in adapted.losses.iter().filter_map(|loss| loss.counter_example.as_ref()) {
            prop_assert!(!original.accepts(example), "{example}");
            prop_assert!(Schema::compile(&plain).unwrap().accepts(example), "{example}");
        }
    }

    #[test]
    fn no_schema_makes_an_adapter_fail_badly(parameters in parameters(Typed::Sometimes)) {
        for provider in Provider::ALL {
            if let Err(refusals) = adapt(provider, &definition(&parameters)) {
                prop_assert!(!refusals.is_empty());
                for refusal in refusals {
                    prop_assert!(parameters.pointer(&refusal.at).is_some(), "{refusal:?}");
                }
            }
        }
    }

    #[test]
    fn what_the_original_accepts_is_admitted(parameters in parameters(Typed::Always)) {
        let converted = convert(&parameters).unwrap();
        if converted.notes.keys().any(|what| NARROWING.contains(what)) {
            return Ok(());
        }
        // Some of these references never end, and such schemas do not reach an adapter.
        let Ok(original) = Schema::compile(&parameters) else { return Ok(()) };
        let arguments = instance(&parameters);
        let plain = converted.parameters.as_ref().map_or_else(|| json!({}), to_json_schema);
        if original.accepts(&arguments) {
            prop_assert!(Schema::compile(&plain).unwrap().accepts(&arguments), "{arguments} is not admitted by {plain}");
        }
    }
}

fn assert_dialect(schema: &Value) {
    let keywords = schema.as_object().unwrap();
    for keyword in keywords.keys() {
        assert!(ALLOWED.contains(&keyword.as_str()), "{keyword} in {schema}");
    }
    if let Some(branches) = keywords.get("anyOf") {
        let branches = branches.as_array().unwrap();
        assert!(keywords.len() == 1 && branches.len() >= 2, "{schema}");
        assert!(branches.iter().all(|branch| branch.get("anyOf").is_none()), "{schema}");
        return branches.iter().for_each(assert_dialect);
    }
    let kind = keywords["type"].as_str().unwrap();
    assert!(["STRING", "NUMBER", "INTEGER", "BOOLEAN", "ARRAY", "OBJECT"].contains(&kind), "{schema}");
    if let Some(values) = keywords.get("enum") {
        let is_text = |value: &Value| value.as_str().is_some_and(|text| !text.is_empty());
        assert!(kind == "STRING" && values.as_array().unwrap().iter().all(is_text), "{schema}");
    }
    assert_eq!(kind == "ARRAY", keywords.contains_key("items"), "{schema}");
    keywords.get("items").into_iter().for_each(assert_dialect);
    let properties = keywords.get("properties").and_then(Value::as_object);
    properties.into_iter().flat_map(|properties| properties.values()).for_each(assert_dialect);
    for name in keywords.get("required").and_then(Value::as_array).into_iter().flatten() {
        assert!(properties.unwrap().contains_key(name.as_str().unwrap()), "{schema}");
    }
}
