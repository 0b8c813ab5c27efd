//! Many files from one string.

use std::fs;
use std::path::{Path, PathBuf};

/// A temporary folder that goes away with the value.
#[derive(Debug)]
pub struct Tree {
    folder: tempfile::TempDir,
}

/// Writes the files that `description` names into a temporary folder.
///
/// A line `//- path/to/file` begins a file; what follows, up to the next such line, is its text. Indentation that
/// all lines of a file share is removed.
///
/// # Panics
///
/// When the folder cannot be written; tests have no better answer to that.
pub fn tree(description: &str) -> Tree {
    let tree = Tree { folder: tempfile::tempdir().expect("a temporary folder can be made") };
    let mut current: Option<(String, Vec<&str>)> = None;
    for line in description.lines() {
        if let Some(path) = line.trim_start().strip_prefix("//- ") {
            if let Some((path, lines)) = current.take() {
                tree.write(&path, dedent(&lines));
            }
            current = Some((path.trim().to_owned(), Vec::new()));
        } else if let Some((_, lines)) = &mut current {
            lines.push(line);
        }
    }
    if let Some((path, lines)) = current {
        tree.write(&path, dedent(&lines));
    }
    tree
}

impl Tree {
    /// The folder itself.
    pub fn path(&self) -> &Path {
        self.folder.path()
    }

    /// A place inside the folder.
    pub fn join(&self, path: &str) -> PathBuf {
        self.path().join(path)
    }

    /// Writes one more file.
    ///
    /// # Panics
    ///
    /// When it cannot be written.
    pub fn write(&self, path: &str, content: impl AsRef<[u8]>) {
        let path = self.join(path);
        let parent = path.parent().expect("a file stands in a folder");
        fs::create_dir_all(parent).expect("a folder can be made in a temporary folder");
        fs::write(path, content).expect("a file can be written in a temporary folder");
    }
}

fn dedent(lines: &[&str]) -> String {
    let indent = lines
        .iter()
        .filter(|line| !line.trim().is_empty())
        .map(|line| line.len() - line.trim_start().len())
        .min();
    let mut text = String::new();
    for line in lines {
        text.push_str(line.get(indent.unwrap_or(0)..).unwrap_or(""));
        text.push('\n');
    }
    let end = text.trim_end().len();
    text.truncate(end);
    text.push('\n');
    text
}
