//! Markdown, links, citations and pictures, which are for the eye.

use std::sync::LazyLock;

use regex::Regex;

use super::{pattern, replace};

/// What is left for the ear.
pub(super) fn strip(text: &str) -> String {
    let lines: Vec<String> = text.lines().map(strip_line).filter(|line| !line.trim().is_empty()).collect();
    drop_pictures(&lines.join("\n"))
}

fn strip_line(line: &str) -> String {
    static RULE: LazyLock<Regex> = LazyLock::new(|| pattern(r"^\s*(?:[-*_=]\s*){3,}$"));
    static HEADING: LazyLock<Regex> = LazyLock::new(|| pattern(r"^\s*#{1,6}\s+(.*?)[\s#]*$"));
    static BULLET: LazyLock<Regex> =
        LazyLock::new(|| pattern(r"^\s*(?:>\s?)*(?:[-*+•‣◦]\s+(?:\[[ xX]\]\s+)?)?"));
    static NUMBERED: LazyLock<Regex> = LazyLock::new(|| pattern(r"^(\d{1,3})[.)]\s+"));
    if RULE.is_match(line) {
        return String::new();
    }
    let line = match table_row(line) {
        Some(row) => row,
        None => line.to_owned(),
    };
    // A heading has no mark at its end, and a voice would run on.
    let line = replace(&line, &HEADING, |group| match group(1) {
        title if title.ends_with(['.', '!', '?', ':']) => title,
        title => format!("{title}."),
    });
    let line = BULLET.replace(&line, "");
    let line = NUMBERED.replace(&line, "$1, ");
    strip_inline(&line)
}

/// The cells of a table's row as a list; nothing for the line under its head.
fn table_row(line: &str) -> Option<String> {
    let inner = line.trim().strip_prefix('|')?;
    let cells = inner.trim_end_matches('|').split('|').map(str::trim);
    let is_separator = |cell: &str| cell.chars().all(|letter| matches!(letter, '-' | ':' | ' '));
    let cells: Vec<&str> = cells.filter(|cell| !is_separator(cell)).collect();
    Some(if cells.is_empty() { String::new() } else { format!("{}.", cells.join(", ")) })
}

fn strip_inline(line: &str) -> String {
    static LINK: LazyLock<Regex> =
        LazyLock::new(|| pattern(r"!?\[([^\]]*)\]\((?:[^()\s]|\([^()]*\))*(?:\s+[^)]*)?\)"));
    static CITATION: LazyLock<Regex> = LazyLock::new(|| {
        pattern(
            r"(?x)
            \s* (?:
                [\[(] [A-Za-z][\w.-]* : [A-Za-z][\w./-]* (?: \s*[,;]\s* [A-Za-z][\w.-]* : [A-Za-z][\w./-]* )* [\])]
              | \[ \^? \d{1,3} (?: \s*[,;–-]\s* \d{1,3} )* \]
              | \[\^ [\w-]+ \]
              | 【 [^】]* 】
            )",
        )
    });
    static ADDRESS: LazyLock<Regex> = LazyLock::new(|| {
        pattern(r"<?(?:https?://|www\.)(?:www\.)?([\w.-]*\w)(?::\d+)?(?:[/?#][^\s<>)\]]*)?>?")
    });
    static TRAILING: LazyLock<Regex> = LazyLock::new(|| pattern(r"[.,;:!?]+>?$"));
    static TAG: LazyLock<Regex> = LazyLock::new(|| pattern(r"</?[A-Za-z][^<>]{0,80}>"));
    static STRONG: LazyLock<Regex> = LazyLock::new(|| pattern(r"\*\*|__|~~"));
    static EMPHASIS: LazyLock<Regex> =
        LazyLock::new(|| pattern(r"(^|[\s(“‘\x22'])[*_]([^*_\s](?:[^*_]*[^*_\s])?)[*_]"));
    static CODE: LazyLock<Regex> = LazyLock::new(|| pattern(r"`+([^`]*)`+"));
    static MAIL: LazyLock<Regex> =
        LazyLock::new(|| pattern(r"<?(?:mailto:)?([\w.+-]+)@([\w-]+\.[\w.-]*\w)>?"));
    let line = LINK.replace_all(line, "$1");
    let line = CITATION.replace_all(&line, "");
    // The host is what a listener can use, and the mark after an address ends the sentence.
    let line = ADDRESS.replace_all(&line, |found: &regex::Captures<'_>| {
        format!(
            "{}{}",
            &found[1],
            TRAILING.find(&found[0]).map_or("", |mark| mark.as_str().trim_end_matches('>'))
        )
    });
    let line = MAIL.replace_all(&line, "$1 @ $2");
    let line = TAG.replace_all(&line, " ");
    let line = STRONG.replace_all(&line, "");
    let line = EMPHASIS.replace_all(&line, "$1$2");
    replace(&line, &CODE, |group| group(1).replace('_', " "))
}

/// Emoji and what joins them.
fn drop_pictures(text: &str) -> String {
    let is_picture = |letter: char| {
        matches!(letter,
            '\u{200d}' | '\u{20e3}' | '\u{fe0e}' | '\u{fe0f}' | '\u{2600}'..='\u{27bf}' | '\u{2b00}'..='\u{2bff}'
            | '\u{1f000}'..='\u{1faff}' | '\u{e0020}'..='\u{e007f}')
    };
    text.chars().filter(|letter| !is_picture(*letter)).collect()
}
