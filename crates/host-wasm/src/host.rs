//! The host: loads handlers and runs their calls.

use std::sync::{Arc, OnceLock};

use quarterdeck_contracts::HandlerAnswer;
use quarterdeck_contracts::handler::{
    BoxFuture, Context, Handler, HandlerHost, HandlerToLoad, HostError, Limits,
};
use serde_json::Value;
use tokio::sync::Semaphore;

use crate::answer;
use crate::call::Calls;
use crate::call_slot::{CallCount, CallSlot};
use crate::call_state::{BodyForm, InputForm, Language, Returns};
use crate::code::Code;
use crate::config::HostConfig;
use crate::engine::WasmEngine;
use crate::fetch::Fetcher;
use crate::interface::MAX_MEMORY_BYTES;
use crate::retired::Retired;
use crate::step::Threads;

const PLAIN_MODULES: Language = Language {
    input: InputForm::Call,
    returns: Returns::Answer,
    bodies: BodyForm::InResult,
    waits_for_signal: true,
};

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
/// Compiled code looks at the clock in every loop and function, and no instruction takes longer
/// than to fill the memory that an instance may have, so that nothing holds a thread much past its deadline.
pub struct WasmHost {
    config: Arc<HostConfig>,
    started: OnceLock<Result<Started, String>>,
    threads: Arc<Semaphore>,
    calls: CallCount,
    retired: Retired,
}

/// What a host has from its first handler on.
#[derive(Clone)]
struct Started {
    engine: Arc<WasmEngine>,
    fetcher: Arc<Fetcher>,
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
        Self {
            config: Arc::new(config),
            started: OnceLock::new(),
            threads,
            calls: CallCount::default(),
            retired: Retired::default(),
        }
    }

    /// What the host holds at this moment.
    pub fn stats(&self) -> HostStats {
        let started = self.started.get().and_then(|started| started.as_ref().ok());
        HostStats {
            instances: self.calls.get(),
            modules: started.map_or(0, |started| started.engine.compiled()),
            free_threads: self.threads.available_permits(),
        }
    }

    fn started(&self) -> Result<Started, HostError> {
        let start = || {
            let engine = Arc::new(WasmEngine::new(&self.config, |_| Ok(()))?);
            Ok(Started { engine, fetcher: Arc::new(Fetcher::new(&self.config.fetch)) })
        };
        self.started.get_or_init(start).clone().map_err(HostError::Unloadable)
    }
}

impl HandlerHost for WasmHost {
    fn load(&self, handler: HandlerToLoad<'_>) -> Result<Arc<dyn Handler>, HostError> {
        let bytes = handler.files.get(handler.entry);
        let bytes = bytes.ok_or_else(|| HostError::Unloadable(format!("{} is not there", handler.entry)))?;
        let Started { engine, fetcher } = self.started()?;
        let code = engine.code(bytes).map_err(HostError::Unloadable)?;
        let fetcher = fetcher.for_tool(handler.metadata).map_err(HostError::Unloadable)?;
        let of_handler = Arc::new(Semaphore::new(self.config.max_threads_per_handler.max(1)));
        let calls = Calls {
            engine,
            language: PLAIN_MODULES,
            config: self.config.clone(),
            threads: Threads { of_handler, of_host: self.threads.clone() },
            fetcher: Arc::new(fetcher),
            retired: self.retired.clone(),
        };
        let (of_handler, of_host) = (CallCount::default(), self.calls.clone());
        Ok(Arc::new(WasmHandler { calls, of_handler, of_host, code }))
    }
}

/// A handler that is a WebAssembly module.
struct WasmHandler {
    calls: Calls,
    /// Its calls in progress, and those of all handlers of the host.
    of_handler: CallCount,
    of_host: CallCount,
    code: Arc<Code>,
}

impl Handler for WasmHandler {
    fn run(
        &self,
        args: Value,
        context: Arc<dyn Context>,
        limits: Limits,
    ) -> BoxFuture<Result<HandlerAnswer, HostError>> {
        let slot = match CallSlot::take(&self.of_handler, &self.of_host, self.calls.config.max_calls) {
            Ok(slot) => slot,
            Err(busy) => return Box::pin(std::future::ready(Err(busy))),
        };
        let of_call = context.clone();
        let read = move |ending, limit_ms| answer::of(ending, limit_ms, &*of_call);
        self.calls.run(slot, self.code.clone(), args, context, limits, read)
    }
}
