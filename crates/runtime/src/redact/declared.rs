//! What of some arguments a schema declares: known names with values of the declared kind.

use std::collections::BTreeSet;

use serde_json::{Map, Value};
use strsim::jaro_winkler;

use super::HIDDEN;

/// How deep schemas and values are followed. What lies deeper is hidden.
const MAX_DEPTH: usize = 32;
/// How alike a misspelt name must be to a declared one to be shown, between 0 and 1. Any other may be a secret itself.
const MIN_NAME_SIMILARITY: f64 = 0.85;

/// The arguments with everything hidden that the schema does not declare.
pub(super) fn only_declared(parameters: &Value, args: &Value) -> Value {
    let mut names = BTreeSet::new();
    names_in(parameters, &mut names, 0);
    let schema = DeclaredSchema { root: parameters, names };
    if args.is_object() { schema.shown(args, &[parameters], 0) } else { HIDDEN.into() }
}

/// The object or list that a text is, for models that write JSON into a text.
pub(super) fn json_in(text: &str) -> Option<Value> {
    let text = text.trim();
    let may_be =
        (text.starts_with('{') && text.ends_with('}')) || (text.starts_with('[') && text.ends_with(']'));
    may_be.then(|| serde_json::from_str(text).ok()).flatten()
}

struct DeclaredSchema<'a> {
    root: &'a Value,
    /// Every name that the schema declares anywhere.
    names: BTreeSet<&'a str>,
}

impl<'a> DeclaredSchema<'a> {
    /// A value, with everything hidden that none of its schemas declares.
    fn shown(&self, value: &Value, under: &[&'a Value], depth: usize) -> Value {
        let mut schemas = Vec::new();
        for schema in under {
            self.gather(schema, &mut schemas, depth);
        }
        if depth >= MAX_DEPTH || !schemas.iter().any(|schema| declares(schema, value)) {
            return HIDDEN.into();
        }
        match value {
            Value::Object(fields) => self.shown_fields(fields, &schemas, depth),
            Value::Array(items) => {
                let of_items = |schema: &&&'a Value| schema.get("items").filter(|items| items.is_object());
                let under: Vec<&'a Value> = schemas.iter().filter_map(|schema| of_items(&schema)).collect();
                items.iter().map(|item| self.shown(item, &under, depth + 1)).collect()
            }
            Value::String(text) if json_in(text).is_some() => HIDDEN.into(),
            scalar => scalar.clone(),
        }
    }

    fn shown_fields(&self, fields: &Map<String, Value>, schemas: &[&'a Value], depth: usize) -> Value {
        let mut shown = Map::new();
        let mut hidden_names = 0;
        for (name, field) in fields {
            let under: Vec<&'a Value> = schemas.iter().filter_map(|schema| of_field(schema, name)).collect();
            if !under.is_empty() {
                shown.insert(name.clone(), self.shown(field, &under, depth + 1));
            } else if self.may_be_misspelt(name) {
                shown.insert(name.clone(), HIDDEN.into());
            } else {
                hidden_names += 1;
                shown.insert(format!("{HIDDEN} {hidden_names}"), HIDDEN.into());
            }
        }
        Value::Object(shown)
    }

    fn may_be_misspelt(&self, name: &str) -> bool {
        self.names.iter().any(|known| name == *known || jaro_winkler(name, known) >= MIN_NAME_SIMILARITY)
    }

    /// A schema with all that it is put together from.
    fn gather(&self, schema: &'a Value, into: &mut Vec<&'a Value>, depth: usize) {
        if depth >= MAX_DEPTH || into.len() >= MAX_DEPTH * MAX_DEPTH {
            return;
        }
        into.push(schema);
        if let Some(target) = schema["$ref"].as_str().and_then(|to| self.root.pointer(to.strip_prefix('#')?))
        {
            self.gather(target, into, depth + 1);
        }
        for keyword in ["allOf", "anyOf", "oneOf"] {
            for part in schema[keyword].as_array().into_iter().flatten() {
                self.gather(part, into, depth + 1);
            }
        }
        for part in ["if", "then", "else"].iter().filter_map(|keyword| schema.get(keyword)) {
            self.gather(part, into, depth + 1);
        }
    }
}

/// The schema of a field.
fn of_field<'a>(schema: &'a Value, name: &str) -> Option<&'a Value> {
    schema["properties"].get(name).or_else(|| {
        // A map with values of one kind has names of its own.
        schema.get("additionalProperties").filter(|others| others.is_object())
    })
}

/// Whether a schema says that a value of this kind belongs here.
fn declares(schema: &Value, value: &Value) -> bool {
    let is = |kind: &Value| match kind.as_str() {
        Some("integer") => {
            value.is_i64() || value.is_u64() || value.as_f64().is_some_and(|f| f.fract() == 0.0)
        }
        Some("number") => value.is_number(),
        Some("string") => value.is_string(),
        Some("boolean") => value.is_boolean(),
        Some("null") => value.is_null(),
        Some("array") => value.is_array(),
        Some("object") => value.is_object(),
        _ => false,
    };
    let is_kind = match schema.get("type") {
        Some(Value::Array(kinds)) => kinds.iter().any(is),
        Some(kind) => is(kind),
        None => false,
    };
    match (schema.get("enum"), schema.get("const")) {
        (Some(values), _) => values.as_array().is_some_and(|values| values.contains(value)),
        (None, Some(only)) => only == value,
        (None, None) => is_kind,
    }
}

pub(super) fn names_in<'a>(schema: &'a Value, names: &mut BTreeSet<&'a str>, depth: usize) {
    if depth >= MAX_DEPTH {
        return;
    }
    match schema {
        Value::Object(fields) => {
            for (keyword, part) in fields {
                if keyword == "properties" {
                    names.extend(part.as_object().into_iter().flatten().map(|(name, _)| name.as_str()));
                }
                names_in(part, names, depth + 1);
            }
        }
        Value::Array(parts) => parts.iter().for_each(|part| names_in(part, names, depth + 1)),
        _ => {}
    }
}
