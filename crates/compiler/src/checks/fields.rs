//! The fields of `schema.json`: all that must be there, none that do not exist, each with a value it may have.
//!
//! What may stand in a field is not written here: it is the schema that is generated from the `Definition` type,
//! the same one that editors use.

use std::collections::BTreeSet;
use std::sync::{Arc, LazyLock};

use quarterdeck_contracts::{BUILT_IN_CAPABILITIES, CapabilitySpec, definition_schema_with};
use quarterdeck_schema::{Schema, Violation};
use serde_json::Value;

use super::Subject;
use crate::rules::{self, Rule};
use crate::source::child;
use crate::{Diagnostic, nearest};

/// The schema of `schema.json` with `parameters` left open: they have checks of their own, with better words.
pub(crate) struct Fields {
    known: Vec<String>,
    required: Vec<String>,
    schema: Schema,
    /// The capabilities that a tool can declare, for a message.
    capabilities: String,
}

static BUILT_IN: LazyLock<Arc<Fields>> = LazyLock::new(|| Arc::new(Fields::new(BUILT_IN_CAPABILITIES)));

impl Fields {
    /// The fields for a build that knows these capabilities.
    pub(crate) fn with(capabilities: &[CapabilitySpec]) -> Arc<Self> {
        match capabilities == BUILT_IN_CAPABILITIES {
            true => BUILT_IN.clone(),
            false => Arc::new(Self::new(capabilities)),
        }
    }

    fn new(capabilities: &[CapabilitySpec]) -> Self {
        let mut source = definition_schema_with(capabilities);
        let required = source["required"].as_array().cloned().unwrap_or_default();
        let required = required.iter().filter_map(Value::as_str).map(str::to_owned).collect();
        if let Some(properties) = source["properties"].as_object_mut() {
            properties.insert("parameters".into(), Value::Bool(true));
        }
        let known = source["properties"]
            .as_object()
            .map(|fields| fields.keys().cloned().collect())
            .unwrap_or_default();
        let schema =
            Schema::compile(&source).expect("the schema that is generated from our own types compiles");
        let declared = capabilities.iter().filter(|spec| !spec.is_always_granted);
        let capabilities: Vec<_> = declared.map(|spec| format!("\"{}\"", spec.name)).collect();
        Self { known, required, schema, capabilities: capabilities.join(", ") }
    }
}

pub(super) fn check(subject: &Subject<'_>, problems: &mut Vec<Diagnostic>) {
    let Some(present) = subject.json.value.as_object() else { return };
    for name in subject.fields.required.iter().filter(|name| !present.contains_key(*name)) {
        problems.push(
            Diagnostic::new(
                &rules::MISSING_FIELD,
                format!("the field `{name}` is missing"),
                example(name, subject),
            )
            .at(subject.json.place("")),
        );
    }
    for name in present.keys().filter(|name| !subject.fields.known.contains(name)) {
        let help = match nearest(name, subject.fields.known.iter().map(String::as_str)) {
            Some(meant) => format!("did you mean `{meant}`?"),
            None => "remove it; `tools/README.md` lists the fields that exist".into(),
        };
        problems.push(
            Diagnostic::new(&rules::UNKNOWN_FIELD, format!("the field `{name}` does not exist"), help)
                .at(subject.json.place_of_key(&child("", name))),
        );
    }
    let mut reported = BTreeSet::new();
    for violation in subject.fields.schema.violations(&subject.json.value) {
        // Missing and unknown fields were reported above in better words, and a value that is wrong in two ways is wrong.
        if violation.path.is_empty() || !reported.insert(violation.path.clone()) {
            continue;
        }
        problems.push(
            Diagnostic::new(
                rule(&violation),
                violation.message.clone(),
                help(&violation.path, subject.fields),
            )
            .at(subject.json.place(&violation.path)),
        );
    }
}

/// Some fields have a rule of their own, so that its explanation can be about them.
fn rule(violation: &Violation) -> &'static Rule {
    match (field(&violation.path), violation.keyword.as_str()) {
        ("allowedModes", _) => &rules::BAD_MODES,
        ("latencyBudgetMs" | "timeoutMs", _) => &rules::NOT_POSITIVE,
        ("capabilities", "enum") => &rules::UNKNOWN_CAPABILITY,
        _ => &rules::BAD_VALUE,
    }
}

fn field(path: &str) -> &str {
    path.split('/').nth(1).unwrap_or("")
}

fn help(path: &str, fields: &Fields) -> String {
    match field(path) {
        "toolId" => "use the folder's name with dashes as underscores".into(),
        "allowedModes" => "write `[\"text\"]`, `[\"voice\"]` or `[\"text\", \"voice\"]`".into(),
        "latencyBudgetMs" | "timeoutMs" => "write whole milliseconds, such as 800".into(),
        "capabilities" => format!("name any of {}", fields.capabilities),
        "requiresConfirmation" => "write true, false or \"policy\"".into(),
        "confirmWhen" => "name conditions out of notRequestedThisTurn, topics, over and claims".into(),
        "confirmBy" => "write \"any\", \"page\" or \"code\"".into(),
        "requestedBy" => "write `{ \"en\": [\"draw *\"] }`".into(),
        name => format!("see `{name}` in `tools/README.md`"),
    }
}

/// What a line with the missing field would look like.
fn example(field: &str, subject: &Subject<'_>) -> String {
    let id = format!("\"{}\"", subject.folder.name.replace('-', "_"));
    let value = match field {
        "toolId" => &id,
        "version" => "\"1.0.0\"",
        "description" => "\"What it does, and when to use it.\"",
        "category" => "\"utility\"` (or \"retrieval\", \"action\")",
        "sideEffects" => "\"none\"` (or \"read_only\", \"writes\")",
        "idempotent" => "true",
        "requiresConfirmation" => "false",
        "allowedModes" => "[\"text\", \"voice\"]",
        "latencyBudgetMs" => "500",
        "parameters" => "{ \"type\": \"object\", \"additionalProperties\": false, \"properties\": {} }",
        _ => "…",
    };
    let closing = if value.contains('`') { "" } else { "`" };
    format!("add `\"{field}\": {value}{closing}")
}
