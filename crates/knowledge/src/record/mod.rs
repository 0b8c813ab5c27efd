//! Records in files: Markdown with front matter, or JSON Lines. Problems are reported with file and line, and the rest
//! is served.

mod clean;
mod fields;
mod fingerprint;
mod folder;
mod jsonl;
mod links;
mod markdown;
mod yaml;

use std::fmt;
use std::path::PathBuf;

pub use fields::PathDefaults;
pub use fingerprint::fingerprint;
pub use folder::{MAX_FILE_BYTES, read_folder};
pub use jsonl::{ReadRecords, read_jsonl};
pub use markdown::parse_markdown;

/// What is wrong with a record, and where.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Problem {
    /// The file, relative to the folder that was read.
    pub file: PathBuf,
    /// The line, from 1.
    pub line: usize,
    /// What is wrong, in a sentence that says what to do.
    pub message: String,
    /// Whether the record is served all the same.
    pub is_served: bool,
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{} {}", self.file.display(), self.line, self.message)
    }
}

/// What is wrong on a line of the text at hand.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Fault {
    /// The line, from 1.
    pub line: usize,
    pub message: String,
}

impl Fault {
    fn new(line: usize, message: impl Into<String>) -> Self {
        Self { line, message: message.into() }
    }
}
