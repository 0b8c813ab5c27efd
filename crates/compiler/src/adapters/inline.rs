//! Writes out local references in place, keeping the meaning to the letter.
//!
//! A reference that leads back to itself cannot be written out; it stays, and so do the definitions.

use std::collections::{HashMap, HashSet};

use serde_json::{Map, Value};

use super::walk::{self, SubschemaShape};
use super::{Refusal, place};

/// See the same limits of the Gemini conversion: definitions that double at every level must not explode.
const MAX_SCHEMAS: usize = 10_000;
const MAX_DEPTH: usize = 96;

/// A schema with its references written out.
#[derive(Debug)]
pub(super) struct Inlined<'a> {
    pub(super) schema: Value,
    document: &'a Value,
    /// Where a reference was written out: its place in the result, and the place of its target in the original.
    written: Vec<(String, String)>,
}

impl Inlined<'_> {
    /// The place in the original that a place in the result came from.
    pub(super) fn origin(&self, place: &str) -> String {
        let inside = |written: &str| {
            place.strip_prefix(written).filter(|rest| rest.is_empty() || rest.starts_with('/'))
        };
        let found =
            self.written.iter().rev().filter_map(|(written, target)| Some((target, inside(written)?)));
        // The innermost reference has the shortest rest; of a chain in one place it is the last.
        let innermost = found.min_by_key(|(_, rest)| rest.len());
        let origin = innermost.map_or_else(|| place.to_owned(), |(target, rest)| format!("{target}{rest}"));
        // An `allOf` that was made to hold a target is in the result only.
        place::nearest(self.document, &origin)
    }
}

/// Writes out every reference in `document` that is not recursive.
pub(super) fn inline(document: &Value) -> Result<Inlined<'_>, Refusal> {
    let mut inliner =
        Inliner { document, recursive: recursive_references(document), schemas: 0, written: Vec::new() };
    let schema =
        inliner.write_out(document, Location { at: String::new(), result: String::new(), depth: 0 })?;
    Ok(Inlined { schema, document, written: inliner.written })
}

struct Inliner<'a> {
    document: &'a Value,
    recursive: HashSet<&'a str>,
    schemas: usize,
    written: Vec<(String, String)>,
}

/// Where the work is: in the original and in the result.
#[derive(Clone)]
struct Location {
    at: String,
    result: String,
    depth: usize,
}

impl Location {
    fn child(&self, key: &str) -> Self {
        Self { at: place::step(&self.at, key), result: place::step(&self.result, key), depth: self.depth + 1 }
    }
}

impl<'a> Inliner<'a> {
    fn write_out(&mut self, schema: &'a Value, location: Location) -> Result<Value, Refusal> {
        self.schemas += 1;
        if location.depth > MAX_DEPTH || self.schemas > MAX_SCHEMAS {
            let reason = "with its references written out, the schema is too large or too deep".to_owned();
            return Err(Refusal { at: location.at, reason });
        }
        let Some(keywords) = schema.as_object() else { return Ok(schema.clone()) };
        let mut own = Map::new();
        for (keyword, value) in keywords {
            if walk::is_definitions(keyword) {
                if !self.recursive.is_empty() {
                    own.insert(keyword.clone(), value.clone());
                }
            } else if keyword != "$ref" {
                own.insert(
                    keyword.clone(),
                    self.write_out_keyword(keyword, value, &location.child(keyword))?,
                );
            }
        }
        match keywords.get("$ref").and_then(Value::as_str) {
            None => Ok(Value::Object(own)),
            Some(reference) if self.recursive.contains(reference) => {
                own.insert("$ref".to_owned(), reference.into());
                Ok(Value::Object(own))
            }
            Some(reference) => self.beside(own, reference, location),
        }
    }

    fn write_out_keyword(
        &mut self,
        keyword: &str,
        value: &'a Value,
        location: &Location,
    ) -> Result<Value, Refusal> {
        Ok(match (walk::holds(keyword, value), value) {
            (SubschemaShape::One, schema) => self.write_out(schema, location.clone())?,
            (SubschemaShape::List, Value::Array(list)) => {
                let list = list.iter().enumerate();
                let written =
                    list.map(|(index, schema)| self.write_out(schema, location.child(&index.to_string())));
                Value::Array(written.collect::<Result<_, _>>()?)
            }
            (SubschemaShape::Named, Value::Object(named)) => {
                let mut written = Map::new();
                for (name, schema) in named {
                    let location = location.child(name);
                    written.insert(name.clone(), self.write_out(schema, location)?);
                }
                Value::Object(written)
            }
            _ => value.clone(),
        })
    }

    /// A target beside what stood next to its reference. Words may be mixed into the target; keywords that judge may
    /// not, because some look at their neighbours (`additionalProperties` at `properties`).
    fn beside(
        &mut self,
        mut own: Map<String, Value>,
        reference: &str,
        mut location: Location,
    ) -> Result<Value, Refusal> {
        let Some((target, at)) = place::follow(self.document, reference) else {
            let reason = format!("`{reference}` names nothing inside the parameters");
            return Err(Refusal { at: location.at, reason });
        };
        let mixes =
            own.keys().all(|keyword| walk::is_annotation(keyword)) && (own.is_empty() || target.is_object());
        let parts = own.get("allOf").and_then(Value::as_array).map_or(0, Vec::len);
        if !mixes {
            location.result = format!("{}/allOf/{parts}", location.result);
        }
        self.written.push((location.result.clone(), at.clone()));
        let target =
            self.write_out(target, Location { at, result: location.result, depth: location.depth + 1 })?;
        match target {
            Value::Object(mut target) if mixes => {
                target.extend(own);
                Ok(Value::Object(target))
            }
            target if mixes => Ok(target),
            target => {
                match own.get_mut("allOf") {
                    Some(Value::Array(parts)) => parts.push(target),
                    _ => {
                        own.insert("allOf".to_owned(), Value::Array(vec![target]));
                    }
                }
                Ok(Value::Object(own))
            }
        }
    }
}

/// The references from which following references leads back to them.
fn recursive_references(document: &Value) -> HashSet<&str> {
    let mut within: HashMap<&str, Vec<&str>> = HashMap::new();
    let mut open = references_in(document);
    while let Some(reference) = open.pop() {
        if !within.contains_key(reference) {
            let target = place::follow(document, reference).map(|(target, _)| target);
            let found = target.map(references_in).unwrap_or_default();
            open.extend(&found);
            within.insert(reference, found);
        }
    }
    within.keys().copied().filter(|reference| reaches(&within, reference, reference)).collect()
}

fn reaches<'a>(within: &HashMap<&'a str, Vec<&'a str>>, from: &str, to: &str) -> bool {
    let mut seen = HashSet::new();
    let mut open = vec![from];
    while let Some(reference) = open.pop() {
        for next in within.get(reference).into_iter().flatten() {
            if *next == to {
                return true;
            }
            if seen.insert(*next) {
                open.push(next);
            }
        }
    }
    false
}

fn references_in(schema: &Value) -> Vec<&str> {
    let mut references = Vec::new();
    let mut open = vec![schema];
    while let Some(schema) = open.pop() {
        references.extend(schema.get("$ref").and_then(Value::as_str));
        open.extend(walk::children(schema, "").into_iter().map(|(child, _)| child));
    }
    references
}
