//! What a build has changed, tool by tool, for a terminal and a page.

use std::collections::BTreeMap;

use quarterdeck_compiler::{Change, Difference, Effect, Style, diff};
use quarterdeck_contracts::Artifact;
use serde_json::{Value, json};

use crate::terminal::paint;

/// The tools that are not the same in two artifacts, each with what is different about it.
pub(crate) struct RegistryChanges {
    tools: Vec<ToolChanges>,
}

struct ToolChanges {
    tool: String,
    kind: ChangeKind,
    /// One sentence for each field or file; empty for a tool that is new or gone.
    details: Vec<String>,
    is_breaking: bool,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum ChangeKind {
    Added,
    Changed,
    Removed,
}

impl ChangeKind {
    fn as_str(self) -> &'static str {
        match self {
            Self::Added => "added",
            Self::Changed => "changed",
            Self::Removed => "removed",
        }
    }

    fn mark_and_colour(self) -> (&'static str, &'static str) {
        match self {
            Self::Added => ("+", "32"),
            Self::Changed => ("~", "33"),
            Self::Removed => ("-", "31"),
        }
    }
}

impl RegistryChanges {
    pub(crate) fn between(old: &Artifact, new: &Artifact) -> Self {
        let has = |artifact: &Artifact, tool: &str| {
            artifact.tools.iter().any(|known| known.metadata.tool_id.as_str() == tool)
        };
        let Difference { changes } = diff(old, new);
        let mut tools: Vec<ToolChanges> = Vec::new();
        for change in changes {
            let kind = match (has(old, &change.tool), has(new, &change.tool)) {
                (false, _) => ChangeKind::Added,
                (true, false) => ChangeKind::Removed,
                (true, true) => ChangeKind::Changed,
            };
            match tools.last_mut().filter(|last| last.tool == change.tool) {
                Some(last) => last.add(change),
                None => tools.push(ToolChanges::new(change, kind)),
            }
        }
        Self { tools }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.tools.is_empty()
    }

    /// A line for each tool, and under one that has changed a line for each difference.
    pub(crate) fn to_text(&self, style: Style) -> String {
        let mut text = String::new();
        for tool in &self.tools {
            let (mark, colour) = tool.kind.mark_and_colour();
            let breaks = if tool.is_breaking { ", breaks callers" } else { "" };
            let line = format!("{mark} {} {}{breaks}", tool.tool, tool.kind.as_str());
            text.push_str(&format!("{}\n", paint(&line, colour, style)));
            tool.details.iter().for_each(|detail| text.push_str(&format!("    {detail}\n")));
        }
        text
    }

    /// What has become of each tool, as audit lines have it.
    pub(crate) fn by_tool(&self) -> BTreeMap<&str, &'static str> {
        self.tools.iter().map(|tool| (tool.tool.as_str(), tool.kind.as_str())).collect()
    }

    pub(crate) fn to_json(&self) -> Value {
        let tools = self.tools.iter().map(|tool| {
            let ToolChanges { tool, kind, details, is_breaking } = tool;
            json!({ "tool": tool, "change": kind.as_str(), "details": details, "breaking": is_breaking })
        });
        tools.collect()
    }
}

impl ToolChanges {
    fn new(change: Change, kind: ChangeKind) -> Self {
        let mut tool = Self { tool: change.tool.clone(), kind, details: Vec::new(), is_breaking: false };
        if kind == ChangeKind::Changed {
            tool.add(change);
        }
        tool
    }

    fn add(&mut self, change: Change) {
        self.is_breaking |= change.effect == Effect::Breaks;
        self.details.push(match change.example {
            Some(example) => format!("{}: {example} was accepted", change.what),
            None => change.what,
        });
    }
}
