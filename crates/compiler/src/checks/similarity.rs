//! Tools that a model would confuse.

use std::collections::BTreeSet;

use crate::compile::CheckedTool;
use crate::text::words;
use crate::{Diagnostic, rules};

/// How much of two descriptions' words must be the same.
const MIN_SIMILARITY: f64 = 0.85;

/// Each tool is compared with those before it and told about the first that is too much like it.
pub(super) fn across(tools: &[CheckedTool]) -> Vec<Diagnostic> {
    let descriptions: Vec<BTreeSet<String>> =
        tools.iter().map(|tool| significant_words(&tool.definition.metadata.description)).collect();
    let mut problems = Vec::new();
    for (index, tool) in tools.iter().enumerate() {
        let twin = (0..index)
            .find(|earlier| similarity(&descriptions[*earlier], &descriptions[index]) >= MIN_SIMILARITY);
        if let Some(twin) = twin {
            let other = &tools[twin].definition.metadata.tool_id;
            let folder = tool.handler.path.split('/').next().unwrap_or("");
            problems.push(
                Diagnostic::new(
                    &rules::SIMILAR_TOOLS,
                    format!("the description is nearly that of `{other}`"),
                    "say in each what it does that the other does not",
                )
                .at(tool.description.clone())
                .of(folder),
            );
        }
    }
    problems
}

/// The words that tell two descriptions apart, without endings.
fn significant_words(description: &str) -> BTreeSet<String> {
    const STOP_WORDS: [&str; 16] = [
        "a", "an", "the", "of", "on", "in", "to", "for", "and", "or", "with", "about", "by", "from", "it",
        "is",
    ];
    words(description)
        .filter(|word| !STOP_WORDS.contains(&word.as_str()))
        .map(|word| word.strip_suffix("es").or_else(|| word.strip_suffix('s')).unwrap_or(&word).to_owned())
        .collect()
}

/// Shared words, as a part of all words.
fn similarity(a: &BTreeSet<String>, b: &BTreeSet<String>) -> f64 {
    let (smaller, larger) = if a.len() < b.len() { (a.len(), b.len()) } else { (b.len(), a.len()) };
    // The result cannot exceed this quotient, and most pairs end here.
    if larger == 0 || (smaller as f64) < MIN_SIMILARITY * larger as f64 {
        return 0.0;
    }
    let shared = a.intersection(b).count();
    shared as f64 / (a.len() + b.len() - shared) as f64
}
