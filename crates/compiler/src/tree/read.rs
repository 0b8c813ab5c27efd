//! Reads one tool folder.

use std::fs;
use std::io::{self, Read};
use std::path::Path;
use std::sync::Arc;

use super::{BYTE_ORDER_MARK, Folder};
use crate::inspectors::Inspectors;
use crate::rules;
use crate::source::SourceFile;
use crate::{Diagnostic, Place};

const MAX_FILE_BYTES: u64 = 1 << 20;
const MAX_FILES_PER_TOOL: usize = 200;
/// Deep enough for any handler's own modules.
const MAX_DEPTH: usize = 8;
/// What every tool folder has, whatever kind of handler it has.
const DOCUMENT_EXTENSIONS: [&str; 2] = ["json", "md"];

pub(super) struct FolderReader<'a> {
    tools: &'a Path,
    inspectors: &'a Inspectors,
    folder: Folder,
    files: usize,
}

/// How the content of a file is kept.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Content {
    /// JSON or Markdown. Some editors put a mark before it, which no reader expects.
    Document,
    Text,
    Binary,
}

enum ReadError {
    Io(io::Error),
    TooLarge,
    NotUtf8(usize),
}

impl<'a> FolderReader<'a> {
    pub(super) fn read(tools: &'a Path, inspectors: &'a Inspectors, name: &str) -> Folder {
        let mut reader = Self { tools, inspectors, folder: Folder::new(name), files: 0 };
        reader.read_folder(name, 0);
        reader.folder
    }

    fn read_folder(&mut self, relative: &str, depth: usize) {
        let entries = match fs::read_dir(self.tools.join(relative)) {
            Ok(entries) => entries,
            Err(error) => return self.report(relative, &error),
        };
        for entry in entries {
            match entry {
                Ok(entry) => self.read_entry(relative, &entry, depth),
                Err(error) => self.report(relative, &error),
            }
        }
    }

    fn read_entry(&mut self, relative: &str, entry: &fs::DirEntry, depth: usize) {
        let name = entry.file_name();
        let Some(name) = name.to_str() else {
            let problem = bad_name(&name.to_string_lossy()).of(&self.folder.name);
            return self.folder.problems.push(problem);
        };
        let path = format!("{relative}/{name}");
        // Links to folders are not followed below a tool's own folder: that is how circles are made.
        let is_folder = entry.file_type().is_ok_and(|kind| kind.is_dir());
        if is_folder {
            if depth < MAX_DEPTH && !name.starts_with('.') && name != "node_modules" {
                self.read_folder(&path, depth + 1);
            }
        } else if let Some(content) = self.content(name) {
            match leaves(&self.tools.join(&self.folder.name), &entry.path()) {
                Ok(false) => self.read_file(path, content),
                Ok(true) => {
                    self.report(&path, &io::Error::other("it is a link that leaves the tool's folder"))
                }
                Err(error) => self.report(&path, &error),
            }
        } else if depth == 0 && self.folder.others.len() < MAX_FILES_PER_TOOL {
            self.folder.others.insert(name.to_owned());
        }
    }

    /// What a file holds by its name; nothing if it is no part of a tool.
    fn content(&self, name: &str) -> Option<Content> {
        let (_, extension) = name.rsplit_once('.')?;
        if DOCUMENT_EXTENSIONS.contains(&extension) {
            return Some(Content::Document);
        }
        let file_type = self.inspectors.file_type(extension)?;
        Some(if file_type.is_text { Content::Text } else { Content::Binary })
    }

    fn read_file(&mut self, path: String, content: Content) {
        self.files += 1;
        if self.files > MAX_FILES_PER_TOOL {
            if self.files == MAX_FILES_PER_TOOL + 1 {
                let problem = Diagnostic::new(
                    &rules::FILE_TOO_LARGE,
                    format!("the folder has more than {MAX_FILES_PER_TOOL} source files"),
                    "keep only what the handler needs in the tool's folder",
                );
                let place = Place::Path(self.folder.name.clone());
                self.folder.problems.push(problem.at(place).of(&self.folder.name));
                self.folder.unreadable.push(path);
            }
            return;
        }
        match self.keep(&path, content) {
            Ok(()) => {}
            Err(ReadError::Io(error)) => self.report(&path, &error),
            Err(ReadError::TooLarge) => {
                let message = format!("{path} is larger than 1 MiB");
                self.refuse(
                    &path,
                    Diagnostic::new(&rules::FILE_TOO_LARGE, message, "move data out of the tool's folder"),
                );
            }
            Err(ReadError::NotUtf8(offset)) => {
                let message =
                    format!("{path} is not UTF-8 text: the byte at offset {offset} does not belong");
                self.refuse(&path, Diagnostic::new(&rules::NOT_UTF8, message, "save the file as UTF-8"));
            }
        }
    }

    fn keep(&mut self, path: &str, content: Content) -> Result<(), ReadError> {
        let bytes = read_bytes(&self.tools.join(path))?;
        if content == Content::Binary {
            self.folder.binaries.insert(path.to_owned(), bytes);
            return Ok(());
        }
        let mut text =
            String::from_utf8(bytes).map_err(|error| ReadError::NotUtf8(error.utf8_error().valid_up_to()))?;
        if content == Content::Document && text.starts_with(BYTE_ORDER_MARK) {
            text.drain(..BYTE_ORDER_MARK.len());
            self.folder.marked.insert(path.to_owned());
        }
        let file = SourceFile { path: path.to_owned(), text };
        self.folder.files.insert(path.to_owned(), Arc::new(file));
        Ok(())
    }

    fn report(&mut self, path: &str, error: &io::Error) {
        self.refuse(path, unreadable(path, error));
    }

    fn refuse(&mut self, path: &str, diagnostic: Diagnostic) {
        let problem = diagnostic.at(Place::Path(path.to_owned())).of(&self.folder.name);
        self.folder.unreadable.push(path.to_owned());
        self.folder.problems.push(problem);
    }
}

/// Whether a file is a link to something outside its tool's folder.
fn leaves(folder: &Path, file: &Path) -> io::Result<bool> {
    if !file.symlink_metadata()?.is_symlink() {
        return Ok(false);
    }
    Ok(!file.canonicalize()?.starts_with(folder.canonicalize()?))
}

fn read_bytes(path: &Path) -> Result<Vec<u8>, ReadError> {
    let metadata = fs::metadata(path).map_err(ReadError::Io)?;
    if !metadata.is_file() {
        return Err(ReadError::Io(io::Error::other("it is not a regular file")));
    }
    if metadata.len() > MAX_FILE_BYTES {
        return Err(ReadError::TooLarge);
    }
    let mut bytes = Vec::new();
    // The limit is applied again while reading: a file may grow between the two looks.
    let file = fs::File::open(path).map_err(ReadError::Io)?;
    file.take(MAX_FILE_BYTES + 1).read_to_end(&mut bytes).map_err(ReadError::Io)?;
    match bytes.len() as u64 > MAX_FILE_BYTES {
        true => Err(ReadError::TooLarge),
        false => Ok(bytes),
    }
}

pub(super) fn unreadable(path: &str, error: &io::Error) -> Diagnostic {
    Diagnostic::new(
        &rules::UNREADABLE_FILE,
        format!("cannot read {path}: {error}"),
        "make it a readable, regular file, or remove it",
    )
    .at(Place::Path(path.to_owned()))
}

pub(super) fn bad_name(name: &str) -> Diagnostic {
    Diagnostic::new(&rules::NOT_UTF8, format!("the name {name:?} is not UTF-8"), "rename it")
        .at(Place::Path(name.to_owned()))
}
