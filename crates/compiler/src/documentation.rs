//! What a tool says about itself: `guide.md`, or the older pair `doc_summary.md` and `doc.md`.

use std::ops::Range;
use std::sync::Arc;

use quarterdeck_contracts::estimate_tokens;
use quarterdeck_contracts::handler::Position;
use serde_json::Value;

use crate::rules::{self, Rule};
use crate::source::SourceFile;
use crate::text::words;
use crate::tree::Folder;
use crate::{Diagnostic, Place};

const MAX_SUMMARY_CHARACTERS: usize = 250;
const MAX_TOKENS: usize = 1_500;
const OLD_SECTIONS: [&str; 7] = [
    "Summary",
    "Preconditions",
    "Postconditions",
    "Invariants",
    "Failure Modes",
    "Examples",
    "Common Mistakes",
];

/// A tool's documentation, in whichever form it was written.
#[derive(Debug)]
pub(crate) struct Documentation {
    pub(crate) summary: String,
    pub(crate) text: String,
    pub(crate) examples: Vec<Example>,
    /// `doc_summary.md` and `doc.md`. Their examples only warn, so that existing folders build unchanged.
    pub(crate) is_older_form: bool,
    /// Where the summary stands.
    pub(crate) summary_place: Place,
    /// The file that carries the text.
    pub(crate) place: Place,
}

/// A fenced `json` block under *Examples*: an example call.
#[derive(Debug)]
pub(crate) struct Example {
    pub(crate) file: Arc<SourceFile>,
    /// The block's content, without the fences.
    pub(crate) span: Range<usize>,
}

impl Example {
    pub(crate) fn text(&self) -> &str {
        &self.file.text[self.span.clone()]
    }

    /// The place of a line and column of the block, both counted from one.
    pub(crate) fn place_of(&self, line: usize, column: usize) -> Place {
        let first_line = Position::of(&self.file.text, self.span.start).line;
        let position = Position { line: first_line + line.saturating_sub(1), column };
        Place::Span(self.file.clone(), self.file.span_at(position))
    }

    pub(crate) fn place(&self) -> Place {
        let start = self.span.start;
        let first_line = self.text().lines().next().unwrap_or("").len();
        Place::Span(self.file.clone(), start..start + first_line)
    }
}

/// One example call of a guide.
#[derive(Debug, Clone, PartialEq)]
pub struct ExampleCall {
    pub args: Value,
    /// Whether the answer that the guide shows below it is an error: one with `"ok": false`.
    pub is_refused: bool,
}

/// The example calls of a guide, as they stand in an artifact. Blocks that are not calls are left out.
pub fn example_calls(documentation: &str) -> Vec<ExampleCall> {
    let file = Arc::new(SourceFile { path: String::new(), text: documentation.to_owned() });
    let outline = Outline::of(&file);
    let calls: Vec<_> = outline.examples(&file).iter().map(|example| example.span.start).collect();
    let mut examples: Vec<ExampleCall> = Vec::new();
    for block in outline.blocks.iter().filter(|block| block.language == "json") {
        let Ok(value) = serde_json::from_str::<Value>(&file.text[block.content.clone()]) else { continue };
        if calls.contains(&block.content.start) && value.get("ok").is_none() {
            examples.push(ExampleCall { args: value, is_refused: false });
        } else if let Some(example) = examples.last_mut() {
            example.is_refused |= value.get("ok") == Some(&Value::Bool(false));
        }
    }
    examples
}

/// Reads the documentation of a folder, reporting what is wrong with it.
pub(crate) fn read(folder: &Folder, problems: &mut Vec<Diagnostic>) -> Option<Documentation> {
    let is_old = folder.has("doc.md") || folder.has("doc_summary.md");
    let documentation = match (folder.has("guide.md"), is_old) {
        (true, true) => {
            problems.push(
                Diagnostic::new(
                    &rules::TWO_DOCUMENTATIONS,
                    "the tool has both `guide.md` and the older `doc.md` or `doc_summary.md`",
                    "keep `guide.md` and remove the others",
                )
                .at(Place::Path(folder.name.clone())),
            );
            None
        }
        (true, false) => read_guide(folder.file("guide.md")?, problems),
        (false, true) => read_older_form(folder, problems),
        (false, false) => {
            problems.push(missing(
                folder,
                "guide.md",
                "write one: a `#` heading, one or two sentences, then Examples",
            ));
            None
        }
    }?;
    check_text(folder, &documentation, problems);
    Some(documentation)
}

