//! Diagnostics as text and as JSON.

use annotate_snippets::renderer::DecorStyle;
use annotate_snippets::{Annotation, AnnotationKind, Group, Level, Origin, Renderer, Snippet};
use quarterdeck_contracts::handler::{HandlerFault, Position, SourceExcerpt, StackFrame};
use serde_json::{Value, json};

use crate::{Diagnostic, Place, Severity};

/// Whether the output may use colours.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Style {
    /// For a terminal.
    Coloured,
    /// For everything else.
    Plain,
}

/// One diagnostic with its source excerpt, as a modern compiler shows it. `folder` is put before each path, so that
/// a terminal can open the file.
pub fn render(diagnostic: &Diagnostic, folder: &str, style: Style) -> String {
    let level = match diagnostic.severity {
        Severity::Error => Level::ERROR,
        Severity::Warning => Level::WARNING,
    };
    let id = format!("{} {}", diagnostic.rule.code, diagnostic.rule.name);
    let title = level.primary_title(printable(&diagnostic.message)).id(id);
    let group = match &diagnostic.place {
        None => Group::with_title(title),
        Some(Place::Path(path)) => title.element(Origin::path(joined(folder, path))),
        Some(Place::Span(file, span)) => {
            // The renderer cuts the text at these places, which must not be inside a character.
            let span = file.text.floor_char_boundary(span.start)..file.text.ceil_char_boundary(span.end);
            let annotation = AnnotationKind::Primary.span(span);
            title.element(Snippet::source(&file.text).path(joined(folder, &file.path)).annotation(annotation))
        }
    };
    let group = group.element(Level::HELP.message(printable(&diagnostic.help)));
    renderer(style).render(&[group])
}

/// A handler's fault in the form of a diagnostic, with its stack as a note.
pub fn render_fault(fault: &HandlerFault, folder: &str, style: Style) -> String {
    let title = Level::ERROR.primary_title(printable(&fault.message));
    let mut group = match &fault.excerpt {
        None => Group::with_title(title),
        Some(excerpt) => title.element(snippet(excerpt, folder)),
    };
    let calls = fault.frames.iter().map(|frame| {
        let frame = StackFrame { file: joined(folder, &frame.file), ..frame.clone() };
        format!("at {frame}")
    });
    let stack = calls.collect::<Vec<_>>().join("\n");
    if !stack.is_empty() {
        group = group.element(Level::NOTE.message(printable(&stack)));
    }
    if let Some(hint) = &fault.hint {
        group = group.element(Level::HELP.message(printable(hint)));
    }
    renderer(style).render(&[group])
}

fn snippet<'a>(excerpt: &SourceExcerpt, folder: &str) -> Snippet<'a, Annotation<'a>> {
    let text = printable(&excerpt.text);
    let at = |letters: usize| text.char_indices().nth(letters).map_or(text.len(), |(at, _)| at);
    let span = at(excerpt.caret as usize)..at(excerpt.caret as usize + 1);
    Snippet::source(text)
        .line_start(excerpt.line as usize)
        .path(joined(folder, &excerpt.file))
        .annotation(AnnotationKind::Primary.span(span))
}

fn renderer(style: Style) -> Renderer {
    let renderer = match style {
        Style::Coloured => Renderer::styled(),
        Style::Plain => Renderer::plain(),
    };
    renderer.decor_style(DecorStyle::Ascii)
}

/// One diagnostic as data.
pub fn to_json(diagnostic: &Diagnostic) -> Value {
    let mut object = json!({
        "code": diagnostic.rule.code,
        "rule": diagnostic.rule.name,
        "severity": diagnostic.severity.as_str(),
        "tool": diagnostic.folder,
        "file": diagnostic.place.as_ref().map(Place::path),
        "message": diagnostic.message,
        "help": diagnostic.help,
    });
    if let Some(Place::Span(file, span)) = &diagnostic.place {
        let (start, end) = (Position::of(&file.text, span.start), Position::of(&file.text, span.end));
        object["line"] = json!(start.line);
        object["column"] = json!(start.column);
        object["endLine"] = json!(end.line);
        object["endColumn"] = json!(end.column);
    }
    object
}

fn joined(folder: &str, path: &str) -> String {
    match folder.trim_end_matches('/') {
        "" | "." => path.to_owned(),
        folder => format!("{folder}/{path}"),
    }
}

/// Keeps what came from a file from steering a terminal.
fn printable(text: &str) -> String {
    text.chars().map(|c| if c.is_control() && c != '\n' && c != '\t' { '\u{fffd}' } else { c }).collect()
}
