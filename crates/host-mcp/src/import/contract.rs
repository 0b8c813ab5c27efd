//! `schema.json` of an imported tool.

use quarterdeck_contracts::{visible, visible_line};
use serde_json::{Map, Value, json};

use super::guide::short_description;
use super::{Import, InvalidImport};
use crate::published::PublishedTool;

/// How long a call to another's server should take. An author who has measured it writes less.
const LATENCY_BUDGET_MS: u64 = 3_000;
const TIMEOUT_MS: u64 = 30_000;
/// Keywords whose text is for readers, so that it may be shown in another way.
const TEXTS: [&str; 3] = ["description", "title", "$comment"];

pub(super) struct Contract {
    pub(super) schema: Value,
    pub(super) notes: Vec<String>,
}

pub(super) fn contract(import: &Import<'_>) -> Result<Contract, InvalidImport> {
    let tool = import.tool;
    let mut notes = Vec::new();
    let parameters = parameters(tool, &mut notes)?;
    let returns = tool.output_schema.as_ref().map(|schema| readable("output schema", schema)).transpose()?;
    let description = short_description(import.server, tool, &mut notes);
    let policy = Policy::of(tool);
    notes.extend(policy.note.map(str::to_owned));
    let mut schema = Map::new();
    if let Some(editor) = import.editor_schema {
        schema.insert("$schema".into(), editor.into());
    }
    let fields = json!({
        "toolId": import.id,
        "version": "1.0.0",
        "description": description,
        "category": policy.category,
        "sideEffects": policy.side_effects,
        "idempotent": policy.is_idempotent,
        "requiresConfirmation": policy.needs_confirmation,
        "allowedModes": ["text"],
        "latencyBudgetMs": LATENCY_BUDGET_MS,
        "timeoutMs": TIMEOUT_MS,
        // An id such as `kb_…` would otherwise bring one along.
        "capabilities": [],
        "parameters": parameters,
    });
    schema.extend(fields.as_object().cloned().unwrap_or_default());
    if let Some(returns) = returns {
        schema.insert("returns".into(), returns.into());
    }
    Ok(Contract { schema: schema.into(), notes })
}

/// What the hints come to.
pub(super) struct Policy {
    category: &'static str,
    side_effects: &'static str,
    is_idempotent: bool,
    needs_confirmation: bool,
    note: Option<&'static str>,
}

impl Policy {
    fn of(tool: &PublishedTool) -> Self {
        let (reads, destroys) = (tool.hint("readOnlyHint"), tool.hint("destructiveHint"));
        if reads == Some(true) && destroys != Some(true) {
            return Self {
                category: "retrieval",
                side_effects: "read_only",
                is_idempotent: true,
                needs_confirmation: false,
                note: None,
            };
        }
        let note = match (reads, destroys) {
            (Some(true), _) => {
                Some("its hints contradict each other, so it is taken to write and to need approval")
            }
            (None, _) => Some(
                "the server does not say whether it writes, so it is taken to write and to need approval",
            ),
            _ => None,
        };
        Self {
            category: "action",
            side_effects: "writes",
            is_idempotent: tool.hint("idempotentHint") == Some(true),
            needs_confirmation: true,
            note,
        }
    }
}

/// The arguments as published, closed: an argument that a model invents is refused here and not passed on.
fn parameters(tool: &PublishedTool, notes: &mut Vec<String>) -> Result<Map<String, Value>, InvalidImport> {
    let mut schema = readable("input schema", &tool.input_schema)?;
    if !schema.contains_key("type") {
        schema.insert("type".into(), "object".into());
    }
    match schema.get("additionalProperties") {
        Some(Value::Bool(false)) => {}
        Some(_) => notes.push("further arguments, which the server would take, are refused".into()),
        None => {}
    }
    schema.insert("additionalProperties".into(), false.into());
    Ok(schema)
}

/// A schema in which everything can be seen.
fn readable(part: &'static str, schema: &Map<String, Value>) -> Result<Map<String, Value>, InvalidImport> {
    let mut schema = schema.clone();
    // Which draft it was written for is in `published.json`; it is read as the current one.
    schema.shift_remove("$schema");
    show_fields(part, "", &mut schema)?;
    Ok(schema)
}

fn show(part: &'static str, pointer: &str, value: &mut Value) -> Result<(), InvalidImport> {
    match value {
        Value::String(text) => refuse_hidden(part, pointer, text),
        Value::Array(items) => items
            .iter_mut()
            .enumerate()
            .try_for_each(|(nth, item)| show(part, &format!("{pointer}/{nth}"), item)),
        Value::Object(fields) => show_fields(part, pointer, fields),
        _ => Ok(()),
    }
}

fn show_fields(
    part: &'static str,
    pointer: &str,
    fields: &mut Map<String, Value>,
) -> Result<(), InvalidImport> {
    for (name, value) in fields.iter_mut() {
        let here = format!("{pointer}/{}", visible_line(name));
        refuse_hidden(part, &here, name)?;
        match value {
            Value::String(text) if TEXTS.contains(&name.as_str()) => *text = visible(text).into_owned(),
            other => show(part, &here, other)?,
        }
    }
    Ok(())
}

fn refuse_hidden(part: &'static str, pointer: &str, text: &str) -> Result<(), InvalidImport> {
    if visible(text) == text {
        return Ok(());
    }
    Err(InvalidImport::Hidden { part, pointer: pointer.to_owned(), shown: visible_line(text) })
}
