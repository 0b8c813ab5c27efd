//! The host: loads handlers and runs their calls.

use std::sync::{Arc, OnceLock};

use quarterdeck_contracts::handler::{Handler, HandlerHost, HandlerToLoad, HostError};
use quarterdeck_host_wasm::{CallCount, Fetcher, HostConfig, Retired, WasmEngine};
use tokio::sync::Semaphore;
use wasmtime::Module;

use crate::handler::JsHandler;
use crate::js_engine::{JsEngine, WASM_STACK_BYTES};
use crate::question;

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
pub struct JsHost(Arc<HostParts>);

/// What the handlers of a host share.
pub(crate) struct HostParts {
    pub(crate) config: Arc<HostConfig>,
    started: OnceLock<Result<Started, String>>,
    pub(crate) fetcher: Arc<Fetcher>,
    pub(crate) threads: Arc<Semaphore>,
    pub(crate) calls: CallCount,
    pub(crate) retired: Retired,
}

/// What a host has from the first handler on that is prepared.
#[derive(Clone)]
pub(crate) struct Started {
    pub(crate) engine: Arc<WasmEngine>,
    pub(crate) code: Module,
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
    /// Makes a host. What it needs of the machine is reserved when a handler is prepared.
    pub fn new(config: HostConfig) -> Result<Self, HostError> {
        Ok(Self(Arc::new(HostParts {
            threads: Arc::new(Semaphore::new(config.max_threads.max(1))),
            fetcher: Arc::new(Fetcher::new(&config.fetch)),
            config: Arc::new(config),
            started: OnceLock::new(),
            calls: CallCount::default(),
            retired: Retired::default(),
        })))
    }

    /// What the host holds at this moment.
    pub fn stats(&self) -> HostStats {
        HostStats { calls: self.0.calls.get(), free_threads: self.0.threads.available_permits() }
    }
}

impl HostParts {
    pub(crate) fn started(&self) -> Result<Started, HostError> {
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
        Ok(Started { engine, code })
    }
}

/// Calls that compute see it and stop, and no other begins.
impl Drop for JsHost {
    fn drop(&mut self) {
        self.0.threads.close();
    }
}

impl HandlerHost for JsHost {
    fn load(&self, handler: HandlerToLoad<'_>) -> Result<Arc<dyn Handler>, HostError> {
        Ok(Arc::new(JsHandler::load(&self.0, handler)?))
    }
}

#[cfg(test)]
mod tests;
