//! A problem, told to a tool's author.

use std::ops::Range;
use std::sync::Arc;

use crate::rules::Rule;
use crate::source::SourceFile;

/// How bad it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Severity {
    /// No artifact is written.
    Error,
    /// The artifact is written.
    Warning,
}

impl Severity {
    /// The word for it.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Error => "error",
            Self::Warning => "warning",
        }
    }
}

/// One problem, with its place and the way out.
#[derive(Debug, Clone, PartialEq)]
pub struct Diagnostic {
    /// The rule that was broken; gives the code.
    pub rule: &'static Rule,
    /// The rule's own severity, unless the caller asked for more.
    pub severity: Severity,
    /// The folder of the tool, when it is about one.
    pub folder: Option<String>,
    /// Where it is.
    pub place: Option<Place>,
    /// What is wrong, in one sentence.
    pub message: String,
    /// What would fix it.
    pub help: String,
}

/// A place in a tools folder.
#[derive(Debug, Clone, PartialEq)]
pub enum Place {
    /// A file or folder that cannot be shown, by its path relative to the tools folder.
    Path(String),
    /// A part of a source text, in bytes.
    Span(Arc<SourceFile>, Range<usize>),
}

impl Place {
    /// The file, relative to the tools folder.
    pub fn path(&self) -> &str {
        match self {
            Self::Path(path) => path,
            Self::Span(file, _) => &file.path,
        }
    }

    /// Where the place begins in its file.
    pub fn offset(&self) -> usize {
        match self {
            Self::Path(_) => 0,
            Self::Span(_, span) => span.start,
        }
    }
}

impl Diagnostic {
    /// A problem of the rule's own severity.
    pub fn new(rule: &'static Rule, message: impl Into<String>, help: impl Into<String>) -> Self {
        Self {
            rule,
            severity: rule.severity,
            folder: None,
            place: None,
            message: message.into(),
            help: help.into(),
        }
    }

    /// Says where it is.
    pub fn at(mut self, place: Place) -> Self {
        self.place = Some(place);
        self
    }

    /// Says whose it is.
    pub fn of(mut self, folder: &str) -> Self {
        self.folder = Some(folder.to_owned());
        self
    }

    /// Lets a problem pass with a warning where the rule would refuse.
    pub fn as_warning(mut self) -> Self {
        self.severity = Severity::Warning;
        self
    }

    /// Problems are told tool by tool, and in each file from the top.
    pub(crate) fn sort_key(&self) -> (&str, &str, usize, &str, &str) {
        let (path, offset) = self.place.as_ref().map_or(("", 0), |place| (place.path(), place.offset()));
        (self.folder.as_deref().unwrap_or(""), path, offset, self.rule.code, &self.message)
    }
}
