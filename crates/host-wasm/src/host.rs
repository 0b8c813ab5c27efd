//! The host: loads handlers and runs their calls.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock};

use quarterdeck_contracts::HandlerAnswer;
use quarterdeck_contracts::handler::{
    BoxFuture, Context, Handler, HandlerHost, HandlerToLoad, HostError, Limits,
};
use serde_json::Value;
use tokio::sync::Semaphore;

use crate::call::{self, Program};
use crate::config::HostConfig;
use crate::engine::WasmEngine;
use crate::interface::MAX_MEMORY_BYTES;
use crate::step::Threads;

/// The error of a call when there is no slot for it.
const BUSY: HostError = HostError::Busy { retry_after_ms: 250 };

/// Runs handlers that are WebAssembly modules, each call in an instance of its own.
///
/// Futures of its handlers are polled on a Tokio runtime with time. The engine starts with the first handler that is loaded: a
/// server without one reserves no addresses and has no thread for it.
///
/// What authors may rely on:
///
/// - Memory, globals and table are for each call as the module describes them.
/// - Requests begin when `execute` or `resume` has returned. Uses of capabilities that the module did not wait for are finished
///   before its answer is handed out, as long as its time lasts.
/// - A module that waits with no request open ends its call at once.
///
/// No handler is ever quarantined. Compiled code looks at the clock in every loop and function, and no instruction takes longer
/// than to fill the memory that an instance may have, so that nothing holds a thread much past its deadline.
pub struct WasmHost {
    config: Arc<HostConfig>,
    engine: OnceLock<Result<Arc<WasmEngine>, String>>,
    threads: Arc<Semaphore>,
    calls: Arc<AtomicUsize>,
}

/// What a host holds at this moment.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct HostStats {
    /// Instances: of calls in progress, and of those that are being torn down.
    pub instances: usize,
    /// Modules that are compiled.
    pub modules: usize,
    /// Threads that no call computes on.
    pub free_threads: usize,
}

impl WasmHost {
    /// Makes a host. What it needs of the machine is reserved when a handler is loaded.
    pub fn new(config: HostConfig) -> Self {
        let config = HostConfig { memory_bytes: config.memory_bytes.min(MAX_MEMORY_BYTES), ..config };
        let threads = Arc::new(Semaphore::new(config.max_threads.max(1)));
        Self { config: Arc::new(config), engine: OnceLock::new(), threads, calls: Arc::default() }
    }

    /// What the host holds at this moment.
    pub fn stats(&self) -> HostStats {
        let engine = self.engine.get().and_then(|engine| engine.as_ref().ok());
        HostStats {
            instances: self.calls.load(Ordering::Relaxed),
            modules: engine.map_or(0, |engine| engine.compiled()),
            free_threads: self.threads.available_permits(),
        }
    }

    fn engine(&self) -> Result<Arc<WasmEngine>, HostError> {
        let engine = self.engine.get_or_init(|| WasmEngine::new(&self.config).map(Arc::new));
        engine.clone().map_err(HostError::Unloadable)
    }
}

impl HandlerHost for WasmHost {
    fn load(&self, handler: HandlerToLoad<'_>) -> Result<Arc<dyn Handler>, HostError> {
        let bytes = handler.files.get(handler.entry);
        let bytes = bytes.ok_or_else(|| HostError::Unloadable(format!("{} is not there", handler.entry)))?;
        let engine = self.engine()?;
        let code = engine.code(bytes).map_err(HostError::Unloadable)?;
        let of_handler = Arc::new(Semaphore::new(self.config.max_threads_per_handler.max(1)));
        let threads = Threads { of_handler, of_host: self.threads.clone() };
        let program = Program { engine, code, config: self.config.clone(), threads };
        Ok(Arc::new(WasmHandler { program, calls: Arc::default(), all_calls: self.calls.clone() }))
    }
}

/// A handler that is a WebAssembly module.
struct WasmHandler {
    program: Program,
    calls: Arc<AtomicUsize>,
    all_calls: Arc<AtomicUsize>,
}

impl Handler for WasmHandler {
    fn run(
        &self,
        args: Value,
        context: Arc<dyn Context>,
        limits: Limits,
    ) -> BoxFuture<Result<HandlerAnswer, HostError>> {
        match CallSlot::take(&self.calls, &self.all_calls, self.program.config.max_calls) {
            Some(slot) => Box::pin(call::run(self.program.clone(), args, context, limits, slot)),
            None => Box::pin(std::future::ready(Err(BUSY))),
        }
    }
}

/// A place among the calls that may be in progress, and with it a slot for an instance.
///
/// A call that finds none is refused rather than made to wait: the calls that hold the places may be waiting for this very one.
pub(crate) struct CallSlot {
    of_handler: Arc<AtomicUsize>,
    of_host: Arc<AtomicUsize>,
}

impl CallSlot {
    /// One handler may have three quarters of the places; the rest is left for the others.
    fn take(of_handler: &Arc<AtomicUsize>, of_host: &Arc<AtomicUsize>, max_calls: usize) -> Option<Self> {
        let count = |calls: &AtomicUsize, max: usize| {
            let add = |calls: usize| (calls < max).then_some(calls + 1);
            calls.fetch_update(Ordering::AcqRel, Ordering::Acquire, add).is_ok()
        };
        if !count(of_handler, max_calls - max_calls / 4) {
            return None;
        }
        if !count(of_host, max_calls) {
            of_handler.fetch_sub(1, Ordering::AcqRel);
            return None;
        }
        Some(Self { of_handler: of_handler.clone(), of_host: of_host.clone() })
    }
}

impl Drop for CallSlot {
    fn drop(&mut self) {
        self.of_host.fetch_sub(1, Ordering::AcqRel);
        self.of_handler.fetch_sub(1, Ordering::AcqRel);
    }
}
