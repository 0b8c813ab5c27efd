//! What went wrong inside a handler, for its author and the operator.

use std::fmt;

use serde::Serialize;

/// What is kept of a message. A handler may throw megabytes.
const MAX_MESSAGE_CHARS: usize = 2_000;
/// The innermost calls of a stack; a recursion has thousands.
const MAX_FRAMES: usize = 20;
/// What is shown of a source line. A bundled handler is one line.
const MAX_EXCERPT_CHARS: usize = 160;

/// Why a handler gave no good answer: what it threw, where, and what its author may do about it.
///
/// It names files and lines, so it goes beside the envelope to operators alone: the terminal, the deck, the log. Neither a
/// model nor a user ever sees it, and no audit line holds it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "json-schema", derive(schemars::JsonSchema), schemars(deny_unknown_fields))]
#[serde(rename_all = "camelCase")]
pub struct HandlerFault {
    /// What was thrown, or what is wrong with the answer, in one sentence.
    pub message: String,
    /// The stack in the handler's own files, the innermost call first.
    pub frames: Vec<StackFrame>,
    /// The source line that it happened on, if that is known.
    pub excerpt: Option<SourceExcerpt>,
    /// What to do, for a usual mistake.
    pub hint: Option<String>,
}

/// One call of a stack.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "json-schema", derive(schemars::JsonSchema), schemars(deny_unknown_fields))]
#[serde(rename_all = "camelCase")]
pub struct StackFrame {
    /// The function, if it has a name.
    pub function: Option<String>,
    /// The file, by path relative to the tools folder.
    pub file: String,
    /// Counted from one.
    pub line: u32,
    /// In characters, counted from one.
    pub column: u32,
}

/// One line of a source file, with the place on it that matters.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "json-schema", derive(schemars::JsonSchema), schemars(deny_unknown_fields))]
#[serde(rename_all = "camelCase")]
pub struct SourceExcerpt {
    /// The file, by path relative to the tools folder.
    pub file: String,
    /// Counted from one.
    pub line: u32,
    /// In characters, counted from one.
    pub column: u32,
    /// The line, or the part of a long one around the place.
    pub text: String,
    /// Where in `text` the place is, in characters, counted from zero.
    pub caret: u32,
}

impl HandlerFault {
    /// A fault without a place.
    pub fn new(message: impl AsRef<str>) -> Self {
        let message = shortened(message.as_ref().trim(), MAX_MESSAGE_CHARS);
        Self { message, frames: Vec::new(), excerpt: None, hint: None }
    }

    /// Says where it happened.
    pub fn at(mut self, frames: Vec<StackFrame>) -> Self {
        self.frames = frames;
        self.frames.truncate(MAX_FRAMES);
        self
    }

    /// Says what to do.
    pub fn with_hint(mut self, hint: impl Into<String>) -> Self {
        self.hint = Some(hint.into());
        self
    }

    /// The same with every text changed, as what is sensitive is hidden.
    pub fn map_texts(mut self, change: impl Fn(&str) -> String) -> Self {
        self.message = change(&self.message);
        self.hint = self.hint.as_deref().map(&change);
        if let Some(excerpt) = &mut self.excerpt {
            let text = change(&excerpt.text);
            // What was shortened has moved, and the caret would point at something else.
            if text != excerpt.text {
                excerpt.caret = 0;
                excerpt.text = text;
            }
        }
        self
    }
}

/// The message, then the stack as engines write it.
impl fmt::Display for HandlerFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)?;
        self.frames.iter().try_for_each(|frame| write!(f, "\n    at {frame}"))
    }
}

impl fmt::Display for StackFrame {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { function, file, line, column } = self;
        match function {
            Some(function) => write!(f, "{function} ({file}:{line}:{column})"),
            None => write!(f, "{file}:{line}:{column}"),
        }
    }
}

impl SourceExcerpt {
    /// The line of `source` that a place is on; `None` if it has no such line.
    pub fn of(source: &str, file: &str, line: u32, column: u32) -> Option<Self> {
        let text = source.lines().nth(line.checked_sub(1)? as usize)?;
        let letters: Vec<char> = text.chars().collect();
        let place = (column.max(1) as usize - 1).min(letters.len());
        let start = match letters.len() > MAX_EXCERPT_CHARS {
            true => place.saturating_sub(MAX_EXCERPT_CHARS / 2).min(letters.len() - MAX_EXCERPT_CHARS),
            false => 0,
        };
        let shown: String = letters[start..].iter().take(MAX_EXCERPT_CHARS).collect();
        Some(Self { file: file.to_owned(), line, column, text: shown, caret: (place - start) as u32 })
    }
}

fn shortened(text: &str, max_chars: usize) -> String {
    match text.char_indices().nth(max_chars) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn an_excerpt_of_a_long_line_is_the_part_around_the_place() {
        let source = format!("first\n{}X{}", "a".repeat(5_000), "b".repeat(5_000));
        let excerpt = SourceExcerpt::of(&source, "t/handler.js", 2, 5_001).unwrap();
        assert_eq!(excerpt.text.chars().count(), MAX_EXCERPT_CHARS);
        assert_eq!(excerpt.text.chars().nth(excerpt.caret as usize), Some('X'));
        assert_eq!(SourceExcerpt::of(&source, "t/handler.js", 3, 1), None);
        assert_eq!(SourceExcerpt::of(&source, "t/handler.js", 0, 1), None);
    }

    #[test]
    fn a_fault_prints_as_an_engine_writes_a_stack() {
        let frame = |function: Option<&str>, line| StackFrame {
            function: function.map(str::to_owned),
            file: "t/handler.js".into(),
            line,
            column: 7,
        };
        let fault = HandlerFault::new("TypeError: no").at(vec![frame(Some("execute"), 3), frame(None, 9)]);
        assert_eq!(
            fault.to_string(),
            "TypeError: no\n    at execute (t/handler.js:3:7)\n    at t/handler.js:9:7"
        );
    }

    proptest! {
        #[test]
        fn a_caret_is_never_beyond_its_text(source in "[a-zé\t\n]{0,400}", line in 0_u32..6, column in 0_u32..500) {
            if let Some(excerpt) = SourceExcerpt::of(&source, "t/handler.js", line, column) {
                prop_assert!(excerpt.caret as usize <= excerpt.text.chars().count());
                prop_assert!(excerpt.text.chars().count() <= MAX_EXCERPT_CHARS);
            }
        }

        #[test]
        fn a_fault_is_bounded(message in ".{0,3000}", frames in 0_usize..60) {
            let frame = StackFrame { function: None, file: "t/handler.js".into(), line: 1, column: 1 };
            let fault = HandlerFault::new(&message).at(vec![frame; frames]);
            prop_assert!(fault.message.chars().count() <= MAX_MESSAGE_CHARS + 1);
            prop_assert!(fault.frames.len() <= MAX_FRAMES);
        }
    }
}
