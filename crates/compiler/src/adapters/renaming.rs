//! Gives property names that a provider refuses other names in its declaration.
//!
//! A name gets the same other name wherever it stands, and none that occurs in the schema already, so that arguments can
//! be mapped back without the schema ([`Renames`]).

use std::collections::{BTreeMap, HashSet};

use quarterdeck_contracts::{Loss, Renames};
use serde_json::{Map, Value};

use super::place::{follow, step};
use super::walk::{self, SubschemaShape};

/// What authors acknowledge.
const LOSS: &str = "property names";
/// How long the readable part of a new name is. Every provider takes 64 characters in all.
const MAX_STEM_LENGTH: usize = 48;

/// Parameters whose names a provider takes.
pub(super) struct RenamedParameters {
    pub(super) schema: Value,
    pub(super) renames: Renames,
    /// The renaming as a loss, if something was renamed.
    pub(super) loss: Option<Loss>,
}

pub(super) fn rename(parameters: Value, takes_name: fn(&str) -> bool) -> RenamedParameters {
    let refused = refused_names(&parameters, takes_name);
    if refused.is_empty() {
        return RenamedParameters { schema: parameters, renames: Renames::default(), loss: None };
    }
    let mut taken = HashSet::new();
    collect_keys(&parameters, &mut taken);
    let mut renamed = BTreeMap::new();
    for (name, _) in &refused {
        if !renamed.contains_key(name) {
            let fresh = fresh_name(name, &taken);
            taken.insert(fresh.clone());
            renamed.insert(name.clone(), fresh);
        }
    }
    let renames = Renames::new(renamed.clone());
    let schema = Rewriter { names: &renamed, renames: &renames }.schema(&parameters);
    let at = refused.into_iter().map(|(_, at)| at).collect();
    let loss = Loss { what: LOSS.to_owned(), at, counter_example: None, renamed };
    RenamedParameters { schema, renames, loss: Some(loss) }
}

/// The loss without names in parts of the schema that the form has dropped; `None` when no other is left.
pub(super) fn without_dropped(loss: Loss, declaration: &Value) -> Option<Loss> {
    let mut declared = HashSet::new();
    collect_keys(declaration, &mut declared);
    let Loss { what, mut at, counter_example, mut renamed } = loss;
    renamed.retain(|_, name| declared.contains(name));
    at.retain(|place| renamed.keys().any(|name| place.ends_with(&step("", name))));
    (!renamed.is_empty()).then_some(Loss { what, at, counter_example, renamed })
}

/// The names that are refused, with their places, in schemas that can be reached from the root.
fn refused_names(document: &Value, takes_name: fn(&str) -> bool) -> Vec<(String, String)> {
    let mut refused = Vec::new();
    let mut open = vec![(document, String::new())];
    let mut seen = HashSet::new();
    while let Some((schema, at)) = open.pop() {
        if !seen.insert(at.clone()) {
            continue;
        }
        for name in schema.get("properties").and_then(Value::as_object).into_iter().flat_map(Map::keys) {
            if !takes_name(name) {
                refused.push((name.clone(), step(&step(&at, "properties"), name)));
            }
        }
        let reference = schema.get("$ref").and_then(Value::as_str);
        open.extend(reference.and_then(|reference| follow(document, reference)));
        open.extend(walk::children(schema, &at).into_iter().rev());
    }
    refused
}

fn collect_keys(value: &Value, keys: &mut HashSet<String>) {
    match value {
        Value::Object(members) => {
            keys.extend(members.keys().cloned());
            members.values().for_each(|member| collect_keys(member, keys));
        }
        Value::Array(items) => items.iter().for_each(|item| collect_keys(item, keys)),
        _ => {}
    }
}

/// A name of ASCII letters, digits and underscores that every provider takes: what is left of the original, and a number
/// that no one would choose.
fn fresh_name(original: &str, taken: &HashSet<String>) -> String {
    let letter = |letter: char| if letter.is_ascii_alphanumeric() { letter } else { '_' };
    let stem: String = original.chars().map(letter).take(MAX_STEM_LENGTH).collect();
    let stem = stem.trim_matches('_');
    let stem = match stem.chars().next() {
        None => "name".to_owned(),
        Some(first) if first.is_ascii_digit() => format!("_{stem}"),
        Some(_) => stem.to_owned(),
    };
    let numbered = (1_usize..).map(|number| format!("{stem}__{number}"));
    numbered.into_iter().find(|name| !taken.contains(name)).unwrap_or(stem)
}

