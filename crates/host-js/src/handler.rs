//! A handler in JavaScript: what its calls have in common.
//!
//! It is prepared with its first call. A server has many handlers that are not called for hours, and its start would take several
//! times as long with an engine. Whether a handler can be loaded is found out when it is new to this machine: then it is loaded at
//! once, and what is wrong is told; a handler that was loaded before is remembered.

use std::sync::{Arc, OnceLock};

use quarterdeck_contracts::handler::{
    BoxFuture, Context, Handler, HandlerFiles, HandlerToLoad, HostError, Limits,
};
use quarterdeck_contracts::{HandlerAnswer, Metadata};
use quarterdeck_host_wasm::{
    BodyForm, CallCount, CallSlot, Calls, Code, InputForm, Language, Returns, Threads, ToolFetcher,
};
use serde_json::Value;
use tokio::sync::Semaphore;

use crate::answer::Ending;
use crate::code_cache::CodeCache;
use crate::fault::FaultReporter;
use crate::host::{HostParts, Started};
use crate::js_engine::image;
use crate::program::{Image, Program, fingerprint};

const JAVASCRIPT: Language = Language {
    input: InputForm::Arguments,
    returns: Returns::Ending,
    bodies: BodyForm::Kept,
    waits_for_signal: false,
};

/// A handler in JavaScript.
pub(crate) struct JsHandler(Arc<HandlerParts>);

struct HandlerParts {
    host: Arc<HostParts>,
    source: HandlerSource,
    fetcher: Arc<ToolFetcher>,
    /// Its calls in progress.
    calls: CallCount,
    prepared: OnceLock<Result<Prepared, String>>,
}

/// The handler as it was given.
struct HandlerSource {
    metadata: Metadata,
    entry: String,
    files: HandlerFiles,
}

/// The handler, ready for calls.
#[derive(Clone)]
pub(crate) struct Prepared {
    pub(crate) program: Arc<Program>,
    pub(crate) calls: Calls,
    /// The engine's code with the handler's image.
    pub(crate) code: Arc<Code>,
}

impl JsHandler {
    pub(crate) fn load(host: &Arc<HostParts>, handler: HandlerToLoad<'_>) -> Result<Self, HostError> {
        let fetcher = host.fetcher.for_tool(handler.metadata).map_err(HostError::Unloadable)?;
        let source = HandlerSource {
            metadata: handler.metadata.clone(),
            entry: handler.entry.to_owned(),
            files: handler.files.clone(),
        };
        let (cache, fingerprint) = (CodeCache::of_user(), fingerprint(handler, &host.config));
        if !cache.remembers(&fingerprint) {
            // What is wrong with its top level is told now.
            Program::compile(handler, &host.config)?.image()?;
            host.started()?;
            cache.remember(&fingerprint);
        }
        Ok(Self(Arc::new(HandlerParts {
            host: host.clone(),
            source,
            fetcher: Arc::new(fetcher),
            calls: CallCount::default(),
            prepared: OnceLock::new(),
        })))
    }

    #[cfg(test)]
    pub(crate) fn prepared(&self) -> Prepared {
        self.0.prepared().clone().unwrap()
    }

    #[cfg(test)]
    pub(crate) fn slot(&self) -> CallSlot {
        self.0.take_slot().unwrap()
    }
}

impl HandlerParts {
    fn take_slot(&self) -> Result<CallSlot, HostError> {
        CallSlot::take(&self.calls, &self.host.calls, self.host.config.max_calls)
    }

    fn prepared(&self) -> &Result<Prepared, String> {
        self.prepared.get_or_init(|| self.prepare().map_err(|error| error.to_string()))
    }

    fn prepare(&self) -> Result<Prepared, HostError> {
        let HandlerSource { metadata, entry, files } = &self.source;
        let handler = HandlerToLoad { metadata, entry, files };
        let program = Program::compile(handler, &self.host.config)?;
        let Image(memory) = program.image()?;
        let Started { engine, code } = self.host.started()?;
        let image = image(&engine, &memory).map_err(HostError::Unloadable)?;
        let code = Code::with_image(&engine, &code, &image).map_err(HostError::Unloadable)?;
        let of_handler = Arc::new(Semaphore::new(self.host.config.max_threads_per_handler.max(1)));
        let calls = Calls {
            engine,
            language: JAVASCRIPT,
            config: self.host.config.clone(),
            threads: Threads { of_handler, of_host: self.host.threads.clone() },
            fetcher: self.fetcher.clone(),
            retired: self.host.retired.clone(),
        };
        Ok(Prepared { program: Arc::new(program), calls, code: Arc::new(code) })
    }
}

impl Prepared {
    pub(crate) fn run(
        &self,
        slot: CallSlot,
        args: Value,
        context: Arc<dyn Context>,
        limits: Limits,
    ) -> BoxFuture<Result<HandlerAnswer, HostError>> {
        let (program, config, of_call) = (self.program.clone(), self.calls.config.clone(), context.clone());
        let read = move |ending, limit_ms| {
            let faults =
                FaultReporter { program: &program, capabilities: &config.capabilities, context: &*of_call };
            Ending::of(ending).into_answer(limit_ms, config.max_answer_bytes, &faults)
        };
        self.calls.run(slot, self.code.clone(), args, context, limits, read)
    }
}

impl Handler for JsHandler {
    fn run(
        &self,
        args: Value,
        context: Arc<dyn Context>,
        limits: Limits,
    ) -> BoxFuture<Result<HandlerAnswer, HostError>> {
        let slot = match self.0.take_slot() {
            Ok(slot) => slot,
            Err(busy) => return Box::pin(std::future::ready(Err(busy))),
        };
        if let Some(Ok(prepared)) = self.0.prepared.get() {
            return prepared.run(slot, args, context, limits);
        }
        let parts = self.0.clone();
        Box::pin(async move {
            // It takes milliseconds, for which the caller's task should not be held up.
            let preparing = tokio::task::spawn_blocking(move || parts.prepared().clone()).await;
            match preparing {
                Ok(Ok(prepared)) => prepared.run(slot, args, context, limits).await,
                Ok(Err(reason)) => Err(HostError::Unloadable(reason)),
                Err(stopped) => Err(HostError::Crashed(format!("it could not be prepared: {stopped}"))),
            }
        })
    }
}
