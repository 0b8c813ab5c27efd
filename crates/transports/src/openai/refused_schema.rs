//! Requests that a server refuses because of a schema: what it names is left out from then on.
//!
//! Servers of this protocol differ in what they take of JSON Schema, from version to version. One that answers 400 to a
//! declaration would answer nothing at all; without the keyword or the tool that it names it answers, and arguments are
//! checked against the original anyway. What was learnt is kept for the process, so that not every request fails first.

use std::sync::{Mutex, PoisonError};

use quarterdeck_contracts::{ChatError, ChatErrorKind};
use serde_json::Value;

/// How much is remembered. A server that refuses more than this is not one to declare tools to.
const MAX_LEARNT: usize = 64;

/// Keywords that servers name, longest first where one is the beginning of another.
const KEYWORDS: [&str; 24] = [
    "patternProperties",
    "pattern",
    "format",
    "minLength",
    "maxLength",
    "minItems",
    "maxItems",
    "uniqueItems",
    "multipleOf",
    "exclusiveMinimum",
    "exclusiveMaximum",
    "minimum",
    "maximum",
    "minContains",
    "maxContains",
    "contains",
    "propertyNames",
    "additionalProperties",
    "unevaluatedProperties",
    "dependentRequired",
    "dependentSchemas",
    "minProperties",
    "maxProperties",
    "default",
];

/// What a grammar trips over when its server does not say which: everything that only narrows a value.
const NARROWING: [&str; 8] =
    ["pattern", "format", "minLength", "maxLength", "minItems", "maxItems", "uniqueItems", "multipleOf"];

/// Something that a server does not take.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Removal {
    /// A keyword, in one tool or in all of them.
    Keyword { keyword: &'static str, tool: Option<String> },
    /// A tool as a whole.
    Tool(String),
    /// Thinking before a call: newer models of OpenAI take tools at this endpoint only without it.
    Reasoning,
}

impl Removal {
    /// The names of the tools that change by it.
    pub(super) fn tools<'t>(&'t self, declared: &'t [Value]) -> Vec<&'t str> {
        match self {
            Self::Reasoning => Vec::new(),
            Self::Tool(tool) | Self::Keyword { tool: Some(tool), .. } => vec![tool],
            Self::Keyword { keyword, tool: None } => {
                declared.iter().filter(|tool| holds(tool, keyword)).filter_map(name_of).collect()
            }
        }
    }
}

/// What a server was found not to take.
#[derive(Debug, Default)]
pub(super) struct Learnt {
    removals: Mutex<Vec<Removal>>,
}

impl Learnt {
    /// The declarations without what the server does not take.
    pub(super) fn apply(&self, tools: &[Value]) -> Vec<Value> {
        let removals = self.removals.lock().unwrap_or_else(PoisonError::into_inner);
        without(tools, &removals)
    }

    /// Whether this was found.
    pub(super) fn has(&self, removal: &Removal) -> bool {
        self.removals.lock().unwrap_or_else(PoisonError::into_inner).contains(removal)
    }

    /// Remembers what the error names, if it is about a schema and leaving that out makes a difference.
    pub(super) fn learn(&self, error: &ChatError, tools: &[Value]) -> Vec<Removal> {
        if error.kind != ChatErrorKind::Rejected {
            return Vec::new();
        }
        let sent = self.apply(tools);
        let mut found = read_refusal(&error.detail, &sent);
        let mut known = self.removals.lock().unwrap_or_else(PoisonError::into_inner);
        found.retain(|removal| !known.contains(removal));
        let changes = found.contains(&Removal::Reasoning) || without(&sent, &found) != sent;
        if known.len() + found.len() > MAX_LEARNT || !changes {
            return Vec::new();
        }
        known.extend(found.iter().cloned());
        found
    }
}

/// The declarations that are left when a server has refused a request in these words.
pub fn declarations_after(words: &str, tools: &[Value]) -> Vec<Value> {
    without(tools, &read_refusal(words, tools))
}

