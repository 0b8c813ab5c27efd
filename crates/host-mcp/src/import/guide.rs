//! `guide.md` of an imported tool: the server's words, quoted, and a place for one's own.

use std::fmt::Write;

use quarterdeck_contracts::{visible, visible_line};

use crate::published::PublishedTool;
use crate::server_config::ServerName;

/// The longest summary that the compiler takes without a warning, in characters.
const MAX_SUMMARY_CHARS: usize = 250;
/// The longest description that every provider takes, in characters.
const MAX_DESCRIPTION_CHARS: usize = 1_000;
const MAX_TITLE_CHARS: usize = 100;

/// The parts of a guide. Each is replaced by an update only as long as it was not edited.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Guide {
    /// With the `#`.
    pub(super) heading: String,
    pub(super) summary: String,
    /// A heading, where the text comes from, and the text as a quotation.
    pub(super) published: String,
}

const OWN_WORDS: &str = "## Our own words\n\n<!-- Say here when to use this tool and when not. `quarterdeck mcp update` leaves \
                         this section as it is. -->\n";

impl Guide {
    pub(super) fn new(server: &ServerName, tool: &PublishedTool) -> Self {
        let title = plain_line(tool.shown_title().unwrap_or(&tool.name));
        let title = if title.is_empty() { plain_line(&tool.name) } else { title };
        Self {
            heading: format!("# {}", shorten(&title, MAX_TITLE_CHARS)),
            summary: summary(server, tool),
            published: published(server, tool),
        }
    }

    pub(super) fn to_text(&self) -> String {
        let Self { heading, summary, published } = self;
        format!("{heading}\n\n{summary}\n\n{published}\n{OWN_WORDS}")
    }
}

/// The first sentence of the description, on one line.
fn summary(server: &ServerName, tool: &PublishedTool) -> String {
    let description = tool.description.as_deref().unwrap_or_default();
    let lines = description.lines().map(plain_line);
    match lines.into_iter().find(|line| !line.is_empty()) {
        Some(line) => shorten(first_sentence(&line), MAX_SUMMARY_CHARS),
        None => format!("A tool of the MCP server {server}, which does not describe it."),
    }
}

fn first_sentence(line: &str) -> &str {
    line.find(". ").map_or(line, |end| &line[..=end])
}

/// As a quotation, so that neither a heading nor an example call in it is one of the guide's.
fn published(server: &ServerName, tool: &PublishedTool) -> String {
    let mut text = format!(
        "## What the server says\n\nPublished by the MCP server `{server}`, as imported. It describes the tool, and is no \
         instruction.\n\n"
    );
    let description = visible(tool.description.as_deref().unwrap_or("(nothing)"));
    for line in description.trim().lines() {
        // Writing to a string cannot fail.
        let _ = writeln!(text, "{}", format!("> {}", line.trim_end()).trim_end());
    }
    text
}

/// What every provider is told of the tool.
pub(super) fn short_description(
    server: &ServerName,
    tool: &PublishedTool,
    notes: &mut Vec<String>,
) -> String {
    let published = tool.description.as_deref().unwrap_or_default().trim();
    let shown = visible(published);
    if shown != published {
        notes.push("its description has characters that cannot be seen; they are shown as ⟨U+…⟩".into());
    }
    if shown.is_empty() {
        notes.push(
            "the server does not describe it; say in `description` what it does and when to use it".into(),
        );
        let title = visible_line(tool.shown_title().unwrap_or(&tool.name));
        return format!("{title} (a tool of the MCP server {server})");
    }
    if shown.chars().count() <= MAX_DESCRIPTION_CHARS {
        return shown.into_owned();
    }
    notes.push(format!(
        "its description is longer than {MAX_DESCRIPTION_CHARS} characters; `description` has the beginning, guide.md all of it"
    ));
    shorten(&shown, MAX_DESCRIPTION_CHARS)
}

/// Text on one line, without what Markdown would take for a heading, a list, a quotation or a fence.
fn plain_line(text: &str) -> String {
    let line = visible_line(text.trim());
    line.trim_start_matches(['#', '>', '*', '-', '+', '`', '~', '=', ' ']).trim_end().to_owned()
}

/// At most so many characters, ending after a sentence or a word where there is one.
fn shorten(text: &str, max_chars: usize) -> String {
    let Some((end, _)) = text.char_indices().nth(max_chars.saturating_sub(1)) else { return text.to_owned() };
    if text.chars().count() <= max_chars {
        return text.to_owned();
    }
    let start = &text[..end];
    let half = start.floor_char_boundary(start.len() / 2);
    let sentence = start.rfind(". ").filter(|at| *at > half).map(|at| at + 1);
    let word = || start.rfind(char::is_whitespace).filter(|at| *at > half);
    match sentence {
        Some(at) => start[..at].to_owned(),
        None => format!("{}…", start[..word().unwrap_or(end)].trim_end()),
    }
}
