//! The host: loads handlers and runs their calls.

use std::collections::HashMap;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{self, RecvTimeoutError};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::{Duration, Instant};

use quarterdeck_contracts::HandlerAnswer;
use quarterdeck_contracts::handler::{
    BoxFuture, Context, Handler, HandlerHost, HandlerToLoad, HostError, HostHealth, HostObserver, Limits,
};
use serde_json::Value;

use crate::call::{BUSY, Call};
use crate::config::HostConfig;
use crate::engine_pool::{EnginePool, HostState};
use crate::fetch::{Fetcher, ToolFetcher};
use crate::handler_status::{HandlerStatus, HostMonitor};
use crate::limits::{Control, TimeLimit};
use crate::program::{HostModules, Program};
use crate::thread_pool::{Job, PoolLimits, ThreadPool};

/// How long loading waits for a thread, and for an engine that is being interrupted.
const LOAD_TIMEOUT: Duration = Duration::from_secs(10);

/// Runs JavaScript handlers, each call in a fresh engine of its own.
///
/// Futures of its handlers are polled on a Tokio runtime with time (and I/O, for `fetch`). Dropping the host stops
/// what runs and joins its threads.
///
/// What authors may rely on:
///
/// - The top level of a module runs once for each call, when its engine is made: before the call, and by the
///   system's clock. Capabilities, timers and `fetch` work only inside `execute`.
/// - Capability requests that a handler began and did not await are finished before its answer is handed out, as
///   long as its time lasts. Timers and fetches that it left behind are not.
/// - A promise that nothing can settle any more (no request, timer or fetch is open) ends the call at once; any other
///   one, at the deadline.
/// - Time spent waiting for a thread counts. A call that got none before its deadline gets
///   [`HostError::Busy`]: nothing was run.
/// - A call that still holds its thread a second after its deadline, inside a native function of the engine that
///   cannot be interrupted, takes its handler out of service: calls get [`HostError::Quarantined`] until one on
///   trial has ended in time, or an operator has lifted it. Other handlers are not affected.
pub struct JsHost {
    // Dropped first: work that still runs refers to the rest.
    pool: ThreadPool,
    shared: Arc<HostState>,
    host_modules: Arc<HostModules>,
    fetcher: Arc<Fetcher>,
    calls: Arc<AtomicUsize>,
    statuses: Mutex<HashMap<(String, u64), Weak<HandlerStatus>>>,
}

/// What a host holds at this moment.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct HostStats {
    /// Calls in progress.
    pub calls: usize,
    /// Engines that exist: in calls, in a pool, or being torn down.
    pub engines: usize,
    /// Engines that are ready or being made.
    pub pooled: usize,
    /// Threads that run handlers, but for stuck ones that were replaced.
    pub threads: usize,
    /// Threads that are stuck inside the engine.
    pub stuck: usize,
}

impl JsHost {
    /// Starts a host.
    pub fn new(config: HostConfig) -> Result<Self, HostError> {
        let host_modules = Arc::new(HostModules::compile().map_err(HostError::Unloadable)?);
        let fetcher = Arc::new(Fetcher::new(&config.fetch).map_err(HostError::Unloadable)?);
        let pool = ThreadPool::new(PoolLimits {
            threads: config.threads.max(1),
            max_threads: config.max_threads.max(config.threads).max(1),
            max_threads_per_handler: config.max_threads_per_handler.max(1),
            max_stuck_threads: config.max_stuck_threads,
            max_queue: config.max_queue,
            max_queue_per_handler: share_of(config.max_queue),
            stack_bytes: config.stack_bytes,
        });
        let shared = Arc::new(HostState::new(Arc::new(config), pool.queue().clone()));
        Ok(Self { pool, shared, host_modules, fetcher, calls: Arc::default(), statuses: Mutex::default() })
    }

    /// What the host holds at this moment.
    pub fn stats(&self) -> HostStats {
        HostStats {
            calls: self.calls.load(Ordering::Relaxed),
            engines: self.shared.tracker.engines(),
            pooled: self.shared.pooled.load(Ordering::Relaxed),
            threads: self.pool.queue().threads(),
            stuck: self.shared.monitor.stuck(),
        }
    }

    /// The account of a handler. Another source is another handler, with a record of its own: what was mended is
    /// called again at once.
    fn status(&self, handler: HandlerToLoad<'_>) -> Arc<HandlerStatus> {
        let mut hasher = DefaultHasher::new();
        handler.files.hash(&mut hasher);
        let tool_id = handler.metadata.tool_id.as_str();
        let mut statuses = self.statuses();
        statuses.retain(|_, status| status.strong_count() > 0);
        let known = statuses.entry((tool_id.to_owned(), hasher.finish())).or_default();
        if let Some(status) = known.upgrade() {
            return status;
        }
        let status = HandlerStatus::open(tool_id, &self.shared.monitor, self.shared.config.first_quarantine);
        *known = Arc::downgrade(&status);
        status
    }

