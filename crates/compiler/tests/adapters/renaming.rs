//! Names that a provider refuses have others in its declaration, and nothing is lost on the way back.

use proptest::collection::{hash_map, vec};
use proptest::prelude::*;
use proptest::sample::select;
use quarterdeck_compiler::adapters::adapt;
use quarterdeck_compiler::adapters::counter_example::instance;
use quarterdeck_contracts::{Provider, Renames};
use quarterdeck_schema::Schema;
use serde_json::{Map, Value, json};

use crate::definition::definition;
use crate::random_schema::{Typed, parameters};

const NAMES: [&str; 10] =
    ["Content-Type", "Content_Type", "Content_Type__1", "цена", "价格", "a/b", "~", "", "2nd", "$ref"];

/// The declared schema and the renames.
fn adapted(provider: Provider, parameters: &Value) -> (Value, Renames) {
    let adapted = adapt(provider, &definition(parameters)).unwrap();
    let member = if provider == Provider::Anthropic { "input_schema" } else { "parameters" };
    let renamed = adapted.losses.iter().flat_map(|loss| loss.renamed.clone());
    (adapted.declaration[member].clone(), Renames::new(renamed.collect()))
}

#[test]
fn names_are_replaced_wherever_they_stand() {
    let parameters = json!({
        "type": "object",
        "additionalProperties": false,
        "required": ["Content-Type", "цена"],
        "dependentRequired": { "цена": ["Content-Type"] },
        "propertyNames": { "enum": ["Content-Type", "цена", "nested", "again"] },
        "default": { "цена": 1 },
        "properties": {
            "Content-Type": { "type": "string", "description": "MIME." },
            "цена": { "type": "integer" },
            "nested": { "type": "array", "items": { "properties": { "цена": { "type": "string" } }, "required": ["цена"] } },
            "again": { "$ref": "#/properties/nested/items/properties/%D1%86%D0%B5%D0%BD%D0%B0" },
        },
    });
    let (declared, renames) = adapted(Provider::Anthropic, &parameters);
    assert_eq!(
        declared,
        json!({
            "type": "object",
            "additionalProperties": false,
            "required": ["Content-Type", "name__1"],
            "dependentRequired": { "name__1": ["Content-Type"] },
            "propertyNames": { "enum": ["Content-Type", "name__1", "nested", "again"] },
            "default": { "name__1": 1 },
            "properties": {
                "Content-Type": { "type": "string", "description": "MIME." },
                "name__1": { "type": "integer", "description": "Known elsewhere as \"цена\"." },
                "nested": {
                    "type": "array",
                    "items": {
                        "properties": { "name__1": { "type": "string", "description": "Known elsewhere as \"цена\"." } },
                        "required": ["name__1"],
                    },
                },
                "again": { "type": "string", "description": "Known elsewhere as \"цена\"." },
            },
        })
    );
    let arguments = json!({ "Content-Type": "x", "name__1": 1, "nested": [{ "name__1": "y" }] });
    let original = json!({ "Content-Type": "x", "цена": 1, "nested": [{ "цена": "y" }] });
    assert_eq!(renames.to_original(&arguments), original);
}

#[test]
fn a_new_name_is_none_that_is_there_already() {
    let names = ["Content-Type", "Content_Type", "Content_Type__1", "Content.Type", "Content Type"];
    let properties: Map<_, _> =
        names.iter().map(|name| ((*name).to_owned(), json!({ "type": "string" }))).collect();
    let (declared, _) = adapted(
        Provider::GeminiNative,
        &json!({ "type": "object", "properties": properties, "required": names }),
    );
    let declared: Vec<_> = declared["properties"].as_object().unwrap().keys().cloned().collect();
    assert_eq!(
        declared,
        ["Content_Type__2", "Content_Type", "Content_Type__1", "Content_Type__3", "Content_Type__4"]
    );
}

#[test]
fn definitions_that_nothing_refers_to_lose_no_name() {
    let parameters = json!({
        "type": "object",
        "properties": { "a": { "type": "string" } },
        "$defs": { "unused": { "type": "object", "properties": { "цена": { "type": "string" } } } },
    });
    assert!(adapted(Provider::Anthropic, &parameters).1.is_empty());
}