struct Rewriter<'a> {
    names: &'a BTreeMap<String, String>,
    renames: &'a Renames,
}

impl Rewriter<'_> {
    /// Nesting is bounded where the definition is read.
    fn schema(&self, schema: &Value) -> Value {
        let Some(keywords) = schema.as_object() else { return schema.clone() };
        let keyword = |(keyword, value): (&String, &Value)| (keyword.clone(), self.keyword(keyword, value));
        Value::Object(keywords.iter().map(keyword).collect())
    }

    fn keyword(&self, keyword: &str, value: &Value) -> Value {
        match (keyword, value) {
            ("properties", Value::Object(properties)) => self.properties(properties),
            ("dependentSchemas", Value::Object(named)) => Value::Object(
                named.iter().map(|(name, value)| (self.name(name), self.schema(value))).collect(),
            ),
            ("required", names) => self.listed(names),
            ("dependentRequired", Value::Object(named)) => Value::Object(
                named.iter().map(|(name, names)| (self.name(name), self.listed(names))).collect(),
            ),
            ("propertyNames", Value::Object(keywords)) => self.property_names(keywords),
            ("$ref", Value::String(reference)) => self.reference(reference).into(),
            ("default" | "const" | "enum" | "examples" | "example", data) => self.renames.to_declared(data),
            _ => self.subschemas(keyword, value),
        }
    }

    fn subschemas(&self, keyword: &str, value: &Value) -> Value {
        match (walk::holds(keyword, value), value) {
            (SubschemaShape::One, schema) => self.schema(schema),
            (SubschemaShape::List, Value::Array(list)) => {
                list.iter().map(|schema| self.schema(schema)).collect()
            }
            (SubschemaShape::Named, Value::Object(named)) => {
                Value::Object(named.iter().map(|(name, value)| (name.clone(), self.schema(value))).collect())
            }
            _ => value.clone(),
        }
    }

    /// A property with another name says what its name is, because guides and examples use it.
    fn properties(&self, properties: &Map<String, Value>) -> Value {
        let property = |(name, schema): (&String, &Value)| {
            let mut schema = self.schema(schema);
            if let Some(declared) = self.names.get(name) {
                introduce(&mut schema, name);
                return (declared.clone(), schema);
            }
            (name.clone(), schema)
        };
        Value::Object(properties.iter().map(property).collect())
    }

    /// Here names stand as values.
    fn property_names(&self, keywords: &Map<String, Value>) -> Value {
        let keyword = |(keyword, value): (&String, &Value)| {
            let value = match keyword.as_str() {
                "enum" => self.listed(value),
                "const" => value.as_str().map_or_else(|| value.clone(), |name| self.name(name).into()),
                _ => self.keyword(keyword, value),
            };
            (keyword.clone(), value)
        };
        Value::Object(keywords.iter().map(keyword).collect())
    }

    fn listed(&self, names: &Value) -> Value {
        let name = |name: &Value| name.as_str().map_or_else(|| name.clone(), |name| self.name(name).into());
        names.as_array().map_or_else(|| names.clone(), |names| names.iter().map(name).collect())
    }

    fn name(&self, name: &str) -> String {
        self.names.get(name).cloned().unwrap_or_else(|| name.to_owned())
    }

    /// A reference that leads through properties.
    fn reference(&self, reference: &str) -> String {
        let Some(pointer) = reference.strip_prefix("#/") else { return reference.to_owned() };
        let mut is_name = false;
        let segment = |segment: &str| {
            let was_name = std::mem::replace(&mut is_name, false);
            if was_name {
                let name = super::place::unescape(segment);
                return self.names.get(&name).cloned().unwrap_or_else(|| segment.to_owned());
            }
            is_name = matches!(segment, "properties" | "dependentSchemas");
            segment.to_owned()
        };
        format!("#/{}", pointer.split('/').map(segment).collect::<Vec<_>>().join("/"))
    }
}

/// A reference has no words of its own: they would hide those of what it refers to.
fn introduce(schema: &mut Value, name: &str) {
    let Some(keywords) = schema.as_object_mut().filter(|keywords| !keywords.contains_key("$ref")) else {
        return;
    };
    let hint = format!("Known elsewhere as {name:?}.");
    let description = match keywords.get("description").and_then(Value::as_str) {
        Some(description) if !description.is_empty() => format!("{description} {hint}"),
        _ => hint,
    };
    keywords.insert("description".to_owned(), description.into());
}