fn read_guide(file: &Arc<SourceFile>, problems: &mut Vec<Diagnostic>) -> Option<Documentation> {
    let outline = Outline::of(file);
    if !matches!(outline.lines.iter().find(|line| !line.is_blank), Some(line) if line.heading.is_some()) {
        problems.push(
            Diagnostic::new(
                &rules::NO_HEADING,
                "the guide does not begin with a heading",
                "begin with `# Title`",
            )
            .at(Place::Span(file.clone(), 0..file.text.ceil_char_boundary(1))),
        );
    }
    let summary = outline.lines.iter().find(|line| !line.is_blank && line.heading.is_none() && !line.is_code);
    let Some(summary) = summary else {
        problems.push(
            Diagnostic::new(
                &rules::NO_SUMMARY,
                "the guide has no summary",
                "write one or two sentences under the heading: what the tool does, when to use it",
            )
            .at(Place::Path(file.path.clone())),
        );
        return None;
    };
    Some(Documentation {
        summary: file.text[summary.span.clone()].trim().to_owned(),
        text: file.text.clone(),
        examples: outline.examples(file),
        is_older_form: false,
        summary_place: Place::Span(file.clone(), summary.span.clone()),
        place: Place::Path(file.path.clone()),
    })
}

fn read_older_form(folder: &Folder, problems: &mut Vec<Diagnostic>) -> Option<Documentation> {
    for name in ["doc_summary.md", "doc.md"] {
        if !folder.has(name) {
            problems.push(missing(
                folder,
                name,
                "the older form has both files; or write a `guide.md` instead of them",
            ));
        }
    }
    let (summary, text) = (folder.file("doc_summary.md")?, folder.file("doc.md")?);
    let outline = Outline::of(text);
    for section in OLD_SECTIONS {
        let begins =
            |line: &Line| line.heading.as_ref().is_some_and(|(_, title)| starts_with_word(title, section));
        if !outline.lines.iter().any(begins) {
            problems.push(
                Diagnostic::new(
                    &rules::MISSING_SECTION,
                    format!("`doc.md` has no section “{section}”"),
                    format!("add a heading `## {section}`"),
                )
                .at(Place::Path(text.path.clone())),
            );
        }
    }
    let words = summary.text.trim();
    if words.is_empty() {
        problems.push(
            Diagnostic::new(&rules::NO_SUMMARY, "`doc_summary.md` is empty", "write one or two sentences")
                .at(Place::Path(summary.path.clone())),
        );
    }
    let start = summary.text.len() - summary.text.trim_start().len();
    let first_line = words.lines().next().unwrap_or("").len();
    Some(Documentation {
        summary: words.to_owned(),
        text: text.text.clone(),
        examples: outline.examples(text),
        is_older_form: true,
        summary_place: Place::Span(summary.clone(), start..start + first_line),
        place: Place::Path(text.path.clone()),
    })
}

fn check_text(folder: &Folder, documentation: &Documentation, problems: &mut Vec<Diagnostic>) {
    let length = documentation.summary.chars().count();
    if length > MAX_SUMMARY_CHARACTERS {
        problems.push(if documentation.is_older_form {
            at_summary(
                documentation,
                &rules::LONG_DOC_SUMMARY,
                format!("`doc_summary.md` has {length} characters"),
                "keep it to 250; what is longer belongs into `doc.md`",
            )
        } else {
            at_summary(
                documentation,
                &rules::LONG_SUMMARY,
                format!("the summary has {length} characters"),
                "keep it to 250; break the line after the first sentence or two",
            )
        });
    }
    if repeats_name(&documentation.summary, &folder.name) {
        problems.push(at_summary(
            documentation,
            &rules::EMPTY_SUMMARY,
            "the summary only repeats the tool's name".into(),
            "say what the tool does and when to use it",
        ));
    }
    let tokens = estimate_tokens(documentation.text.chars().count());
    if tokens > MAX_TOKENS {
        problems.push(
            Diagnostic::new(
                &rules::LONG_DOCUMENTATION,
                format!("the documentation takes about {tokens} tokens of every conversation"),
                "shorten it to 1,500; move what only tool authors need to another file",
            )
            .at(documentation.place.clone()),
        );
    }
}

fn at_summary(documentation: &Documentation, rule: &'static Rule, message: String, help: &str) -> Diagnostic {
    Diagnostic::new(rule, message, help).at(documentation.summary_place.clone())
}