    fn statuses(&self) -> MutexGuard<'_, HashMap<(String, u64), Weak<HandlerStatus>>> {
        self.statuses.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Makes the first engine of a handler on a thread of the pool, where even a top level that never returns
    /// blocks no other handler.
    fn first_engine(
        &self,
        program: &Arc<Program>,
        status: &Arc<HandlerStatus>,
    ) -> Result<crate::engine::Engine, HostError> {
        let (sender, receiver) = mpsc::sync_channel(1);
        let (shared, program) = (self.shared.clone(), program.clone());
        let allowed = self.shared.config.load_timeout;
        let make = move || {
            let control = Arc::new(Control::until(Instant::now() + allowed));
            let _ = sender.send(shared.make(&program, control));
        };
        let job = Job { status: status.clone(), limit: TimeLimit::Within(allowed), call: None };
        self.shared.queue.resume(job, Box::new(make)).map_err(|_| BUSY)?;
        let end = Instant::now() + allowed + LOAD_TIMEOUT;
        loop {
            match receiver.recv_timeout(Duration::from_millis(100)) {
                Ok(made) => return made,
                // It is stuck in the engine, and will not answer.
                Err(RecvTimeoutError::Timeout) if status.quarantine().is_none() && Instant::now() < end => {}
                Err(_) => return Err(HostError::Unloadable("its top level takes too long".into())),
            }
        }
    }
}

/// Engines at work see it and stop; then the pool is dropped, which joins its threads.
impl Drop for JsHost {
    fn drop(&mut self) {
        self.shared.tracker.close();
    }
}

impl HandlerHost for JsHost {
    fn load(&self, handler: HandlerToLoad<'_>) -> Result<Arc<dyn Handler>, HostError> {
        let program = Arc::new(Program::compile(handler, self.host_modules.clone())?);
        let fetcher = self.fetcher.for_tool(handler.metadata).map_err(HostError::Unloadable)?;
        let status = self.status(handler);
        let first = self.first_engine(&program, &status)?;
        let pool = EnginePool::open(program, status, self.shared.clone(), first);
        Ok(Arc::new(JsHandler {
            pool,
            shared: self.shared.clone(),
            fetcher: Arc::new(fetcher),
            calls: self.calls.clone(),
        }))
    }

    fn health(&self) -> HostHealth {
        let monitor: &HostMonitor = &self.shared.monitor;
        let statuses: Vec<_> = self.statuses().values().filter_map(Weak::upgrade).collect();
        let mut quarantines: Vec<_> = statuses.iter().filter_map(|status| status.quarantine()).collect();
        quarantines.sort_by(|one, other| one.tool_id.cmp(&other.tool_id));
        HostHealth { stuck_threads: monitor.stuck(), quarantines_total: monitor.quarantines(), quarantines }
    }

    fn lift_quarantine(&self, tool_id: &str) -> bool {
        let statuses: Vec<_> = self.statuses().values().filter_map(Weak::upgrade).collect();
        let lifted = statuses.iter().filter(|status| status.tool_id == tool_id && status.lift());
        lifted.count() > 0
    }

    fn observe(&self, observer: Arc<dyn HostObserver>) {
        self.shared.monitor.observe(observer);
    }
}

/// A handler in JavaScript.
struct JsHandler {
    pool: Arc<EnginePool>,
    shared: Arc<HostState>,
    fetcher: Arc<ToolFetcher>,
    calls: Arc<AtomicUsize>,
}

impl Handler for JsHandler {
    fn run(
        &self,
        args: Value,
        context: Arc<dyn Context>,
        limits: Limits,
    ) -> BoxFuture<Result<HandlerAnswer, HostError>> {
        let since = Instant::now();
        let status = &self.pool.status;
        let Some(slot) = CallSlot::new(&self.calls, status, self.shared.config.max_calls) else {
            return Box::pin(std::future::ready(Err(BUSY)));
        };
        let permit = match status.admit(self.shared.config.max_stuck_threads) {
            Ok(permit) => permit,
            Err(refusal) => return Box::pin(std::future::ready(Err(refusal))),
        };
        let call = Call {
            pool: self.pool.clone(),
            shared: self.shared.clone(),
            fetcher: self.fetcher.clone(),
            context,
            limits,
            since,
            permit,
            warnings: Arc::default(),
        };
        Box::pin(async move {
            let _slot = slot;
            call.run(args).await
        })
    }
}

/// A place among the calls that may be in progress.
///
/// A call that finds none is refused rather than made to wait: the calls that hold the places may be waiting for
/// this very one.
struct CallSlot {
    calls: Arc<AtomicUsize>,
    status: Arc<HandlerStatus>,
}

impl CallSlot {
    fn new(calls: &Arc<AtomicUsize>, status: &Arc<HandlerStatus>, max_calls: usize) -> Option<Self> {
        if !status.count_call(share_of(max_calls)) {
            return None;
        }
        let add = |calls: usize| (calls < max_calls).then_some(calls + 1);
        if calls.fetch_update(Ordering::Relaxed, Ordering::Relaxed, add).is_err() {
            status.uncount_call();
            return None;
        }
        Some(Self { calls: calls.clone(), status: status.clone() })
    }
}

impl Drop for CallSlot {
    fn drop(&mut self) {
        self.calls.fetch_sub(1, Ordering::Relaxed);
        self.status.uncount_call();
    }
}

/// What one handler may have of something that all share: a quarter is left for the others.
fn share_of(all: usize) -> usize {
    all - all / 4
}