/// Puts awkward names in the place of some plain ones, wherever a schema has them.
fn with_awkward_names(value: &Value, names: &[&'static str]) -> Value {
    let rename = |name: &str| match ["p", "q", "r", "s", "x", "y"].iter().position(|plain| *plain == name) {
        Some(place) => names[place % names.len()].to_owned(),
        None => name.to_owned(),
    };
    match value {
        Value::Object(members) => {
            let mut renamed = Map::new();
            for (name, member) in members {
                let member = match name.as_str() {
                    "required" => {
                        let names = member.as_array().into_iter().flatten();
                        names.filter_map(Value::as_str).map(|name| Value::from(rename(name))).collect()
                    }
                    _ => with_awkward_names(member, names),
                };
                renamed.insert(rename(name), member);
            }
            Value::Object(renamed)
        }
        Value::Array(items) => items.iter().map(|item| with_awkward_names(item, names)).collect(),
        other => other.clone(),
    }
}

fn distinct_names() -> impl Strategy<Value = Vec<&'static str>> {
    Just(NAMES.to_vec()).prop_shuffle()
}

/// Any JSON whose members have awkward names.
fn arguments() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<i32>().prop_map(Value::from),
        select(&NAMES[..]).prop_map(Value::from)
    ];
    leaf.prop_recursive(4, 32, 5, |inner| {
        prop_oneof![
            vec(inner.clone(), 0..4).prop_map(Value::from),
            hash_map(select(&NAMES[..]).prop_map(str::to_owned), inner, 0..5)
                .prop_map(|members| Value::Object(members.into_iter().collect())),
        ]
    })
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(200) })]

    #[test]
    fn renaming_arguments_and_mapping_them_back_is_the_identity(
        schema in parameters(Typed::Always),
        names in distinct_names(),
        arguments in arguments(),
    ) {
        let schema = with_awkward_names(&schema, &names);
        for provider in [Provider::GeminiNative, Provider::Anthropic] {
            let Ok(adapted) = adapt(provider, &definition(&schema)) else { continue };
            let renames = Renames::new(adapted.losses.iter().flat_map(|loss| loss.renamed.clone()).collect());
            // Names that stand in the schema are never taken; this one may not stand there.
            let taken = adapted.losses.iter().any(|loss| loss.renamed.values().any(|name| name == "Content_Type__1"));
            if !taken {
                prop_assert_eq!(&renames.to_original(&renames.to_declared(&arguments)), &arguments);
            }
            let own = instance(&schema);
            prop_assert_eq!(&renames.to_original(&renames.to_declared(&own)), &own);
        }
    }

    #[test]
    fn what_the_original_accepts_the_renamed_form_admits(
        schema in parameters(Typed::Always),
        names in distinct_names(),
    ) {
        let schema = with_awkward_names(&schema, &names);
        let Ok(original) = Schema::compile(&schema) else { return Ok(()) };
        let Ok(adapted) = adapt(Provider::Anthropic, &definition(&schema)) else { return Ok(()) };
        let renames = Renames::new(adapted.losses.iter().flat_map(|loss| loss.renamed.clone()).collect());
        let Ok(declared) = Schema::compile(&adapted.declaration["input_schema"]) else { return Ok(()) };
        let arguments = instance(&schema);
        prop_assert_eq!(
            original.accepts(&arguments),
            declared.accepts(&renames.to_declared(&arguments)),
            "{} in {}", arguments, schema
        );
    }

    #[test]
    fn every_declared_name_is_one_that_the_provider_takes(
        schema in parameters(Typed::Always),
        names in distinct_names(),
    ) {
        let schema = with_awkward_names(&schema, &names);
        let is_plain = |name: &str| name.chars().all(|letter| letter.is_ascii_alphanumeric() || letter == '_');
        let Ok(adapted) = adapt(Provider::GeminiNative, &definition(&schema)) else { return Ok(()) };
        let mut open = Vec::from_iter(adapted.declaration.get("parameters"));
        while let Some(value) = open.pop() {
            for (name, property) in value.get("properties").and_then(Value::as_object).into_iter().flatten() {
                prop_assert!(is_plain(name) && !name.is_empty() && !name.starts_with(|c: char| c.is_ascii_digit()), "{name}");
                open.push(property);
            }
            open.extend(value.get("items"));
            open.extend(value.get("anyOf").and_then(Value::as_array).into_iter().flatten());
        }
        for place in adapted.losses.iter().flat_map(|loss| &loss.at) {
            prop_assert!(schema.pointer(place).is_some(), "{place} is not in {schema}");
        }
    }
}
