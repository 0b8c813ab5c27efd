//! Source texts, and where things stand in them.

use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::Arc;

use jsonc_parser::ast;
use jsonc_parser::common::Ranged;
use quarterdeck_contracts::handler::Position;
use serde_json::Value;

use crate::Place;

/// A file of a tool folder, read whole.
#[derive(Debug, PartialEq, Eq)]
pub struct SourceFile {
    /// Relative to the tools folder, with forward slashes.
    pub path: String,
    /// What is in it.
    pub text: String,
}

impl SourceFile {
    /// The character at a line and column, as a span of bytes; the end of the line or text when there is none.
    pub(crate) fn span_at(&self, position: Position) -> Range<usize> {
        let line_start: usize =
            self.text.split_inclusive('\n').take(position.line.saturating_sub(1)).map(str::len).sum();
        let line = self.text[line_start..].lines().next().unwrap_or("");
        match line.char_indices().nth(position.column.saturating_sub(1)) {
            Some((index, character)) => line_start + index..line_start + index + character.len_utf8(),
            None => line_start + line.len()..line_start + line.len(),
        }
    }
}

impl SourceFile {
    /// The word or quoted text that begins at a line and column; the single character when it is neither.
    pub(crate) fn token_at(&self, position: Position) -> Range<usize> {
        let first = self.span_at(position);
        let rest = &self.text[first.end..];
        let more = match self.text[first.clone()].chars().next() {
            Some(quote @ ('"' | '\'')) => {
                rest.lines().next().and_then(|line| line.find(quote)).map(|end| end + 1)
            }
            Some(c) if c.is_alphanumeric() => rest.find(|c: char| !c.is_alphanumeric()),
            _ => None,
        };
        first.start..first.end + more.unwrap_or(0)
    }
}

/// A JSON file: its value, and where every part of it stands.
#[derive(Debug)]
pub(crate) struct JsonSource {
    file: Arc<SourceFile>,
    pub(crate) value: Value,
    spans: BTreeMap<String, Spans>,
    /// Keys that stand twice in one object, as spans of the later one.
    pub(crate) duplicate_keys: Vec<(String, Range<usize>)>,
}

#[derive(Debug)]
struct Spans {
    key: Option<Range<usize>>,
    value: Range<usize>,
    is_container: bool,
}

impl JsonSource {
    /// Parses a file as JSON, or says where it stops being JSON.
    pub(crate) fn parse(file: Arc<SourceFile>) -> Result<Self, JsonSyntaxError> {
        let value = serde_json::from_str(&file.text).map_err(|error| JsonSyntaxError::new(&file, &error))?;
        let mut source =
            Self { file: file.clone(), value, spans: BTreeMap::new(), duplicate_keys: Vec::new() };
        // Strict JSON has been established above; this second, position-keeping parse cannot disagree.
        if let Ok(parsed) = jsonc_parser::parse_to_ast(&file.text, &Default::default(), &Default::default())
            && let Some(root) = &parsed.value
        {
            source.index(&mut String::new(), None, root);
        }
        Ok(source)
    }

    fn index(&mut self, pointer: &mut String, key: Option<Range<usize>>, value: &ast::Value<'_>) {
        let range = value.range();
        let is_container = matches!(value, ast::Value::Object(_) | ast::Value::Array(_));
        self.spans.insert(pointer.clone(), Spans { key, value: range.start..range.end, is_container });
        let length = pointer.len();
        match value {
            ast::Value::Object(object) => {
                let mut seen = std::collections::BTreeSet::new();
                for property in &object.properties {
                    let name = property.name.as_str();
                    let key = property.name.range();
                    if !seen.insert(name) {
                        self.duplicate_keys.push((name.to_owned(), key.start..key.end));
                    }
                    push_token(pointer, name);
                    self.index(pointer, Some(key.start..key.end), &property.value);
                    pointer.truncate(length);
                }
            }
            ast::Value::Array(array) => {
                for (index, element) in array.elements.iter().enumerate() {
                    push_token(pointer, &index.to_string());
                    self.index(pointer, None, element);
                    pointer.truncate(length);
                }
            }
            _ => {}
        }
    }

    /// The place of a value: itself when it is short, its key when it is an object or a list. A pointer that leads
    /// nowhere is shown at the nearest thing above it.
    pub(crate) fn place(&self, pointer: &str) -> Place {
        let mut pointer = pointer;
        loop {
            if let Some(spans) = self.spans.get(pointer) {
                let span = match &spans.key {
                    Some(key) if spans.is_container => key.clone(),
                    // Marking a whole document would point at nothing; its first character is the next best.
                    None if spans.is_container => spans.value.start..spans.value.start + 1,
                    _ => spans.value.clone(),
                };
                return Place::Span(self.file.clone(), span);
            }
            match pointer.rfind('/') {
                Some(slash) => pointer = &pointer[..slash],
                None => return Place::Path(self.file.path.clone()),
            }
        }
    }

    /// The place of a field's name.
    pub(crate) fn place_of_key(&self, pointer: &str) -> Place {
        match self.spans.get(pointer).and_then(|spans| spans.key.clone()) {
            Some(key) => Place::Span(self.file.clone(), key),
            None => self.place(pointer),
        }
    }

    pub(crate) fn place_of_span(&self, span: Range<usize>) -> Place {
        Place::Span(self.file.clone(), span)
    }
}

/// Appends one reference token to a JSON pointer.
pub(crate) fn push_token(pointer: &mut String, token: &str) {
    pointer.push('/');
    pointer.push_str(&token.replace('~', "~0").replace('/', "~1"));
}

/// A pointer one step further.
pub(crate) fn child(pointer: &str, token: &str) -> String {
    let mut pointer = pointer.to_owned();
    push_token(&mut pointer, token);
    pointer
}

/// Where and why a text is not JSON.
#[derive(Debug)]
pub(crate) struct JsonSyntaxError {
    pub(crate) place: Place,
    pub(crate) reason: String,
    pub(crate) is_depth: bool,
}

impl JsonSyntaxError {
    fn new(file: &Arc<SourceFile>, error: &serde_json::Error) -> Self {
        let span = file.span_at(Position { line: error.line(), column: character_column(file, error) });
        // serde_json appends the position to its message; the place says it better.
        let message = error.to_string();
        let reason = message.split(" at line ").next().unwrap_or(&message).to_owned();
        Self { place: Place::Span(file.clone(), span), is_depth: reason.contains("recursion limit"), reason }
    }
}

/// serde_json counts columns in bytes.
fn character_column(file: &SourceFile, error: &serde_json::Error) -> usize {
    let line = file.text.lines().nth(error.line().saturating_sub(1)).unwrap_or("");
    let mut bytes = error.column().min(line.len());
    while !line.is_char_boundary(bytes) {
        bytes -= 1;
    }
    line[..bytes].chars().count().max(1)
}
