//! Reads a tools folder: within limits, without following links in circles, and never giving up at the first
//! file that cannot be read.

mod read;

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use quarterdeck_contracts::handler::HandlerFiles;

use self::read::{FolderReader, bad_name, unreadable};
use crate::Diagnostic;
use crate::inspectors::Inspectors;
use crate::rules;
use crate::source::SourceFile;

/// What editors put before a text, and nothing shows.
const BYTE_ORDER_MARK: &str = "\u{feff}";

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
    /// Files of handlers that need not be text.
    binaries: HandlerFiles,
    /// Texts that are kept without the byte order mark that they have on disk.
    marked: BTreeSet<String>,
    /// Names that exist but could not be read, so that they are not also reported as missing.
    unreadable: Vec<String>,
    /// Files directly in the folder that are no part of a tool, by name.
    others: BTreeSet<String>,
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
    /// Reads every tool folder under `tools`: definitions, guides, and what the handlers of registered kinds are made of.
    pub fn read(tools: &Path, inspectors: &Inspectors) -> Result<Self, TreeError> {
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
                Ok(metadata) if metadata.is_dir() => {
                    folders.push(FolderReader::read(tools, inspectors, name))
                }
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
        Self {
            name: name.to_owned(),
            files: BTreeMap::new(),
            binaries: HandlerFiles::new(),
            marked: BTreeSet::new(),
            unreadable: Vec::new(),
            others: BTreeSet::new(),
            problems: Vec::new(),
        }
    }

    /// The text of that name directly in the folder.
    pub(crate) fn file(&self, name: &str) -> Option<&Arc<SourceFile>> {
        self.files.get(&self.path_of(name))
    }

    /// Whether the file is there, readable or not.
    pub(crate) fn has(&self, name: &str) -> bool {
        let path = self.path_of(name);
        self.files.contains_key(&path) || self.binaries.contains_key(&path) || self.unreadable.contains(&path)
    }

    /// The same for a file that may be no part of a tool.
    pub(crate) fn names(&self, name: &str) -> bool {
        self.has(name) || self.others.contains(name)
    }

    /// Every file that could be part of the handler, byte for byte as on disk.
    pub(crate) fn handler_files(&self) -> HandlerFiles {
        let texts = self.files.iter().map(|(path, file)| {
            let mark = if self.marked.contains(path) { BYTE_ORDER_MARK } else { "" };
            (path.clone(), [mark, &file.text].concat().into_bytes())
        });
        texts.chain(self.binaries.clone()).collect()
    }

    fn path_of(&self, name: &str) -> String {
        format!("{}/{name}", self.name)
    }
}
