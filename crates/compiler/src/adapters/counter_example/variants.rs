//! Suspects: values that break a keyword while staying close to a sound one.

use serde_json::{Map, Value, json};

use super::instance::{Generator, from_f64};
use super::text::{matching, sized};
use super::view::View;

/// Replacements for `sound`, the likeliest for `keyword` first.
pub(super) fn of<'a>(
    generator: &Generator<'a>,
    views: &[View<'a>],
    sound: &Value,
    keyword: &str,
) -> Vec<Value> {
    let mut suspects = Vec::new();
    for view in views {
        suspects.extend(for_keyword(generator, view, sound, keyword));
    }
    for view in views {
        suspects.extend(of_kind(generator, view, sound));
    }
    suspects.extend(anything());
    suspects
}

fn for_keyword<'a>(generator: &Generator<'a>, view: &View<'a>, sound: &Value, keyword: &str) -> Vec<Value> {
    match keyword {
        "oneOf" | "anyOf" | "allOf" => from_branches(generator, view, sound, keyword),
        "additionalProperties" | "unevaluatedProperties" => with_values(sound, "extra"),
        "propertyNames" => with_names(generator, view, sound),
        "patternProperties" => {
            let patterns = view.all(keyword).filter_map(Value::as_object).flat_map(Map::keys);
            patterns.flat_map(|pattern| with_values(sound, &matching(pattern))).collect()
        }
        "not" | "if" => {
            let named = view.all(keyword).map(|schema| generator.instance(schema));
            named.flat_map(|other| [merged(sound, &other), other]).collect()
        }
        "exclusiveMinimum" | "exclusiveMaximum" => view.all(keyword).cloned().collect(),
        _ => Vec::new(),
    }
}

fn of_kind<'a>(generator: &Generator<'a>, view: &View<'a>, sound: &Value) -> Vec<Value> {
    match sound {
        Value::Object(object) => objects(generator, view, object),
        Value::Array(items) => arrays(generator, view, items),
        Value::Number(_) => numbers(view),
        _ => texts(view, sound),
    }
}

/// What one branch accepts may be what another accepts too, or, with the fields of another, none.
fn from_branches<'a>(generator: &Generator<'a>, view: &View<'a>, sound: &Value, keyword: &str) -> Vec<Value> {
    let branches = view.all(keyword).filter_map(Value::as_array).flatten().take(8);
    let mut instances = Vec::new();
    for branch in branches {
        let view = generator.view(branch);
        let least = generator.of_view(&view);
        if let Value::Object(least) = &least {
            instances.push(every_property(generator, &view, least));
        }
        instances.push(least);
    }
    let mut suspects: Vec<Value> = instances.iter().map(|instance| merged(sound, instance)).collect();
    suspects.extend(instances.iter().cloned());
    for first in &instances {
        suspects
            .extend(instances.iter().filter(|second| first != *second).map(|second| merged(first, second)));
    }
    suspects.truncate(60);
    suspects
}

fn objects<'a>(generator: &Generator<'a>, view: &View<'a>, sound: &Map<String, Value>) -> Vec<Value> {
    let mut suspects = vec![json!({})];
    for name in sound.keys() {
        let mut without = sound.clone();
        without.shift_remove(name);
        suspects.push(Value::Object(without));
    }
    suspects.push(every_property(generator, view, sound));
    for (name, schema) in view.properties().into_iter().take(12) {
        let mut with = sound.clone();
        with.entry(name).or_insert_with(|| generator.instance(schema));
        suspects.push(Value::Object(with));
    }
    for (name, _) in view.properties().into_iter().take(8) {
        suspects.extend(with_values(&Value::Object(sound.clone()), name));
    }
    suspects.extend(with_values(&Value::Object(sound.clone()), "extra").into_iter().take(2));
    suspects
}

