//! Handlers: how one is looked at before it may run, and what a native one is.

use std::collections::BTreeMap;
use std::future::{Future, ready};
use std::pin::Pin;
use std::sync::Arc;
use std::time::SystemTime;

use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

use crate::{ErrorType, HandlerAnswer, ToolError};

/// The source of one handler, as the compiler read it.
#[derive(Debug, Clone, Copy)]
pub struct HandlerSource<'a> {
    /// The entry file, relative to the tools folder, with forward slashes: `kb-search/handler.js`.
    pub entry: &'a str,
    /// Every file of the tool's folder that could be part of the handler, by path relative to the tools folder.
    pub files: &'a BTreeMap<String, String>,
}

/// Looks at handlers of one kind without running any of their code.
///
/// The compiler has one for each kind of handler and knows nothing else about hosts. An inspector must not
/// execute what it inspects, must not read files beyond those it is given, and must return within a few
/// milliseconds whatever the source is.
pub trait Inspector: Send + Sync {
    /// Reports what the handler is made of and everything that is wrong with it.
    fn inspect(&self, source: HandlerSource<'_>) -> Inspection;
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
    /// An import that a handler may not make, or that names nothing.
    Import,
    /// A response schema version that this runtime does not speak, or that cannot be read without running.
    ResponseVersion,
    /// The binary was built without this handler, or with another state of it.
    NotCompiledIn,
}

/// What a native handler may do beyond computing. Everything else it would need is not there.
pub trait Context: Send + Sync {
    /// The time, as this call sees it. Handlers read no other clock, so that tests can hold it still.
    fn now(&self) -> SystemTime;
}

/// A handler written in Rust, with its argument and result types hidden so that all fit into one table.
pub struct NativeHandler {
    /// The tool it belongs to.
    pub tool_id: &'static str,
    /// SHA-256 of the `handler.rs` that was compiled, in hex.
    pub source_hash: &'static str,
    run: Box<RunNative>,
}

type RunNative = dyn Fn(Value, Arc<dyn Context>) -> BoxFuture<HandlerAnswer> + Send + Sync;

/// A future that is boxed because handlers of many types stand in one table.
pub type BoxFuture<T> = Pin<Box<dyn Future<Output = T> + Send>>;

impl NativeHandler {
    /// Wraps the typed `execute` of a `handler.rs`. The tools crate's build script calls this once for each.
    pub fn new<Args, Data, Running>(
        tool_id: &'static str,
        source_hash: &'static str,
        execute: impl Fn(Args, Arc<dyn Context>) -> Running + Send + Sync + 'static,
    ) -> Self
    where
        Args: DeserializeOwned,
        Data: Serialize,
        Running: Future<Output = Result<Data, ToolError>> + Send + 'static,
    {
        let run = move |args: Value, context: Arc<dyn Context>| -> BoxFuture<HandlerAnswer> {
            let running = match serde_json::from_value::<Args>(args) {
                Ok(args) => execute(args, context),
                Err(error) => {
                    return Box::pin(ready(HandlerAnswer::failure(types_disagree(tool_id, &error))));
                }
            };
            Box::pin(async move { answer(tool_id, running.await) })
        };
        Self { tool_id, source_hash, run: Box::new(run) }
    }

    /// Starts the handler with arguments that its schema has accepted.
    pub fn run(&self, args: Value, context: Arc<dyn Context>) -> BoxFuture<HandlerAnswer> {
        (self.run)(args, context)
    }
}

fn answer<Data: Serialize>(tool_id: &str, result: Result<Data, ToolError>) -> HandlerAnswer {
    match result.map(serde_json::to_value) {
        Ok(Ok(data)) => HandlerAnswer::success(data),
        Ok(Err(error)) => HandlerAnswer::failure(types_disagree(tool_id, &error)),
        Err(error) => HandlerAnswer::failure(error),
    }
}

/// The schema accepted what the Rust type does not, or the result cannot be JSON: a bug in the tool.
fn types_disagree(tool_id: &str, error: &serde_json::Error) -> ToolError {
    ToolError::new(ErrorType::Internal, format!("{tool_id} does not fit its own schema: {error}"))
}
