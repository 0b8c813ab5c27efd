//! The host: loads handlers and runs their calls.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc;
use std::time::{Duration, Instant};

use quarterdeck_contracts::HandlerAnswer;
use quarterdeck_contracts::handler::{
    BoxFuture, Context, Handler, HandlerHost, HandlerToLoad, HostError, Limits,
};
use serde_json::Value;

use crate::call::{BUSY, Call};
use crate::config::HostConfig;
use crate::fetch::Fetcher;
use crate::limits::Control;
use crate::pool::{Pool, Sizes};
use crate::program::{OwnModules, Program};
use crate::stock::{Shared, Stock};

/// Runs JavaScript handlers, each call in an engine of its own that nobody has used before.
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
/// - Time spent waiting for a thread counts. A call that got none before its deadline is told
///   [`HostError::Busy`]: nothing was run.
pub struct JsHost {
    // Dropped first: work that still runs refers to the rest.
    pool: Pool,
    shared: Arc<Shared>,
    own: Arc<OwnModules>,
    fetcher: Arc<Fetcher>,
    calls: Arc<AtomicUsize>,
}

/// What a host holds at this moment.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct HostStats {
    /// Calls under way.
    pub calls: usize,
    /// Engines that live: in calls, in stock, or being taken apart.
    pub engines: usize,
    /// Engines that lie ready or are being made.
    pub stocked: usize,
    /// Threads that run handlers.
    pub threads: usize,
}

impl JsHost {
    /// Starts a host.
    pub fn new(config: HostConfig) -> Result<Self, HostError> {
        let own = Arc::new(OwnModules::compile().map_err(HostError::Unloadable)?);
        let fetcher = Arc::new(Fetcher::new(&config.fetch).map_err(HostError::Unloadable)?);
        let pool = Pool::new(Sizes {
            threads: config.threads.max(1),
            max_threads: config.max_threads.max(config.threads).max(1),
            max_queue: config.max_queue,
            stack: config.stack,
        });
        let shared = Arc::new(Shared::new(Arc::new(config), pool.queue().clone()));
        Ok(Self { pool, shared, own, fetcher, calls: Arc::default() })
    }

    /// What the host holds at this moment.
    pub fn stats(&self) -> HostStats {
        HostStats {
            calls: self.calls.load(Ordering::Relaxed),
            engines: self.shared.life.engines(),
            stocked: self.shared.stocked.load(Ordering::Relaxed),
            threads: self.pool.queue().threads(),
        }
    }

    /// Makes the first engine of a handler on a thread of the pool, where even a top level that never returns
    /// blocks nobody.
    fn first_engine(&self, program: &Arc<Program>) -> Result<crate::engine::Engine, HostError> {
        let (sender, receiver) = mpsc::sync_channel(1);
        let (shared, program) = (self.shared.clone(), program.clone());
        let allowed = self.shared.config.prepare;
        let make = move || {
            let control = Arc::new(Control::until(Instant::now() + allowed));
            let _ = sender.send(shared.make(&program, control));
        };
        self.shared.queue.resume(Box::new(make)).map_err(|_| BUSY)?;
        match receiver.recv_timeout(allowed + Duration::from_secs(10)) {
            Ok(made) => made,
            Err(_) => Err(HostError::Unloadable("its top level takes too long".into())),
        }
    }
}

/// Engines at work see it and stop; then the pool is dropped, which joins its threads.
impl Drop for JsHost {
    fn drop(&mut self) {
        self.shared.life.close();
    }
}

impl HandlerHost for JsHost {
    fn load(&self, handler: HandlerToLoad<'_>) -> Result<Arc<dyn Handler>, HostError> {
        let program = Arc::new(Program::compile(handler, self.own.clone())?);
        let first = self.first_engine(&program)?;
        let stock = Stock::open(program, self.shared.clone(), first);
        Ok(Arc::new(JsHandler {
            stock,
            shared: self.shared.clone(),
            fetcher: self.fetcher.clone(),
            calls: self.calls.clone(),
        }))
    }
}

/// A handler in JavaScript.
struct JsHandler {
    stock: Arc<Stock>,
    shared: Arc<Shared>,
    fetcher: Arc<Fetcher>,
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
        let Some(admission) = Admission::new(&self.calls, self.shared.config.max_calls) else {
            return Box::pin(std::future::ready(Err(BUSY)));
        };
        let call = Call {
            stock: self.stock.clone(),
            shared: self.shared.clone(),
            fetcher: self.fetcher.clone(),
            context,
            limits,
            since,
        };
        Box::pin(async move {
            let _admission = admission;
            call.run(args).await
        })
    }
}

/// A place among the calls that may be under way.
///
/// A call that finds none is refused rather than made to wait: the calls that hold the places may be waiting for
/// this very one.
struct Admission(Arc<AtomicUsize>);

impl Admission {
    fn new(calls: &Arc<AtomicUsize>, most: usize) -> Option<Self> {
        let add = |calls: usize| (calls < most).then_some(calls + 1);
        calls.fetch_update(Ordering::Relaxed, Ordering::Relaxed, add).ok()?;
        Some(Self(calls.clone()))
    }
}

impl Drop for Admission {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}
