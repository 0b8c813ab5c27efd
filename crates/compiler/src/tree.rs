//! Reads a tools folder: within limits, without following links in circles, and never giving up at the first
//! file that cannot be read.

use std::collections::BTreeMap;
use std::fs;
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::rules;
use crate::source::SourceFile;
use crate::{Diagnostic, Place};

const MAX_FILE_BYTES: u64 = 1 << 20;
const MAX_FILES_PER_TOOL: usize = 200;
/// Deep enough for any handler's own modules.
const MAX_DEPTH: usize = 8;
const SOURCE_EXTENSIONS: [&str; 5] = ["json", "md", "js", "mjs", "rs"];

/// Every tool folder of a tools folder, as it was read.
#[derive(Debug)]
pub struct Tree {
    /// Sorted by name.
    pub folders: Vec<Folder>,
    pub(crate) problems: Vec<Diagnostic>,
}

/// One tool folder.
#[derive(Debug)]
pub struct Folder {
    /// `kb-search`.
    pub name: String,
    pub(crate) files: BTreeMap<String, Arc<SourceFile>>,
    /// Names that exist but could not be read, so that they are not also reported as missing.
    unreadable: Vec<String>,
    pub(crate) problems: Vec<Diagnostic>,
}

/// Why a tools folder cannot be looked at at all.
#[derive(Debug, thiserror::Error)]
#[error("cannot read the tools folder {path}")]
pub struct TreeError {
    /// The folder.
    pub path: PathBuf,
    /// What the system said.
    #[source]
    pub source: io::Error,
}

impl Tree {
    /// Reads every tool folder under `tools`.
    pub fn read(tools: &Path) -> Result<Self, TreeError> {
        let failed = |source| TreeError { path: tools.to_owned(), source };
        let mut folders = Vec::new();
        let mut problems = Vec::new();
        for entry in fs::read_dir(tools).map_err(failed)? {
            let entry = entry.map_err(failed)?;
            let name = entry.file_name();
            let Some(name) = name.to_str() else {
                problems.push(bad_name(&entry.file_name().to_string_lossy()));
                continue;
            };
            if name.starts_with(['_', '.']) {
                continue;
            }
            // Following a link here lets a team keep a tool elsewhere; a link in a circle is an error of that tool.
            match fs::metadata(entry.path()) {
                Ok(metadata) if metadata.is_dir() => folders.push(Folder::read(tools, name)),
                Ok(_) => {}
                Err(error) => problems.push(unreadable(name, &error).of(name)),
            }
        }
        Ok(Self::new(folders, problems))
    }

    /// A tree from texts by path (`greet/schema.json`), for callers that have no folder.
    pub fn from_texts(texts: impl IntoIterator<Item = (String, String)>) -> Self {
        let mut folders: BTreeMap<String, Folder> = BTreeMap::new();
        for (path, text) in texts {
            let name = path.split('/').next().unwrap_or("").to_owned();
            let folder = folders.entry(name.clone()).or_insert_with(|| Folder::new(&name));
            folder.files.insert(path.clone(), Arc::new(SourceFile { path, text }));
        }
        Self::new(folders.into_values().collect(), Vec::new())
    }

    fn new(mut folders: Vec<Folder>, mut problems: Vec<Diagnostic>) -> Self {
        folders.sort_by(|a, b| a.name.cmp(&b.name));
        if folders.is_empty() && problems.is_empty() {
            problems.push(Diagnostic::new(
                &rules::NO_TOOLS,
                "there are no tools in the tools folder",
                "make a first one with `quarterdeck new my-tool`, or point `--tools` at another folder",
            ));
        }
        Self { folders, problems }
    }
}

impl Folder {
    fn new(name: &str) -> Self {
        Self { name: name.to_owned(), files: BTreeMap::new(), unreadable: Vec::new(), problems: Vec::new() }
    }

    fn read(tools: &Path, name: &str) -> Self {
        let mut folder = Self::new(name);
        folder.read_folder(tools, name, 0);
        folder
    }

    /// The file of that name directly in the folder.
    pub(crate) fn file(&self, name: &str) -> Option<&Arc<SourceFile>> {
        self.files.get(&format!("{}/{name}", self.name))
    }

    /// Whether the file is there, readable or not.
    pub(crate) fn has(&self, name: &str) -> bool {
        self.file(name).is_some()
            || self.unreadable.iter().any(|file| *file == format!("{}/{name}", self.name))
    }

