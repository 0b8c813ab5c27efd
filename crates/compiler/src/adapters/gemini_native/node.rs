//! A schema made flat: its references followed and its `allOf` folded in (rules 1 and 2).

use indexmap::{IndexMap, IndexSet};
use serde_json::Value;

use super::form::Kind;
use crate::adapters::place::step;

/// A schema as it was written, and where.
#[derive(Debug, Clone)]
pub(super) struct Place<'a> {
    pub(super) schema: &'a Value,
    /// Its pointer in the parameters; what a reference names is where it is defined, not where it is used.
    pub(super) at: String,
    /// The references that were followed to get here. Meeting one of them again is recursion.
    pub(super) refs: Vec<&'a str>,
}

impl<'a> Place<'a> {
    pub(super) fn child(&self, key: &str, schema: &'a Value) -> Self {
        Self { schema, at: step(&self.at, key), refs: self.refs.clone() }
    }

    /// The elements of a list such as `anyOf`; nothing when it is not a list.
    pub(super) fn elements(&self) -> Vec<Self> {
        let list = self.schema.as_array().map(Vec::as_slice).unwrap_or_default();
        list.iter().enumerate().map(|(index, element)| self.child(&index.to_string(), element)).collect()
    }
}

/// One schema, flat. Where two places say the same keyword, the outer one wins; properties and required names are
/// united.
#[derive(Debug, Clone, Default)]
pub(super) struct Node<'a> {
    pub(super) at: String,
    /// The types without `null`; empty when none was given.
    pub(super) kinds: Vec<Kind>,
    /// Whether null is among the types, or OpenAPI's `nullable` says so.
    pub(super) nullable: bool,
    /// The values of `enum` or `const`; `const` is the stricter of the two.
    pub(super) values: Option<Vec<&'a Value>>,
    /// Each with the schemas it may have: one, or several once the branches of a union have been united.
    pub(super) properties: IndexMap<&'a str, Vec<Place<'a>>>,
    pub(super) required: IndexSet<&'a str>,
    /// Every keyword that is there, those above included.
    pub(super) keywords: IndexMap<&'a str, Place<'a>>,
}

impl<'a> Node<'a> {
    /// Adds what `place` itself says, where nothing has been said yet.
    pub(super) fn fill(&mut self, place: &Place<'a>) {
        let Some(schema) = place.schema.as_object() else { return };
        for (key, value) in schema {
            let child = place.child(key, value);
            match key.as_str() {
                "properties" => self.unite_properties(&child),
                "required" => self.unite_required(value),
                "type" if !self.has("type") => self.set_type(value),
                "const" if !self.has("const") && !self.has("enum") => self.values = Some(vec![value]),
                "enum" if !self.has("const") && !self.has("enum") => {
                    let listed = || value.as_array().map(|values| values.iter().collect());
                    self.values = schema.get("const").map(|only| vec![only]).or_else(listed);
                }
                "nullable" => self.nullable |= value == &Value::Bool(true),
                _ => {}
            }
            self.keywords.entry(key).or_insert(child);
        }
    }

    /// Adds what `outer` says, where this node says nothing. Unions are left out: they have had their turn.
    pub(super) fn fill_from(&mut self, outer: &Node<'a>, union: &str) {
        if self.kinds.is_empty() && !self.has("type") {
            self.kinds.clone_from(&outer.kinds);
        }
        if self.values.is_none() {
            self.values.clone_from(&outer.values);
        }
        for (name, schemas) in &outer.properties {
            self.properties.entry(name).or_insert_with(|| schemas.clone());
        }
        self.required.extend(&outer.required);
        for (key, place) in &outer.keywords {
            if *key != union {
                self.keywords.entry(key).or_insert_with(|| place.clone());
            }
        }
    }

    pub(super) fn has(&self, keyword: &str) -> bool {
        self.keywords.contains_key(keyword)
    }

    pub(super) fn get(&self, keyword: &str) -> Option<&Place<'a>> {
        self.keywords.get(keyword)
    }

    pub(super) fn text(&self, keyword: &str) -> Option<&'a str> {
        self.get(keyword)?.schema.as_str().filter(|text| !text.is_empty())
    }

    /// A schema that only null satisfies.
    pub(super) fn is_null(&self) -> bool {
        let null_type = self.kinds.is_empty() && self.nullable && self.has("type");
        let null_values =
            self.values.as_ref().is_some_and(|v| !v.is_empty() && v.iter().all(|v| v.is_null()));
        null_type || null_values
    }

    /// The texts that a branch of a union lists, when that is what it is: a literal.
    pub(super) fn literals(&self) -> Option<Vec<&'a str>> {
        if !self.kinds.iter().all(|kind| *kind == Kind::String) {
            return None;
        }
        let values = self.values.as_ref().filter(|values| !values.is_empty())?;
        values.iter().map(|value| value.as_str()).collect()
    }

    fn unite_properties(&mut self, place: &Place<'a>) {
        for (name, schema) in place.schema.as_object().into_iter().flatten() {
            self.properties.entry(name).or_insert_with(|| vec![place.child(name, schema)]);
        }
    }

    fn unite_required(&mut self, names: &'a Value) {
        self.required.extend(names.as_array().into_iter().flatten().filter_map(Value::as_str));
    }

    /// Names that are no type of JSON Schema are passed over; the type is then inferred.
    fn set_type(&mut self, value: &Value) {
        let names = match value {
            Value::Array(names) => names.as_slice(),
            name => std::slice::from_ref(name),
        };
        for name in names.iter().filter_map(Value::as_str) {
            match Kind::find(name) {
                Some(kind) if !self.kinds.contains(&kind) => self.kinds.push(kind),
                Some(_) => {}
                None => self.nullable |= name == "null",
            }
        }
    }
}
