//! Tools that a model would confuse.

use std::collections::BTreeSet;

use crate::compile::CheckedTool;
use crate::text::words;
use crate::{Diagnostic, Place, rules};

/// How much of two descriptions' words must be the same.
const TOO_ALIKE: f64 = 0.85;

/// Each tool is compared with those before it and told about the first that is too much like it.
pub(super) fn across(tools: &[CheckedTool]) -> Vec<Diagnostic> {
    let descriptions: Vec<BTreeSet<String>> =
        tools.iter().map(|tool| words(&tool.definition.metadata.description).collect()).collect();
    let mut problems = Vec::new();
    for (index, tool) in tools.iter().enumerate() {
        let twin =
            (0..index).find(|earlier| likeness(&descriptions[*earlier], &descriptions[index]) >= TOO_ALIKE);
        if let Some(twin) = twin {
            let other = &tools[twin].definition.metadata.tool_id;
            let folder = tool.handler.path.split('/').next().unwrap_or("");
            problems.push(
                Diagnostic::new(
                    &rules::SIMILAR_TOOLS,
                    format!("the description is nearly that of `{other}`"),
                    "say in each what it does that the other does not",
                )
                .at(Place::Path(format!("{folder}/schema.json")))
                .of(folder),
            );
        }
    }
    problems
}

/// Shared words, as a part of all words.
fn likeness(a: &BTreeSet<String>, b: &BTreeSet<String>) -> f64 {
    let (smaller, larger) = if a.len() < b.len() { (a.len(), b.len()) } else { (b.len(), a.len()) };
    // The result cannot exceed this quotient, and most pairs end here.
    if larger == 0 || (smaller as f64) < TOO_ALIKE * larger as f64 {
        return 0.0;
    }
    let shared = a.intersection(b).count();
    shared as f64 / (a.len() + b.len() - shared) as f64
}
