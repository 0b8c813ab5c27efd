//! What changed between two artifacts, and whether it breaks callers.
//!
//! A caller is whoever makes calls that the old contract allowed: a model with the old guide in its context, a
//! recorded conversation, another program. A change breaks it when such a call is refused, or when what comes back
//! is something that the old contract did not allow.

mod metadata;
mod parameters;

use std::collections::BTreeMap;

use quarterdeck_contracts::{Artifact, CompiledTool};
use serde_json::Value;

use crate::adapters::counter_example::{Hints, find};
use quarterdeck_schema::Schema;

/// Everything that differs.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Difference {
    /// Tool by tool, in the order of their ids.
    pub changes: Vec<Change>,
}

impl Difference {
    /// Whether callers of the old artifact are served worse by the new one.
    pub fn is_breaking(&self) -> bool {
        self.changes.iter().any(|change| change.effect == Effect::Breaks)
    }
}

/// One thing that differs.
#[derive(Debug, Clone, PartialEq)]
pub struct Change {
    /// The tool.
    pub tool: String,
    /// What it does to callers.
    pub effect: Effect,
    /// One sentence.
    pub what: String,
    /// A call that was accepted and is now refused, when one was found.
    pub example: Option<Value>,
}

/// What a change does to callers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Effect {
    /// Something that worked does not work any more.
    Breaks,
    /// Behaves differently; what was allowed still is.
    Changes,
    /// Something new.
    Adds,
}

impl Effect {
    /// The word for it.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Breaks => "breaks",
            Self::Changes => "changes",
            Self::Adds => "adds",
        }
    }
}

/// Compares two artifacts.
pub fn diff(old: &Artifact, new: &Artifact) -> Difference {
    let (old, new) = (by_id(old), by_id(new));
    let mut changes = Vec::new();
    for (id, tool) in &old {
        match new.get(id) {
            None => changes.push(change(id, Effect::Breaks, "the tool is gone".into())),
            Some(now) if now.hash != tool.hash => changes.extend(diff_tool(id, tool, now)),
            Some(_) => {}
        }
    }
    let added = new.keys().filter(|id| !old.contains_key(*id));
    changes.extend(added.map(|id| change(id, Effect::Adds, "the tool is new".into())));
    changes.sort_by(|a, b| (&a.tool, a.effect).cmp(&(&b.tool, b.effect)));
    Difference { changes }
}

fn diff_tool(id: &str, old: &CompiledTool, new: &CompiledTool) -> Vec<Change> {
    let mut changes: Vec<Change> = parameters::compare(&old.json_schema, &new.json_schema)
        .into_iter()
        .chain(metadata::compare(&old.metadata, &new.metadata))
        .map(|(effect, what)| change(id, effect, what))
        .collect();
    attach_example(&mut changes, &old.json_schema, &new.json_schema);
    if old.documentation != new.documentation || old.summary != new.summary {
        changes.push(change(id, Effect::Changes, "the documentation changed".into()));
    }
    if old.handler != new.handler {
        changes.push(change(id, Effect::Changes, "the handler changed".into()));
    }
    if changes.is_empty() {
        // The hashes differ, so something did: a newer compiler declares the same sources differently.
        changes.push(change(id, Effect::Changes, "what providers are told changed".into()));
    }
    let breaks = changes.iter().any(|change| change.effect == Effect::Breaks);
    if breaks && !is_major_step(&old.metadata.version, &new.metadata.version) {
        let what = format!(
            "the version goes from {} to {}; a breaking change wants a new major version",
            old.metadata.version, new.metadata.version
        );
        changes.push(change(id, Effect::Changes, what));
    }
    changes
}

/// Shows the first breaking change of the parameters with a call that proves it.
fn attach_example(changes: &mut [Change], old: &Value, new: &Value) {
    if let Some(first) = changes.iter_mut().find(|change| change.effect == Effect::Breaks) {
        first.example = accepted_then_refused(old, new);
    }
}

/// A value that one schema accepts and the other refuses, when one can be found.
fn accepted_then_refused(accepting: &Value, refusing: &Value) -> Option<Value> {
    let (admits, refuses) = (Schema::compile(accepting).ok()?, Schema::compile(refusing).ok()?);
    find(&admits, &refuses, &Hints { admitting: accepting, refusing, places: &[] })
}

fn is_major_step(old: &str, new: &str) -> bool {
    match (semver::Version::parse(old), semver::Version::parse(new)) {
        (Ok(old), Ok(new)) => new.major > old.major || (old.major == 0 && new.minor > old.minor),
        _ => false,
    }
}

fn by_id(artifact: &Artifact) -> BTreeMap<&str, &CompiledTool> {
    artifact.tools.iter().map(|tool| (tool.metadata.tool_id.as_str(), tool)).collect()
}

fn change(tool: &str, effect: Effect, what: String) -> Change {
    Change { tool: tool.to_owned(), effect, what, example: None }
}
