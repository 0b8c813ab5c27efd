//! The schemas inside a schema. Everything else in it (defaults, listed values, examples) is data, where `$ref` is
//! only a word.

use serde_json::Value;

use super::place::step;

/// How a keyword holds schemas.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum SubschemaShape {
    /// Its value is a schema.
    One,
    /// Its value is a list of schemas.
    List,
    /// Its value is an object whose values are schemas.
    Named,
    /// It holds no schema.
    Nothing,
}

pub(super) fn holds(keyword: &str, value: &Value) -> SubschemaShape {
    match keyword {
        "items" if value.is_array() => SubschemaShape::List,
        "items"
        | "additionalProperties"
        | "not"
        | "if"
        | "then"
        | "else"
        | "contains"
        | "propertyNames"
        | "unevaluatedItems"
        | "unevaluatedProperties"
        | "contentSchema" => SubschemaShape::One,
        "anyOf" | "oneOf" | "allOf" | "prefixItems" => SubschemaShape::List,
        "properties" | "patternProperties" | "dependentSchemas" | "$defs" | "definitions" => {
            SubschemaShape::Named
        }
        _ => SubschemaShape::Nothing,
    }
}

/// Definitions say nothing until something refers to them.
pub(super) fn is_definitions(keyword: &str) -> bool {
    matches!(keyword, "$defs" | "definitions")
}

/// Keywords that describe without judging.
pub(super) fn is_annotation(keyword: &str) -> bool {
    matches!(
        keyword,
        "$schema"
            | "$id"
            | "$anchor"
            | "$comment"
            | "title"
            | "description"
            | "default"
            | "examples"
            | "example"
            | "deprecated"
            | "readOnly"
            | "writeOnly"
            | "contentEncoding"
            | "contentMediaType"
            | "contentSchema"
    ) || is_definitions(keyword)
}

/// The schemas directly inside `schema` that apply to values, each with its pointer.
pub(super) fn children<'a>(schema: &'a Value, at: &str) -> Vec<(&'a Value, String)> {
    let mut children = Vec::new();
    for (keyword, value) in schema.as_object().into_iter().flatten() {
        if is_definitions(keyword) {
            continue;
        }
        let here = step(at, keyword);
        match holds(keyword, value) {
            SubschemaShape::One => children.push((value, here)),
            SubschemaShape::List => {
                let list = value.as_array().into_iter().flatten().enumerate();
                children.extend(list.map(|(index, child)| (child, format!("{here}/{index}"))));
            }
            SubschemaShape::Named => {
                let named = value.as_object().into_iter().flatten();
                children.extend(named.map(|(name, child)| (child, step(&here, name))));
            }
            SubschemaShape::Nothing => {}
        }
    }
    children
}
