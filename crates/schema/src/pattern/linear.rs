//! The same pattern for the `regex` engine, which is linear too, and faster where it can run a pattern at all.

use std::fmt::Write;

use super::charset::CharSet;
use super::syntax::{Assertion, Node, Parsed};

/// Bytes that the engine may use for one pattern. Larger ones are left to our own automaton.
const MAX_ENGINE_BYTES: usize = 1 << 20;

pub(super) fn translated(parsed: &Parsed) -> Option<regex::Regex> {
    if !parsed.looks.is_empty() {
        return None;
    }
    let mut text = String::new();
    write_node(&mut text, &parsed.root)?;
    regex::RegexBuilder::new(&text).size_limit(MAX_ENGINE_BYTES).build().ok()
}

fn write_node(text: &mut String, node: &Node) -> Option<()> {
    match node {
        Node::Empty => {}
        Node::Set(set) => write_set(text, set)?,
        Node::Sequence(parts) => {
            for part in parts {
                write_group(text, part)?;
            }
        }
        Node::Choice(parts) => {
            for (index, part) in parts.iter().enumerate() {
                text.push_str(if index == 0 { "" } else { "|" });
                write_node(text, part)?;
            }
        }
        Node::Repeat { inner, min, max } => {
            write_group(text, inner)?;
            let max = max.map(|max| max.to_string()).unwrap_or_default();
            write!(text, "{{{min},{max}}}").ok()?;
        }
        Node::Assert(assertion) => text.push_str(match assertion {
            Assertion::Start => "\\A",
            Assertion::End => "\\z",
            Assertion::WordBoundary => "(?-u:\\b)",
            // Between two bytes of one character the engine would see one, so it refuses to look.
            Assertion::NotWordBoundary | Assertion::Look(_) => return None,
        }),
    }
    Some(())
}

fn write_group(text: &mut String, node: &Node) -> Option<()> {
    text.push_str("(?:");
    write_node(text, node)?;
    text.push(')');
    Some(())
}

fn write_set(text: &mut String, set: &CharSet) -> Option<()> {
    let mut class = String::new();
    for (first, last) in set.ranges() {
        // Halves of surrogate pairs are no characters, and do not occur in a text.
        for (first, last) in [(*first, (*last).min(0xD7FF)), ((*first).max(0xE000), *last)] {
            if first <= last {
                write!(class, "\\x{{{first:x}}}-\\x{{{last:x}}}").ok()?;
            }
        }
    }
    match class.is_empty() {
        true => text.push_str("[^\\s\\S]"),
        false => write!(text, "[{class}]").ok()?,
    }
    Some(())
}