    fn read_folder(&mut self, tools: &Path, relative: &str, depth: usize) {
        let entries = match fs::read_dir(tools.join(relative)) {
            Ok(entries) => entries,
            Err(error) => return self.report(relative, &error),
        };
        for entry in entries {
            match entry {
                Ok(entry) => self.read_entry(tools, relative, &entry, depth),
                Err(error) => self.report(relative, &error),
            }
        }
    }

    fn read_entry(&mut self, tools: &Path, relative: &str, entry: &fs::DirEntry, depth: usize) {
        let name = entry.file_name();
        let Some(name) = name.to_str() else {
            return self.problems.push(bad_name(&name.to_string_lossy()).of(&self.name));
        };
        let path = format!("{relative}/{name}");
        // Links to folders are not followed below a tool's own folder: that is how circles are made.
        let is_folder = entry.file_type().is_ok_and(|kind| kind.is_dir());
        if is_folder {
            if depth < MAX_DEPTH && !name.starts_with('.') && name != "node_modules" {
                self.read_folder(tools, &path, depth + 1);
            }
        } else if is_source(name) {
            match leaves(&tools.join(&self.name), &entry.path()) {
                Ok(false) => self.read_file(tools, path),
                Ok(true) => {
                    self.report(&path, &io::Error::other("it is a link that leaves the tool's folder"))
                }
                Err(error) => self.report(&path, &error),
            }
        }
    }

    fn read_file(&mut self, tools: &Path, path: String) {
        if self.files.len() + self.unreadable.len() >= MAX_FILES_PER_TOOL {
            if self.files.len() + self.unreadable.len() == MAX_FILES_PER_TOOL {
                self.problems.push(
                    Diagnostic::new(
                        &rules::FILE_TOO_LARGE,
                        format!("the folder has more than {MAX_FILES_PER_TOOL} source files"),
                        "keep only what the handler needs in the tool's folder",
                    )
                    .at(Place::Path(self.name.clone()))
                    .of(&self.name),
                );
                self.unreadable.push(path);
            }
            return;
        }
        match read_source(&tools.join(&path)) {
            Ok(text) => {
                self.files.insert(path.clone(), Arc::new(SourceFile { path, text }));
            }
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

    fn report(&mut self, path: &str, error: &io::Error) {
        self.refuse(path, unreadable(path, error));
    }

    fn refuse(&mut self, path: &str, diagnostic: Diagnostic) {
        self.unreadable.push(path.to_owned());
        self.problems.push(diagnostic.at(Place::Path(path.to_owned())).of(&self.name));
    }
}

/// Whether a file is a link to something outside its tool's folder.
fn leaves(folder: &Path, file: &Path) -> io::Result<bool> {
    if !file.symlink_metadata()?.is_symlink() {
        return Ok(false);
    }
    Ok(!file.canonicalize()?.starts_with(folder.canonicalize()?))
}

enum ReadError {
    Io(io::Error),
    TooLarge,
    NotUtf8(usize),
}

fn read_source(path: &Path) -> Result<String, ReadError> {
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
    if bytes.len() as u64 > MAX_FILE_BYTES {
        return Err(ReadError::TooLarge);
    }
    let text =
        String::from_utf8(bytes).map_err(|error| ReadError::NotUtf8(error.utf8_error().valid_up_to()))?;
    // Some editors put a mark before JSON and Markdown that is invisible. Handlers are hashed byte by byte and keep it.
    let is_marked = text.starts_with('\u{feff}') && !is_code(path);
    Ok(if is_marked { text['\u{feff}'.len_utf8()..].to_owned() } else { text })
}

fn is_code(path: &Path) -> bool {
    path.extension().is_some_and(|extension| ["js", "mjs", "rs"].iter().any(|code| extension == *code))
}

fn is_source(name: &str) -> bool {
    name.rsplit_once('.').is_some_and(|(_, extension)| SOURCE_EXTENSIONS.contains(&extension))
}

fn unreadable(path: &str, error: &io::Error) -> Diagnostic {
    Diagnostic::new(
        &rules::UNREADABLE_FILE,
        format!("cannot read {path}: {error}"),
        "make it a readable, regular file, or remove it",
    )
    .at(Place::Path(path.to_owned()))
}

fn bad_name(name: &str) -> Diagnostic {
    Diagnostic::new(&rules::NOT_UTF8, format!("the name {name:?} is not UTF-8"), "rename it")
        .at(Place::Path(name.to_owned()))
}
