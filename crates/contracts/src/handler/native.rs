//! Handlers written in Rust.

use std::future::{Future, ready};
use std::sync::Arc;

use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

use super::{BoxFuture, Context, PrecheckAnswer};
use crate::{ErrorType, HandlerAnswer, HandlerKind, ToolError};

/// Handlers that are compiled into the binary: `handler.rs`.
pub const NATIVE_KIND: HandlerKind = HandlerKind::new("native");

/// A handler written in Rust, with its argument and result types hidden so that all fit into one table.
pub struct NativeHandler {
    /// The tool it belongs to.
    pub tool_id: &'static str,
    /// [`native_source_hash`](crate::native_source_hash) of what was compiled.
    pub source_hash: &'static str,
    run: Box<RunNative>,
    precheck: Option<Box<PrecheckNative>>,
}

type RunNative = dyn Fn(Value, Arc<dyn Context>) -> BoxFuture<HandlerAnswer> + Send + Sync;
type PrecheckNative = dyn Fn(Value, Arc<dyn Context>) -> BoxFuture<PrecheckAnswer> + Send + Sync;

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
        Self { tool_id, source_hash, run: Box::new(run), precheck: None }
    }

    /// Adds the typed `precheck` of a `handler.rs`. The tools crate's build script calls this where there is one.
    pub fn with_precheck<Args, Running>(
        self,
        precheck: impl Fn(Args, Arc<dyn Context>) -> Running + Send + Sync + 'static,
    ) -> Self
    where
        Args: DeserializeOwned,
        Running: Future<Output = PrecheckAnswer> + Send + 'static,
    {
        let tool_id = self.tool_id;
        let run = move |args: Value, context: Arc<dyn Context>| -> BoxFuture<PrecheckAnswer> {
            match serde_json::from_value::<Args>(args) {
                Ok(args) => Box::pin(precheck(args, context)),
                Err(error) => Box::pin(ready(Err(types_disagree(tool_id, &error)))),
            }
        };
        Self { precheck: Some(Box::new(run)), ..self }
    }

    /// Starts the handler with arguments that its schema has accepted.
    pub fn run(&self, args: Value, context: Arc<dyn Context>) -> BoxFuture<HandlerAnswer> {
        (self.run)(args, context)
    }

    /// Starts the precheck, if there is one.
    pub fn precheck(&self, args: Value, context: Arc<dyn Context>) -> Option<BoxFuture<PrecheckAnswer>> {
        self.precheck.as_ref().map(|precheck| precheck(args, context))
    }

    /// Whether [`NativeHandler::precheck`] starts anything.
    pub fn has_precheck(&self) -> bool {
        self.precheck.is_some()
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