/// Whether the summary has no word that the name does not have, but for words that say nothing.
fn repeats_name(summary: &str, folder: &str) -> bool {
    const FILLER_WORDS: [&str; 11] =
        ["a", "an", "the", "this", "that", "tool", "is", "to", "for", "of", "it"];
    let name: Vec<_> = words(folder).collect();
    words(summary).all(|word| {
        FILLER_WORDS.contains(&word.as_str())
            || name.iter().any(|part| *part == word || word.strip_suffix('s') == Some(part.as_str()))
    })
}

fn missing(folder: &Folder, file: &str, help: &str) -> Diagnostic {
    Diagnostic::new(&rules::MISSING_FILE, format!("`{file}` is missing"), help)
        .at(Place::Path(folder.name.clone()))
}

fn starts_with_word(title: &str, word: &str) -> bool {
    title.get(..word.len()).is_some_and(|start| start.eq_ignore_ascii_case(word))
}

/// A Markdown text by lines: all that the rules above need to know.
struct Outline {
    lines: Vec<Line>,
    blocks: Vec<Block>,
}

struct Line {
    span: Range<usize>,
    is_blank: bool,
    is_code: bool,
    heading: Option<(usize, String)>,
}

/// A fenced block of code.
struct Block {
    language: String,
    content: Range<usize>,
    /// The line of the opening fence.
    line: usize,
}

impl Outline {
    fn of(file: &SourceFile) -> Self {
        let mut outline = Self { lines: Vec::new(), blocks: Vec::new() };
        let mut open: Option<(String, Block)> = None;
        let mut offset = 0;
        for raw in file.text.split_inclusive('\n') {
            let line = raw.trim_end_matches(['\n', '\r']);
            let span = offset..offset + line.len();
            let trimmed = line.trim();
            let is_code = open.is_some() || fence(trimmed).is_some();
            open = match open.take() {
                Some((marker, mut block)) if closes(trimmed, &marker) => {
                    block.content.end = offset;
                    outline.blocks.push(block);
                    None
                }
                Some(block) => Some(block),
                None => fence(trimmed).map(|(marker, language)| {
                    let content = offset + raw.len()..file.text.len();
                    (marker, Block { language, content, line: outline.lines.len() })
                }),
            };
            let heading = if is_code { None } else { heading(trimmed) };
            outline.lines.push(Line { span, is_blank: trimmed.is_empty(), is_code, heading });
            offset += raw.len();
        }
        // A fence that is never closed runs to the end, as Markdown has it.
        outline.blocks.extend(open.map(|(_, block)| block));
        outline
    }

    /// The `json` blocks under a heading that begins with “Example”, but for those that show an answer.
    fn examples(&self, file: &Arc<SourceFile>) -> Vec<Example> {
        let is_call = |block: &&Block| {
            block.language == "json"
                && self.is_under_examples(block.line)
                && !self.shows_answer(file, block.line)
        };
        let blocks = self.blocks.iter().filter(is_call);
        blocks.map(|block| Example { file: file.clone(), span: block.content.clone() }).collect()
    }

    fn is_under_examples(&self, line: usize) -> bool {
        // Walk up through the enclosing headings, each of a higher rank than the one before.
        let mut rank = usize::MAX;
        for (level, title) in self.lines[..line].iter().rev().filter_map(|line| line.heading.as_ref()) {
            if *level < rank {
                if starts_with_word(title, "Example") {
                    return true;
                }
                rank = *level;
            }
        }
        false
    }

    fn shows_answer(&self, file: &SourceFile, line: usize) -> bool {
        let before = self.lines[..line].iter().rev().find(|line| !line.is_blank);
        before.is_some_and(|before| {
            let words = file.text[before.span.clone()].trim_start_matches(|c: char| !c.is_alphanumeric());
            starts_with_word(words, "Response") || starts_with_word(words, "Result")
        })
    }
}

fn heading(line: &str) -> Option<(usize, String)> {
    let title = line.trim_start_matches('#');
    let level = line.len() - title.len();
    ((1..=6).contains(&level) && title.starts_with(' ')).then(|| (level, title.trim().to_owned()))
}

/// The marker of an opening fence and the language after it.
fn fence(line: &str) -> Option<(String, String)> {
    let character = line.chars().next().filter(|c| matches!(c, '`' | '~'))?;
    let language = line.trim_start_matches(character);
    let marker = &line[..line.len() - language.len()];
    (marker.len() >= 3 && !language.contains('`'))
        .then(|| (marker.to_owned(), language.split_whitespace().next().unwrap_or("").to_lowercase()))
}

fn closes(line: &str, marker: &str) -> bool {
    line.starts_with(marker) && line.chars().all(|c| marker.starts_with(c))
}
