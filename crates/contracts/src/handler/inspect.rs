//! How a handler is looked at before it may run.

use super::HandlerFiles;

/// The source of one handler, as the compiler read it.
#[derive(Debug, Clone, Copy)]
pub struct HandlerSource<'a> {
    /// The entry file, relative to the tools folder, with forward slashes: `kb-search/handler.js`.
    pub entry: &'a str,
    /// Every file of the tool's folder that could be part of the handler.
    pub files: &'a HandlerFiles,
}

/// Looks at handlers of one kind without running any of their code.
///
/// The compiler has one for each kind of handler and knows nothing else about hosts. An inspector must not
/// execute what it inspects, must not read files beyond those it is given, and must return within a few
/// milliseconds whatever the source is.
pub trait Inspector: Send + Sync {
    /// The file that a tool author writes, which gives a folder a handler of this kind: `handler.js`.
    fn entry_file(&self) -> &'static str;

    /// Which files of a tool's folder can be part of a handler. Others are not read.
    fn file_types(&self) -> &'static [FileType];

    /// Reports what the handler is made of and everything that is wrong with it.
    fn inspect(&self, source: HandlerSource<'_>) -> Inspection;
}

/// Files with one extension.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FileType {
    /// Without the dot: `js`.
    pub extension: &'static str,
    /// Whether files must be UTF-8. One that is not is reported to its author and not given to the inspector.
    pub is_text: bool,
}

impl FileType {
    /// Files that must be UTF-8.
    pub const fn text(extension: &'static str) -> Self {
        Self { extension, is_text: true }
    }

    /// Files that may hold any bytes.
    pub const fn binary(extension: &'static str) -> Self {
        Self { extension, is_text: false }
    }
}

/// What an [`Inspector`] saw.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Inspection {
    /// The files that the handler is made of: the entry and what it imports.
    pub files: Vec<String>,
    /// What is wrong; empty when the handler can be loaded.
    pub findings: Vec<Finding>,
}

/// One thing that is wrong with a handler.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Finding {
    /// What it is about.
    pub kind: FindingKind,
    /// The file it stands in, by path relative to the tools folder.
    pub file: String,
    /// Where in the file, when that is known.
    pub position: Option<Position>,
    /// One sentence for the tool's author.
    pub message: String,
}

/// A place in a source text, both counted from one; columns count characters.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[expect(missing_docs, reason = "the names say it")]
pub struct Position {
    pub line: usize,
    pub column: usize,
}

impl Position {
    /// The position of a byte offset in a text.
    pub fn of(text: &str, offset: usize) -> Self {
        let before = text.get(..offset).unwrap_or(text);
        let line_start = before.rfind('\n').map_or(0, |newline| newline + 1);
        Self { line: before.matches('\n').count() + 1, column: before[line_start..].chars().count() + 1 }
    }
}

/// What a [`Finding`] is about.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FindingKind {
    /// The source does not parse.
    Syntax,
    /// `execute` is not exported.
    NoExecute,
    /// `module.exports` or `exports.…`: the form of exports that handlers do not have.
    CommonJs,
    /// `require(…)`, which handlers do not have.
    NodeRequire,
    /// `process.…`, which handlers do not have.
    NodeProcess,
    /// An import that a handler may not make, or that names nothing.
    Import,
    /// A response schema version that this runtime does not speak, or that cannot be read without running.
    ResponseVersion,
    /// The binary was built without this handler, or with another state of it.
    NotCompiledIn,
    /// The folder does not say which tool of which server it stands for, or not in the way that pins it.
    Binding,
    /// The server is not in the configuration of this machine.
    UnknownServer,
    /// The file is not a WebAssembly module, or not one of the size and form that handlers may have.
    WasmModule,
    /// The module imports or exports something else than a handler does.
    WasmInterface,
}