fn arrays<'a>(generator: &Generator<'a>, view: &View<'a>, sound: &[Value]) -> Vec<Value> {
    let items = view.get("items").or_else(|| view.get("contains"));
    let item = sound.first().cloned().or_else(|| items.map(|schema| generator.instance(schema)));
    let item = item.unwrap_or_else(|| "x".into());
    let reversed: Vec<_> = sound.iter().rev().cloned().collect();
    let one_more: Vec<_> = sound.iter().chain([&item]).cloned().collect();
    let mut suspects = vec![json!([item, item]), Value::Array(reversed), Value::Array(one_more), json!([])];
    suspects.push(vec![item.clone(); sound.len()].into());
    if let Some((_, rest)) = sound.split_first() {
        suspects.push(rest.to_vec().into());
        for other in anything() {
            let mut changed = sound.to_vec();
            changed[0] = other;
            suspects.push(changed.into());
        }
    } else {
        suspects.extend(anything().into_iter().map(|other| json!([other])));
    }
    suspects
}

fn numbers(view: &View<'_>) -> Vec<Value> {
    let mut suspects = Vec::new();
    for keyword in ["minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf"] {
        for bound in view.all(keyword).filter_map(Value::as_f64) {
            suspects.extend([bound, bound + 1.0, bound - 1.0, bound + 0.5, bound / 2.0].map(from_f64));
        }
    }
    suspects.extend([0.0, 1.0, 2.0, -1.0, 7.0, 0.5, 100.0, 5_000_000_000.0].map(from_f64));
    suspects
}

fn texts(view: &View<'_>, sound: &Value) -> Vec<Value> {
    let mut suspects: Vec<Value> = Vec::new();
    for values in view.all("enum").filter_map(Value::as_array) {
        suspects.extend(values.iter().take(40).cloned());
    }
    suspects.extend(view.all("const").cloned());
    let texts = ["something else", "x", "", "0", "not@valid", "a b", "-", "é"];
    suspects.extend(texts.iter().map(|text| sized((*text).to_owned(), view).into()));
    suspects.extend(view.all("pattern").filter_map(Value::as_str).map(|pattern| matching(pattern).into()));
    if let Some(sound) = sound.as_str() {
        suspects.extend([format!("{sound} "), format!(" {sound}"), sound.to_uppercase()].map(Value::from));
    }
    suspects.extend(texts.iter().map(|text| (*text).into()));
    suspects.push("x".repeat(300).into());
    suspects
}

/// One of each kind.
fn anything() -> Vec<Value> {
    vec![
        "x".into(),
        0.into(),
        1.5.into(),
        true.into(),
        Value::Null,
        json!([]),
        json!({}),
        json!([0]),
        json!({ "x": 0 }),
    ]
}

fn with_values(sound: &Value, name: &str) -> Vec<Value> {
    let Some(object) = sound.as_object() else { return Vec::new() };
    let with = |value: Value| {
        let mut object = object.clone();
        object.insert(name.to_owned(), value);
        Value::Object(object)
    };
    anything().into_iter().map(with).collect()
}

/// A name that is not allowed, with a value that is.
fn with_names<'a>(generator: &Generator<'a>, view: &View<'a>, sound: &Value) -> Vec<Value> {
    let Some(object) = sound.as_object() else { return Vec::new() };
    let value =
        view.get("additionalProperties").map_or_else(|| "x".into(), |schema| generator.instance(schema));
    let names =
        ["something else", "x", "", "0", "X", "é"].map(str::to_owned).into_iter().chain(["x".repeat(300)]);
    let with = |name: String| {
        let mut object = object.clone();
        object.insert(name, value.clone());
        Value::Object(object)
    };
    names.map(with).collect()
}

fn every_property<'a>(generator: &Generator<'a>, view: &View<'a>, sound: &Map<String, Value>) -> Value {
    let mut object = sound.clone();
    for (name, schema) in view.properties() {
        object.entry(name).or_insert_with(|| generator.instance(schema));
    }
    Value::Object(object)
}

/// Both objects' fields, the first's winning; the second where one of them is no object.
fn merged(first: &Value, second: &Value) -> Value {
    match (first, second) {
        (Value::Object(first), Value::Object(second)) => {
            let mut merged = second.clone();
            merged.extend(first.clone());
            Value::Object(merged)
        }
        (_, second) => second.clone(),
    }
}
