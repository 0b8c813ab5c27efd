//! OpenAI functions for servers of other makers that speak its protocol: llama.cpp, Ollama, LM Studio, vLLM.
//!
//! Such a server turns the parameters into a grammar, and refuses the whole request for one keyword that its grammar
//! does not have; one version of llama.cpp even dies of a look-ahead. Which server is behind a base URL is not known when
//! tools are built, so there is one form, of what all of them take (`servers.rs`). What is left out is noted, and
//! arguments are always checked against the original: a form that admits more is safe.

mod pattern;
mod servers;

use std::collections::BTreeMap;

use indexmap::IndexSet;
use quarterdeck_contracts::Definition;
use serde_json::{Map, Value, json};

pub use self::pattern::anchored;
use self::servers::Common;
use super::inline::{Inlined, inline};
use super::place::step;
use super::walk::{SubschemaShape, holds};
use super::{AdaptedTool, Refusal, losses};

pub(super) fn adapt(definition: &Definition) -> Result<AdaptedTool, Vec<Refusal>> {
    let inlined = inline(&definition.parameters).map_err(|refusal| vec![refusal])?;
    let mut converter = Converter { common: Common::default(), notes: BTreeMap::new() };
    let parameters = converter.convert(&inlined.schema, "");
    let notes = in_original(converter.notes, &inlined);
    let losses = losses::with_counter_examples(notes, &definition.parameters, &parameters);
    let declaration = json!({
        "type": "function",
        "function": {
            "name": definition.metadata.tool_id,
            "description": definition.metadata.description,
            "parameters": parameters,
        },
    });
    Ok(AdaptedTool { declaration, losses })
}

type Notes = BTreeMap<&'static str, IndexSet<String>>;

/// The losses at their places in the original. A definition that is used twice is still one place.
fn in_original<'n>(
    notes: Notes,
    inlined: &'n Inlined<'_>,
) -> impl Iterator<Item = (&'static str, Vec<String>)> + 'n {
    notes.into_iter().map(|(what, places)| {
        let places: IndexSet<String> = places.iter().map(|place| inlined.origin(place)).collect();
        (what, places.into_iter().collect())
    })
}

struct Converter {
    common: Common,
    /// What was left out, by keyword, with the places in the inlined schema.
    notes: Notes,
}

impl Converter {
    /// Nesting is bounded by the inlining before.
    fn convert(&mut self, schema: &Value, at: &str) -> Value {
        let Some(keywords) = schema.as_object() else {
            if schema == &Value::Bool(false) {
                self.note("false", at);
            }
            return any_value();
        };
        let mut converted = Map::new();
        for (keyword, value) in keywords {
            if let Some(value) = self.keyword(keywords, keyword, value, &step(at, keyword)) {
                converted.insert(keyword.clone(), value);
            }
        }
        if !says_what_it_is(&converted) {
            converted.insert("type".to_owned(), ANY_TYPE.into());
        }
        Value::Object(converted)
    }

    /// What becomes of one keyword; `None` when it is left out.
    fn keyword(
        &mut self,
        beside: &Map<String, Value>,
        keyword: &str,
        value: &Value,
        at: &str,
    ) -> Option<Value> {
        let kept = match keyword {
            "pattern" => value.as_str().and_then(anchored).map(Value::String),
            "format" => {
                value.as_str().is_some_and(|name| self.common.takes_format(name)).then(|| value.clone())
            }
            "minLength" | "maxLength" if self.shapes_text(beside) => None,
            "minLength" | "maxLength" | "minItems" | "maxItems" => {
                value.as_u64().is_some_and(|times| times <= self.common.repetitions).then(|| value.clone())
            }
            // A grammar of objects reads a flag here, and only here.
            "additionalProperties" | "unevaluatedProperties" if value.is_boolean() => Some(value.clone()),
            keyword if self.common.takes(keyword) => Some(self.subschemas(keyword, value, at)),
            _ => None,
        };
        if kept.is_none() {
            self.note(known(keyword), at);
        }
        kept
    }

    fn subschemas(&mut self, keyword: &str, value: &Value, at: &str) -> Value {
        match (holds(keyword, value), value) {
            (SubschemaShape::One, value) => self.convert(value, at),
            (SubschemaShape::List, Value::Array(list)) => {
                let list = list.iter().enumerate();
                list.map(|(index, child)| self.convert(child, &format!("{at}/{index}"))).collect()
            }
            (SubschemaShape::Named, Value::Object(named)) => {
                let named = named.iter();
                named.map(|(name, child)| (name.clone(), self.convert(child, &step(at, name)))).collect()
            }
            _ => value.clone(),
        }
    }

    /// Whether a pattern or a format stays, beside which a grammar has no place for lengths.
    fn shapes_text(&self, schema: &Map<String, Value>) -> bool {
        let text = |keyword: &str| schema.get(keyword).and_then(Value::as_str);
        text("pattern").and_then(anchored).is_some()
            || text("format").is_some_and(|name| self.common.takes_format(name))
    }

    fn note(&mut self, what: &'static str, at: &str) {
        self.notes.entry(what).or_default().insert(at.to_owned());
    }
}

const ANY_TYPE: [&str; 6] = ["string", "number", "boolean", "object", "array", "null"];

/// A schema of any value, for servers that want every schema to have a type.
fn any_value() -> Value {
    json!({ "type": ANY_TYPE })
}

/// Whether a grammar can be made of it without a type.
fn says_what_it_is(schema: &Map<String, Value>) -> bool {
    let telling =
        ["type", "enum", "const", "$ref", "anyOf", "oneOf", "allOf", "properties", "items", "prefixItems"];
    telling.iter().any(|keyword| schema.contains_key(*keyword))
}

/// The name of a loss, which is that of the keyword.
fn known(keyword: &str) -> &'static str {
    const LIMITED: [&str; 6] = ["pattern", "format", "minLength", "maxLength", "minItems", "maxItems"];
    let all = LIMITED.iter().chain(servers::refused());
    all.copied().find(|name| *name == keyword).unwrap_or("keyword")
}
