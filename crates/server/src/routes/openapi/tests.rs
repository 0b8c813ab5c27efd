use std::collections::BTreeSet;

use quarterdeck_contracts::ErrorType;
use serde_json::{Value, json};

use super::document;

/// Validates a value against a schema of the document.
fn errors(document: &Value, schema: &Value, value: &Value) -> Vec<String> {
    let mut root = schema.clone();
    root["components"] = document["components"].clone();
    let validator = jsonschema::draft202012::new(&root).unwrap();
    validator.iter_errors(value).map(|error| error.to_string()).collect()
}

/// Visits every media type with its location.
fn each_media(place: &str, value: &Value, visit: &mut dyn FnMut(&str, &Value)) {
    match value {
        Value::Object(fields) => {
            for (name, field) in fields {
                if name == "content" {
                    field.as_object().unwrap().values().for_each(|media| visit(place, media));
                } else if name != "schemas" {
                    each_media(&format!("{place}/{name}"), field, visit);
                }
            }
        }
        Value::Array(items) => items.iter().for_each(|item| each_media(place, item, visit)),
        _ => {}
    }
}

#[test]
fn every_example_fits_its_schema() {
    let document = document();
    let mut validated = 0;
    each_media("", &document, &mut |place, media| {
        let named = media["examples"].as_object().into_iter().flatten().map(|(_, example)| &example["value"]);
        for example in media.get("example").into_iter().chain(named) {
            assert_eq!(errors(&document, &media["schema"], example), Vec::<String>::new(), "{place}");
            validated += 1;
        }
        if let Some(event) = media.pointer("/schema/properties/data/anyOf/1/contentSchema") {
            let stream = media["x-stream-example"].as_str().unwrap();
            for data in stream.split("\n\n").filter_map(|event| event.strip_prefix("data: ")) {
                if data != "[DONE]" {
                    let data = serde_json::from_str(data).unwrap();
                    assert_eq!(errors(&document, event, &data), Vec::<String>::new(), "{place}: {data}");
                }
            }
        }
    });
    assert!(validated > 20, "{validated}");
}

#[test]
fn every_reference_resolves_and_every_component_is_used() {
    let document = document();
    let text = document.to_string();
    let used: BTreeSet<&str> =
        text.split("\"#/components/").skip(1).map(|rest| rest.split('"').next().unwrap()).collect();
    for reference in &used {
        assert!(document.pointer(&format!("/components/{reference}")).is_some(), "{reference}");
    }
    for kind in ["schemas", "headers", "responses"] {
        for name in document["components"][kind].as_object().unwrap().keys() {
            // 405 applies to undescribed methods, so no operation references it.
            let is_unreferenced = name.ends_with("MethodNotAllowed");
            assert!(
                is_unreferenced || used.contains(&*format!("{kind}/{name}")),
                "{kind}/{name} is not used"
            );
        }
    }
}

#[test]
fn operation_ids_are_unique_and_tags_are_known() {
    let document = document();
    let tags: BTreeSet<&str> =
        document["tags"].as_array().unwrap().iter().map(|tag| tag["name"].as_str().unwrap()).collect();
    let mut names = BTreeSet::new();
    for (path, methods) in document["paths"].as_object().unwrap() {
        for (method, operation) in methods.as_object().unwrap() {
            let name = operation["operationId"].as_str().unwrap();
            assert!(names.insert(name.to_owned()), "{name} is used twice");
            assert!(tags.contains(operation["tags"][0].as_str().unwrap()), "{method} {path}");
            assert_eq!(path.contains("{id}"), operation["parameters"][0]["name"] == "id", "{method} {path}");
        }
    }
}

#[test]
fn every_type_of_error_is_listed() {
    let types = &document()["components"]["schemas"]["ErrorType"]["enum"];
    assert_eq!(types, &json!(ErrorType::ALL));
    assert_eq!(types.as_array().unwrap().len(), 20);
}
