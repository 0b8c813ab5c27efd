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

use crate::account::{Account, Alarm};
use crate::call::{BUSY, Call};
use crate::config::HostConfig;
use crate::fetch::Fetcher;
use crate::limits::{Control, TimeLimit};
use crate::pool::{Job, Pool, Sizes};
use crate::program::{OwnModules, Program};
use crate::stock::{Shared, Stock};

/// How long loading waits for a thread, and for an engine that is being interrupted.
const LOAD_TIMEOUT: Duration = Duration::from_secs(10);

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
/// - A call that still holds its thread a second after its deadline, inside a native function of the engine that
///   cannot be interrupted, takes its handler out of service: calls are told [`HostError::Quarantined`] until one on
///   trial has ended in time, or an operator has lifted it. Other handlers are not affected.
pub struct JsHost {
    // Dropped first: work that still runs refers to the rest.
    pool: Pool,
    shared: Arc<Shared>,
    own: Arc<OwnModules>,
    fetcher: Arc<Fetcher>,
    calls: Arc<AtomicUsize>,
    accounts: Mutex<HashMap<(String, u64), Weak<Account>>>,
}

/// What a host holds at this moment.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct HostStats {
    /// Calls under way.
    pub calls: usize,
    /// Engines that live: in calls, in stock, or being taken apart.
    pub engines: usize,
    /// Engines that lie ready or are being made.
    pub pooled: usize,
    /// Threads that run handlers, but for stuck ones that were replaced.
    pub threads: usize,
    /// Threads that are stuck inside the engine.
    pub stuck: usize,
}

impl JsHost {
    /// Starts a host.
    pub fn new(config: HostConfig) -> Result<Self, HostError> {
        let own = Arc::new(OwnModules::compile().map_err(HostError::Unloadable)?);
        let fetcher = Arc::new(Fetcher::new(&config.fetch).map_err(HostError::Unloadable)?);
        let pool = Pool::new(Sizes {
            threads: config.threads.max(1),
            max_threads: config.max_threads.max(config.threads).max(1),
            max_threads_per_handler: config.max_threads_per_handler.max(1),
            max_stuck_threads: config.max_stuck_threads,
            max_queue: config.max_queue,
            max_queue_per_handler: most_of(config.max_queue),
            stack: config.stack,
        });
        let shared = Arc::new(Shared::new(Arc::new(config), pool.queue().clone()));
        Ok(Self { pool, shared, own, fetcher, calls: Arc::default(), accounts: Mutex::default() })
    }

    /// What the host holds at this moment.
    pub fn stats(&self) -> HostStats {
        HostStats {
            calls: self.calls.load(Ordering::Relaxed),
            engines: self.shared.life.engines(),
            pooled: self.shared.pooled.load(Ordering::Relaxed),
            threads: self.pool.queue().threads(),
            stuck: self.shared.alarm.stuck(),
        }
    }

    /// The account of a handler. Another source is another handler, with a record of its own: what was mended is
    /// called again at once.
    fn account(&self, handler: HandlerToLoad<'_>) -> Arc<Account> {
        let mut hasher = DefaultHasher::new();
        handler.files.hash(&mut hasher);
        let tool_id = handler.metadata.tool_id.as_str();
        let mut accounts = self.accounts();
        accounts.retain(|_, account| account.strong_count() > 0);
        let known = accounts.entry((tool_id.to_owned(), hasher.finish())).or_default();
        if let Some(account) = known.upgrade() {
            return account;
        }
        let account = Account::open(tool_id, &self.shared.alarm, self.shared.config.quarantine);
        *known = Arc::downgrade(&account);
        account
    }

