//! Everything that judges one value: a schema with its references, its `allOf` and one branch of each union.

use indexmap::IndexMap;
use serde_json::{Map, Value};

use super::route::{Detour, Detours};
use crate::adapters::place::follow;

const MAX_LAYERS: usize = 64;

/// The schemas that judge a value together, the outermost first.
#[derive(Debug, Clone)]
pub(super) struct View<'a> {
    layers: Vec<(&'a Map<String, Value>, Option<Detour<'a>>)>,
}

impl<'a> View<'a> {
    pub(super) fn new(document: &'a Value, schema: &'a Value, detours: Option<&Detours<'a>>) -> Self {
        let mut view = Self { layers: Vec::new() };
        let mut open = vec![schema];
        while let Some(schema) = open.pop() {
            let Some(keywords) = schema.as_object() else { continue };
            if view.layers.len() >= MAX_LAYERS
                || view.layers.iter().any(|(layer, _)| std::ptr::eq(*layer, keywords))
            {
                continue;
            }
            let detour = detours.and_then(|detours| detours.get(&std::ptr::from_ref(schema))).copied();
            view.layers.push((keywords, detour));
            open.extend(
                keywords
                    .get("$ref")
                    .and_then(Value::as_str)
                    .and_then(|r| follow(document, r))
                    .map(|(t, _)| t),
            );
            open.extend(keywords.get("allOf").and_then(Value::as_array).into_iter().flatten());
            for union in ["anyOf", "oneOf"] {
                let branches =
                    keywords.get(union).and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default();
                let chosen = match detour {
                    Some(Detour::Branch(of, index)) if of == union => branches.get(index),
                    _ => branches.iter().find(|branch| !is_null(branch)).or(branches.first()),
                };
                open.extend(chosen);
            }
        }
        view
    }

    /// The first that is said with `keyword`.
    pub(super) fn get(&self, keyword: &str) -> Option<&'a Value> {
        self.all(keyword).next()
    }

    /// All that is said with `keyword`.
    pub(super) fn all(&self, keyword: &str) -> impl Iterator<Item = &'a Value> {
        self.layers.iter().filter_map(move |(layer, _)| layer.get(keyword))
    }

    pub(super) fn has(&self, keyword: &str) -> bool {
        self.get(keyword).is_some()
    }

    /// Declared properties, each once.
    pub(super) fn properties(&self) -> Vec<(&'a str, &'a Value)> {
        let mut properties: IndexMap<&str, &Value> = IndexMap::new();
        for (name, schema) in self.all("properties").filter_map(Value::as_object).flatten() {
            properties.entry(name).or_insert(schema);
        }
        properties.into_iter().collect()
    }

    pub(super) fn required(&self) -> Vec<&'a str> {
        self.all("required").filter_map(Value::as_array).flatten().filter_map(Value::as_str).collect()
    }

    /// Properties that are needed to get where the route goes.
    pub(super) fn wanted(&self) -> Vec<&'a str> {
        let wanted = |detour: &Option<Detour<'a>>| match detour {
            Some(Detour::Property(name)) => Some(*name),
            _ => None,
        };
        self.layers.iter().filter_map(|(_, detour)| wanted(detour)).collect()
    }

    /// The index of the item through which the route goes.
    pub(super) fn wanted_item(&self) -> Option<usize> {
        self.layers.iter().find_map(|(_, detour)| match detour {
            Some(Detour::Item(index)) => Some(*index),
            _ => None,
        })
    }

    /// The largest number said with `keyword`.
    pub(super) fn most(&self, keyword: &str) -> Option<f64> {
        self.all(keyword).filter_map(Value::as_f64).reduce(f64::max)
    }

    /// The smallest number said with `keyword`.
    pub(super) fn least(&self, keyword: &str) -> Option<f64> {
        self.all(keyword).filter_map(Value::as_f64).reduce(f64::min)
    }

    /// The narrowest type; inferred from the keywords where none is named, because authors mean it so.
    pub(super) fn kind(&self) -> &'a str {
        let mut kind = "";
        for named in self.all("type") {
            let name = match named {
                Value::Array(names) => names.iter().filter_map(Value::as_str).find(|name| *name != "null"),
                name => name.as_str(),
            };
            match name {
                Some(name) if kind.is_empty() || name == "integer" => kind = name,
                _ => {}
            }
        }
        let any = |keywords: &[&str]| keywords.iter().any(|keyword| self.has(keyword));
        match kind {
            "" if any(&["properties", "required", "additionalProperties", "patternProperties"]) => "object",
            "" if any(&["items", "prefixItems", "contains", "uniqueItems"]) => "array",
            "" if any(&["minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf"]) => {
                "number"
            }
            "" => "string",
            kind => kind,
        }
    }
}

fn is_null(schema: &Value) -> bool {
    schema.get("type").is_some_and(|kind| kind == "null")
}
