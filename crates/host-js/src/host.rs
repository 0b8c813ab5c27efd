//! The host: loads handlers and runs their calls.

use std::sync::{Arc, OnceLock};

use quarterdeck_contracts::HandlerAnswer;
use quarterdeck_contracts::handler::{
    BoxFuture, Context, Handler, HandlerHost, HandlerToLoad, HostError, Limits,
};
use quarterdeck_host_wasm::{
    BodyForm, CallCount, Calls, Code, Fetcher, HostConfig, Language, Returns, Threads, WasmEngine,
};
use serde_json::Value;
use tokio::sync::Semaphore;
use wasmtime::Module;

use crate::answer::Ending;
use crate::fault::FaultReporter;
use crate::js_engine::{JsEngine, WASM_STACK_BYTES, image};
use crate::program::{Image, Program};
use crate::question;

const JAVASCRIPT: Language =
    Language { returns: Returns::Ending, bodies: BodyForm::Kept, waits_for_signal: false };
/// What the engine itself and the gaps between its objects take, beyond the memory that a handler may use.
const ENGINE_BYTES: usize = 16 << 20;
/// An instance whose memory is no larger is cleared by copying the image again; page by page would take five times as long.
const KEEP_RESIDENT_BYTES: usize = 2 << 20;

/// Runs JavaScript handlers, each call in an instance of the engine that no other has used.
///
/// Futures of its handlers are polled on a Tokio runtime with time (and I/O, for `fetch`). Dropping the host stops what
/// computes.
///
/// What authors may rely on:
///
/// - The top level of a module runs before the call, and not for each: calls begin with the memory as it was when the handler had
///   been loaded. If it reads the clock or randomness it runs in each call, before `execute`. Capabilities, timers and `fetch`
///   work only inside `execute`.
/// - Capability requests that a handler began and did not await are finished before its answer is handed out, as
///   long as its time lasts. Timers and fetches that it left behind are not.
/// - A promise that nothing can settle any more (no request, timer or fetch is open) ends the call at once; any other
///   one, at the deadline.
/// - A call that computes is stopped at its deadline, whatever it computes.
pub struct JsHost {
    config: Arc<HostConfig>,
    started: OnceLock<Result<Started, String>>,
    threads: Arc<Semaphore>,
    calls: CallCount,
}

/// What a host has from its first handler on.
#[derive(Clone)]
struct Started {
    engine: Arc<WasmEngine>,
    code: Module,
    fetcher: Arc<Fetcher>,
}

/// What a host holds at this moment.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct HostStats {
    /// Calls in progress, each with an instance, and those that are being torn down.
    pub calls: usize,
    /// Threads that no call computes on.
    pub free_threads: usize,
}

impl JsHost {
    /// Makes a host. What it needs of the machine is reserved when a handler is loaded.
    pub fn new(config: HostConfig) -> Result<Self, HostError> {
        let threads = Arc::new(Semaphore::new(config.max_threads.max(1)));
        let config = Arc::new(config);
        Ok(Self { config, started: OnceLock::new(), threads, calls: CallCount::default() })
    }

    /// What the host holds at this moment.
    pub fn stats(&self) -> HostStats {
        HostStats { calls: self.calls.get(), free_threads: self.threads.available_permits() }
    }

    fn started(&self) -> Result<Started, HostError> {
        self.started.get_or_init(|| self.start()).clone().map_err(HostError::Unloadable)
    }

    fn start(&self) -> Result<Started, String> {
        let config = HostConfig {
            memory_bytes: self.config.memory_bytes + ENGINE_BYTES,
            stack_bytes: WASM_STACK_BYTES,
            keep_resident_bytes: KEEP_RESIDENT_BYTES,
            ..HostConfig::clone(&self.config)
        };
        let engine = Arc::new(WasmEngine::new(&config, question::add_to)?);
        let code = JsEngine::get()?.code_for(&engine)?;
        Ok(Started { engine, code, fetcher: Arc::new(Fetcher::new(&self.config.fetch)?) })
    }
}

/// Calls that compute see it and stop, and no other begins.
impl Drop for JsHost {
    fn drop(&mut self) {
        self.threads.close();
    }
}

impl HandlerHost for JsHost {
    fn load(&self, handler: HandlerToLoad<'_>) -> Result<Arc<dyn Handler>, HostError> {
        Ok(Arc::new(self.loaded(handler)?))
    }
}

impl JsHost {
    fn loaded(&self, handler: HandlerToLoad<'_>) -> Result<JsHandler, HostError> {
        let program = Arc::new(Program::compile(handler, &self.config)?);
        // What is wrong with its top level is told now. The image is made again for the first call: a server has many handlers
        // that are not called, and each image takes half a megabyte.
        program.image()?;
        let Started { engine, code, fetcher } = self.started()?;
        let fetcher = fetcher.for_tool(handler.metadata).map_err(HostError::Unloadable)?;
        let of_handler = Arc::new(Semaphore::new(self.config.max_threads_per_handler.max(1)));
        let calls = Calls {
            engine,
            language: JAVASCRIPT,
            config: self.config.clone(),
            threads: Threads { of_handler, of_host: self.threads.clone() },
            fetcher: Arc::new(fetcher),
            of_handler: CallCount::default(),
            of_host: self.calls.clone(),
        };
        Ok(JsHandler { program, calls, engine_code: code, code: OnceLock::new() })
    }
}

/// A handler in JavaScript.
struct JsHandler {
    program: Arc<Program>,
    calls: Calls,
    engine_code: Module,
    /// The engine's code with the handler's image, from the first call on.
    code: OnceLock<Arc<Code>>,
}

impl JsHandler {
    fn code(&self) -> Result<Arc<Code>, HostError> {
        if let Some(code) = self.code.get() {
            return Ok(code.clone());
        }
        let Image(memory) = self.program.image()?;
        let image = image(&self.calls.engine, &memory).map_err(HostError::Unloadable)?;
        let code = Code::with_image(&self.calls.engine, &self.engine_code, &image);
        let code = code.map(Arc::new).map_err(HostError::Unloadable)?;
        Ok(self.code.get_or_init(|| code).clone())
    }
}

impl Handler for JsHandler {
    fn run(
        &self,
        args: Value,
        context: Arc<dyn Context>,
        limits: Limits,
    ) -> BoxFuture<Result<HandlerAnswer, HostError>> {
        let code = match self.code() {
            Ok(code) => code,
            Err(error) => return Box::pin(std::future::ready(Err(error))),
        };
        let (program, config, of_call) = (self.program.clone(), self.calls.config.clone(), context.clone());
        let read = move |ending, limit_ms| {
            let faults =
                FaultReporter { program: &program, capabilities: &config.capabilities, context: &*of_call };
            Ending::of(ending).into_answer(limit_ms, config.max_answer_bytes, &faults)
        };
        self.calls.run(code, args, context, limits, read)
    }
}

#[cfg(test)]
mod tests;