    fn accounts(&self) -> MutexGuard<'_, HashMap<(String, u64), Weak<Account>>> {
        self.accounts.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Makes the first engine of a handler on a thread of the pool, where even a top level that never returns
    /// blocks nobody.
    fn first_engine(
        &self,
        program: &Arc<Program>,
        account: &Arc<Account>,
    ) -> Result<crate::engine::Engine, HostError> {
        let (sender, receiver) = mpsc::sync_channel(1);
        let (shared, program) = (self.shared.clone(), program.clone());
        let allowed = self.shared.config.prepare;
        let make = move || {
            let control = Arc::new(Control::until(Instant::now() + allowed));
            let _ = sender.send(shared.make(&program, control));
        };
        let job = Job { account: account.clone(), limit: TimeLimit::Within(allowed), call: None };
        self.shared.queue.resume(job, Box::new(make)).map_err(|_| BUSY)?;
        let end = Instant::now() + allowed + LOAD_TIMEOUT;
        loop {
            match receiver.recv_timeout(Duration::from_millis(100)) {
                Ok(made) => return made,
                // It is stuck in the engine, and will not answer.
                Err(RecvTimeoutError::Timeout) if account.quarantine().is_none() && Instant::now() < end => {}
                Err(_) => return Err(HostError::Unloadable("its top level takes too long".into())),
            }
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
        let account = self.account(handler);
        let first = self.first_engine(&program, &account)?;
        let stock = Stock::open(program, account, self.shared.clone(), first);
        Ok(Arc::new(JsHandler {
            stock,
            shared: self.shared.clone(),
            fetcher: self.fetcher.clone(),
            calls: self.calls.clone(),
        }))
    }

    fn health(&self) -> HostHealth {
        let alarm: &Alarm = &self.shared.alarm;
        let accounts: Vec<_> = self.accounts().values().filter_map(Weak::upgrade).collect();
        let mut quarantines: Vec<_> = accounts.iter().filter_map(|account| account.quarantine()).collect();
        quarantines.sort_by(|one, other| one.tool_id.cmp(&other.tool_id));
        HostHealth { stuck_threads: alarm.stuck(), quarantines_total: alarm.quarantines(), quarantines }
    }

    fn lift_quarantine(&self, tool_id: &str) -> bool {
        let accounts: Vec<_> = self.accounts().values().filter_map(Weak::upgrade).collect();
        let lifted = accounts.iter().filter(|account| account.tool_id == tool_id && account.lift());
        lifted.count() > 0
    }

    fn observe(&self, observer: Arc<dyn HostObserver>) {
        self.shared.alarm.observe(observer);
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
        let account = &self.stock.account;
        let Some(admission) = Admission::new(&self.calls, account, self.shared.config.max_calls) else {
            return Box::pin(std::future::ready(Err(BUSY)));
        };
        let pass = match account.enter(self.shared.config.max_stuck_threads) {
            Ok(pass) => pass,
            Err(refusal) => return Box::pin(std::future::ready(Err(refusal))),
        };
        let call = Call {
            stock: self.stock.clone(),
            shared: self.shared.clone(),
            fetcher: self.fetcher.clone(),
            context,
            limits,
            since,
            pass,
            warnings: Arc::default(),
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
struct Admission {
    calls: Arc<AtomicUsize>,
    account: Arc<Account>,
}

impl Admission {
    fn new(calls: &Arc<AtomicUsize>, account: &Arc<Account>, most: usize) -> Option<Self> {
        if !account.count_call(most_of(most)) {
            return None;
        }
        let add = |calls: usize| (calls < most).then_some(calls + 1);
        if calls.fetch_update(Ordering::Relaxed, Ordering::Relaxed, add).is_err() {
            account.uncount_call();
            return None;
        }
        Some(Self { calls: calls.clone(), account: account.clone() })
    }
}

impl Drop for Admission {
    fn drop(&mut self) {
        self.calls.fetch_sub(1, Ordering::Relaxed);
        self.account.uncount_call();
    }
}

/// What one handler may have of something that all share: a quarter is left for the others.
fn most_of(all: usize) -> usize {
    all - all / 4
}
