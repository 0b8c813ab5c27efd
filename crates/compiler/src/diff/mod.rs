//! What changed between two artifacts, and whether it breaks callers.
//!
//! A caller makes calls that the old contract allowed: a model with the old guide in its context, a
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
    let mut changes = diff_parameters(id, &old.json_schema, &new.json_schema);
    let beside = metadata::compare(&old.metadata, &new.metadata);
    changes.extend(beside.into_iter().map(|(effect, what)| change(id, effect, what)));
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

/// Changes of the parameters. Reading two schemas side by side leaves some questions open; a call that the old one
/// accepts and the new one refuses answers them.
fn diff_parameters(id: &str, old: &Value, new: &Value) -> Vec<Change> {
    use parameters::Effect::{Certain, Open};
    let found = parameters::compare(old, new);
    let mut example = accepted_then_refused(old, new);
    let is_plain = found.iter().any(|(effect, _)| *effect == Certain(Effect::Breaks));
    let mut changes: Vec<Change> = found
        .into_iter()
        .map(|(effect, what)| match effect {
            Certain(effect) => change(id, effect, what),
            Open if is_plain => change(id, Effect::Changes, format!("{what} (may break callers too)")),
            Open if example.is_some() => change(id, Effect::Breaks, what),
            Open => change(id, Effect::Changes, format!("{what} (no call was found that it breaks)")),
        })
        .collect();
    let breaks = |change: &&mut Change| change.effect == Effect::Breaks;
    match changes.iter_mut().find(breaks) {
        Some(first) => first.example = example,
        None if example.is_some() => {
            let mut broken =
                change(id, Effect::Breaks, "parameters: a call that was accepted is now refused".into());
            broken.example = example.take();
            changes.push(broken);
        }
        None => {}
    }
    changes
}

/// A value that one schema accepts and the other refuses, when one can be found.
fn accepted_then_refused(accepting: &Value, refusing: &Value) -> Option<Value> {
    let (admits, refuses) = (Schema::compile(accepting).ok()?, Schema::compile(refusing).ok()?);
    let found = find(&admits, &refuses, &Hints { admitting: accepting, refusing, places: &[] })?;
    // A call is judged after defaults have been filled in.
    let is_accepted = |schema: &Schema| schema.admit(&mut found.clone()).is_ok();
    (is_accepted(&admits) && !is_accepted(&refuses)).then_some(found)
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
