//! OpenAI functions with `strict: true`, for tools that can be said that way.
//!
//! A strict schema requires every property, so an optional one becomes nullable instead. **Before arguments of a
//! strict call are checked, nulls of properties that are optional and not nullable in the original must be
//! dropped**; otherwise defaults are not filled and the original refuses the null. With that, everything the strict
//! form admits the original accepts. Undeclared properties of open objects cannot be sent; nothing else is lost.

mod limits;
mod nullable;

use std::collections::HashSet;

use quarterdeck_contracts::Definition;
use serde_json::{Map, Value, json};

use self::limits::SizeCount;
use self::nullable::nullable;
use super::inline::{Inlined, inline};
use super::place::step;
use super::{AdaptedTool, Refusal, walk};
use crate::distinct::distinct;

pub(super) fn adapt(definition: &Definition) -> Result<AdaptedTool, Vec<Refusal>> {
    let inlined = inline(&definition.parameters).map_err(|refusal| vec![refusal])?;
    let mut strict = Strict { blockers: Vec::new(), tally: SizeCount::default() };
    strict.check_root(&inlined.schema);
    let parameters = strict.convert(&inlined.schema, "", 1);
    strict.blockers.extend(strict.tally.blockers());
    if !strict.blockers.is_empty() {
        return Err(in_original(strict.blockers, &inlined));
    }
    let declaration = json!({
        "type": "function",
        "function": {
            "name": definition.metadata.tool_id,
            "description": definition.metadata.description,
            "parameters": parameters,
            "strict": true,
        },
    });
    Ok(AdaptedTool { declaration, losses: Vec::new() })
}

/// The blockers at their places in the original. A definition that is used twice is still one place.
fn in_original(blockers: Vec<Refusal>, inlined: &Inlined<'_>) -> Vec<Refusal> {
    distinct(blockers.into_iter().map(|blocker| Refusal { at: inlined.origin(&blocker.at), ..blocker }))
}

struct Strict {
    blockers: Vec<Refusal>,
    tally: SizeCount,
}

impl Strict {
    fn check_root(&mut self, root: &Value) {
        if root.get("type").and_then(Value::as_str) != Some("object") {
            self.block("", "the root of a strict schema is an object");
        }
        if root.get("anyOf").is_some() {
            self.block("/anyOf", "the root of a strict schema is no union");
        }
    }

    /// `level` counts nested objects, the root being the first. Nesting is bounded by the inlining before.
    fn convert(&mut self, schema: &Value, at: &str, level: usize) -> Value {
        let Some(keywords) = schema.as_object() else {
            self.block(at, "a strict schema says what a value is, never just true or false");
            return schema.clone();
        };
        if let Some(only) = sole_part(keywords) {
            return self.convert(&only, &format!("{at}/allOf/0"), level);
        }
        let mut strict = Map::new();
        for (keyword, value) in keywords {
            let here = step(at, keyword);
            let value = match keyword.as_str() {
                "properties" | "required" | "additionalProperties" => continue,
                "nullable" => continue,
                "items" if value.is_object() => self.convert(value, &here, level),
                "anyOf" => {
                    let branches = value.as_array().into_iter().flatten().enumerate();
                    branches.map(|(i, branch)| self.convert(branch, &format!("{here}/{i}"), level)).collect()
                }
                "$defs" | "definitions" => self.convert_named(value, &here, level),
                "enum" | "const" => {
                    self.tally.values(value, &here);
                    value.clone()
                }
                keyword if KEPT.contains(&keyword) => value.clone(),
                keyword if walk::is_annotation(keyword) => continue,
                keyword => {
                    self.block(&here, &format!("a strict schema has no `{keyword}`"));
                    continue;
                }
            };
            strict.insert(keyword.clone(), value);
        }
        self.check_type(keywords, at);
        if is_of_type(keywords, "object") {
            self.close_object(keywords, &mut strict, at, level);
        }
        if keywords.get("nullable") == Some(&Value::Bool(true)) {
            return nullable(Value::Object(strict));
        }
        Value::Object(strict)
    }

    /// Requires every property, makes the optional ones nullable and admits no others.
    fn close_object(
        &mut self,
        keywords: &Map<String, Value>,
        strict: &mut Map<String, Value>,
        at: &str,
        level: usize,
    ) {
        let properties = keywords.get("properties").and_then(Value::as_object);
        match keywords.get("additionalProperties") {
            Some(Value::Bool(false)) => {}
            None if properties.is_some_and(|properties| !properties.is_empty()) => {}
            _ => self.block(at, "a strict schema has no object with names that are not declared"),
        }
        self.tally.level(level, at);
        let required: HashSet<_> = keywords
            .get("required")
            .and_then(Value::as_array)
            .into_iter()
            .flatten()
            .filter_map(Value::as_str)
            .collect();
        let mut converted = Map::new();
        for (name, schema) in properties.into_iter().flatten() {
            self.tally.property(name);
            let schema = self.convert(schema, &step(&step(at, "properties"), name), level + 1);
            let schema = if required.contains(name.as_str()) { schema } else { nullable(schema) };
            converted.insert(name.clone(), schema);
        }
        let names: Vec<Value> = converted.keys().map(|name| name.as_str().into()).collect();
        strict.insert("properties".to_owned(), Value::Object(converted));
        strict.insert("required".to_owned(), Value::Array(names));
        strict.insert("additionalProperties".to_owned(), false.into());
    }

    fn convert_named(&mut self, named: &Value, at: &str, level: usize) -> Value {
        let named = named.as_object().into_iter().flatten();
        let converted = named.map(|(name, schema)| {
            self.tally.name(name);
            (name.clone(), self.convert(schema, &step(at, name), level))
        });
        Value::Object(converted.collect())
    }

    fn check_type(&mut self, keywords: &Map<String, Value>, at: &str) {
        let says = |keyword: &str| keywords.contains_key(keyword);
        if !["type", "anyOf", "$ref", "enum", "const"].into_iter().any(says) {
            self.block(at, "a strict schema names a type everywhere");
        }
        if is_of_type(keywords, "array") && !keywords.get("items").is_some_and(Value::is_object) {
            self.block(at, "a strict schema says what the items of an array are");
        }
    }

    fn block(&mut self, at: &str, reason: &str) {
        self.blockers.push(Refusal { at: at.to_owned(), reason: reason.to_owned() });
    }
}

/// Keywords that pass unchanged.
const KEPT: [&str; 12] = [
    "type",
    "description",
    "$ref",
    "pattern",
    "format",
    "multipleOf",
    "minimum",
    "maximum",
    "exclusiveMinimum",
    "exclusiveMaximum",
    "minItems",
    "maxItems",
];

/// The only part of an `allOf` that has nothing but words beside it: the part with those words.
fn sole_part(keywords: &Map<String, Value>) -> Option<Value> {
    let [part] = keywords.get("allOf")?.as_array()?.as_slice() else { return None };
    let mut part = part.as_object()?.clone();
    for (keyword, value) in keywords.iter().filter(|(keyword, _)| *keyword != "allOf") {
        if !walk::is_annotation(keyword) {
            return None;
        }
        part.insert(keyword.clone(), value.clone());
    }
    Some(Value::Object(part))
}

fn is_of_type(keywords: &Map<String, Value>, name: &str) -> bool {
    match keywords.get("type") {
        Some(Value::String(only)) => only == name,
        Some(Value::Array(names)) => names.iter().any(|other| other == name),
        _ => false,
    }
}
