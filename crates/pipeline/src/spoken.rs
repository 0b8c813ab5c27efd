//! What is written as it is said: without markup, with figures as words where engines read them badly.
//!
//! The transcript keeps the written text. Markup and links are the same in every language; figures have rules for English,
//! German, French and Spanish, and are left to the engine in others.

mod figures;
mod markup;
mod units;

use std::sync::LazyLock;

use regex::{Captures, Regex};

use crate::language::Language;

/// The words for a voice; empty where nothing is to be said.
pub(crate) fn spoken_form(text: &str, language: Language) -> String {
    let plain = markup::strip(text);
    let said = figures::spell(&plain, language);
    let said = tidy(&said);
    if said.chars().any(char::is_alphanumeric) { said } else { String::new() }
}

/// A pattern of this module. Each is compiled once.
fn pattern(source: &str) -> Regex {
    Regex::new(source).expect("the pattern is one of ours and tested")
}

/// Replaces every match of a pattern by what a function makes of its groups; an absent group is empty.
fn replace(text: &str, pattern: &Regex, say: impl Fn(&dyn Fn(usize) -> String) -> String) -> String {
    let by_group = |captures: &Captures<'_>| {
        let group =
            |number: usize| captures.get(number).map_or_else(String::new, |found| found.as_str().to_owned());
        say(&group)
    };
    pattern.replace_all(text, by_group).into_owned()
}

/// One space between words, none before a mark, and no mark that what was dropped has left alone.
fn tidy(text: &str) -> String {
    static SPACES: LazyLock<Regex> = LazyLock::new(|| pattern(r"\s+"));
    static BEFORE_MARK: LazyLock<Regex> = LazyLock::new(|| pattern(r"\s+([,.;:!?…])"));
    static EMPTY: LazyLock<Regex> = LazyLock::new(|| pattern(r"\(\s*[,;]?\s*\)|\[\s*\]|“\s*”"));
    static TWICE: LazyLock<Regex> = LazyLock::new(|| pattern(r"([,;])(?:\s*[,;])+"));
    static BRACKETS: LazyLock<Regex> = LazyLock::new(|| pattern(r"[\[\]{}<>|\\`*_#~^]+"));
    let text = EMPTY.replace_all(text, " ");
    let text = BRACKETS.replace_all(&text, " ");
    let text = SPACES.replace_all(&text, " ");
    let text = BEFORE_MARK.replace_all(&text, "$1");
    let text = TWICE.replace_all(&text, "$1");
    // The point of `p.m.` ends the sentence as well.
    let text = text.replace(".m..", ".m.");
    text.trim().trim_start_matches([',', ';', '.']).trim().to_owned()
}

#[cfg(test)]
mod tests;