/// What a server's words name: a keyword, a tool, both, or neither.
fn read_refusal(words: &str, tools: &[Value]) -> Vec<Removal> {
    let lower = words.to_ascii_lowercase();
    if lower.contains("reasoning_effort") && lower.contains("'none'") {
        return vec![Removal::Reasoning];
    }
    let is_about_schemas = ["schema", "grammar", "tools", "function", "parameters", "pattern", "format"];
    if !is_about_schemas.iter().any(|word| lower.contains(word)) {
        return Vec::new();
    }
    let tool = named_tool(words, tools);
    let has = |keyword: &&str| tools.iter().any(|declared| holds(declared, keyword));
    let named =
        KEYWORDS.iter().filter(|keyword| has_word(&lower, &keyword.to_ascii_lowercase())).find(|k| has(k));
    let keyword = |keyword: &&'static str| Removal::Keyword { keyword, tool: tool.clone() };
    match (named, &tool) {
        (Some(named), _) => vec![keyword(named)],
        (None, Some(tool)) => vec![Removal::Tool(tool.clone())],
        (None, None) if lower.contains("schema") || lower.contains("grammar") => {
            NARROWING.iter().filter(|keyword| has(keyword)).map(keyword).collect()
        }
        (None, None) => Vec::new(),
    }
}

/// The tool that the words name, or count: `tools[4].function.parameters`.
fn named_tool(words: &str, tools: &[Value]) -> Option<String> {
    let by_name = tools.iter().filter_map(name_of).find(|name| has_word(words, name));
    let by_number = || {
        let after = ["tools[", "tools.", "tools/"].iter().find_map(|opening| words.split_once(opening))?.1;
        let number: String = after.chars().take_while(char::is_ascii_digit).take(4).collect();
        name_of(tools.get(number.parse::<usize>().ok()?)?)
    };
    by_name.or_else(by_number).map(str::to_owned)
}

/// Whether a word stands there by itself.
fn has_word(text: &str, word: &str) -> bool {
    let is_part = |c: char| c.is_alphanumeric() || c == '_';
    text.match_indices(word).any(|(at, _)| {
        let before = text[..at].chars().next_back();
        let after = text[at + word.len()..].chars().next();
        !before.is_some_and(is_part) && !after.is_some_and(is_part)
    })
}

fn name_of(tool: &Value) -> Option<&str> {
    tool.pointer("/function/name")?.as_str()
}

fn without(tools: &[Value], removals: &[Removal]) -> Vec<Value> {
    let mut left: Vec<Value> = tools.to_vec();
    for removal in removals {
        match removal {
            Removal::Reasoning => {}
            Removal::Tool(name) => left.retain(|tool| name_of(tool) != Some(name)),
            Removal::Keyword { keyword, tool } => {
                let is_meant =
                    |declared: &Value| tool.as_deref().is_none_or(|tool| name_of(declared) == Some(tool));
                for declared in left.iter_mut().filter(|declared| is_meant(declared)) {
                    if let Some(parameters) = declared.pointer_mut("/function/parameters") {
                        remove(parameters, keyword);
                    }
                }
            }
        }
    }
    left
}

/// Whether a declaration has a keyword, as one.
fn holds(declared: &Value, keyword: &str) -> bool {
    let mut copy = declared.pointer("/function/parameters").cloned().unwrap_or_default();
    let before = copy.clone();
    remove(&mut copy, keyword);
    copy != before
}

/// Removes a keyword from a schema and all schemas in it. A property of that name is not a keyword. Declarations are ours,
/// so their depth is bounded.
fn remove(schema: &mut Value, keyword: &str) {
    match schema {
        Value::Object(keywords) => {
            keywords.shift_remove(keyword);
            for (name, value) in keywords.iter_mut() {
                match (name.as_str(), value) {
                    ("properties" | "$defs" | "definitions" | "patternProperties", Value::Object(named)) => {
                        named.values_mut().for_each(|child| remove(child, keyword));
                    }
                    ("enum" | "const" | "default" | "examples" | "required", _) => {}
                    (_, value) => remove(value, keyword),
                }
            }
        }
        Value::Array(list) => list.iter_mut().for_each(|child| remove(child, keyword)),
        _ => {}
    }
}

#[cfg(test)]
mod tests;
