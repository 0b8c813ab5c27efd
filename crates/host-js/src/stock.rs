//! Engines made ahead of time, so that a fresh one for every call costs the caller nothing.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::Instant;

use quarterdeck_contracts::handler::HostError;

use crate::account::{Account, Alarm};
use crate::config::HostConfig;
use crate::engine::{Engine, Life};
use crate::limits::{Control, TimeLimit};
use crate::pool::{Job, Queue};
use crate::program::Program;

/// What all stocks of a host share.
pub(crate) struct Shared {
    pub(crate) config: Arc<HostConfig>,
    pub(crate) queue: Arc<Queue>,
    pub(crate) life: Arc<Life>,
    pub(crate) alarm: Arc<Alarm>,
    /// Engines that lie ready, or are being made to.
    pub(crate) pooled: AtomicUsize,
    stocks: Mutex<Stocks>,
}

struct Stocks {
    list: Vec<Weak<Stock>>,
    swept: Instant,
}

/// The engines that lie ready for one handler.
pub(crate) struct Stock {
    pub(crate) program: Arc<Program>,
    pub(crate) account: Arc<Account>,
    shared: Arc<Shared>,
    shelf: Mutex<Shelf>,
}

struct Shelf {
    engines: Vec<Engine>,
    making: usize,
    last_used: Instant,
}

impl Shared {
    pub(crate) fn new(config: Arc<HostConfig>, queue: Arc<Queue>) -> Self {
        let stocks = Mutex::new(Stocks { list: Vec::new(), swept: Instant::now() });
        Self {
            config,
            queue,
            life: Arc::default(),
            alarm: Arc::default(),
            pooled: AtomicUsize::new(0),
            stocks,
        }
    }

    /// Makes an engine here and now.
    pub(crate) fn make(&self, program: &Arc<Program>, control: Arc<Control>) -> Result<Engine, HostError> {
        Engine::make(program, &self.config, control, &self.life)
    }

    /// Lets go of engines of handlers that nobody calls. Looks at most four times in that period, whenever there
    /// is a call.
    fn sweep(&self) {
        let keep = self.config.keep_stock_for;
        let mut stocks = self.stocks.lock().unwrap_or_else(PoisonError::into_inner);
        if stocks.swept.elapsed() < keep / 4 {
            return;
        }
        stocks.swept = Instant::now();
        stocks.list.retain(|stock| stock.strong_count() > 0);
        let stale: Vec<_> = stocks.list.iter().filter_map(Weak::upgrade).collect();
        drop(stocks);
        for stock in stale {
            let mut shelf = stock.shelf();
            if shelf.last_used.elapsed() >= keep {
                let engines = std::mem::take(&mut shelf.engines);
                self.pooled.fetch_sub(engines.len(), Ordering::Relaxed);
                self.queue.chore(stock.teardown(), Box::new(move || drop(engines)));
            }
        }
    }
}

impl Stock {
    /// Opens a stock with the engine that proved that the handler can be loaded.
    pub(crate) fn open(
        program: Arc<Program>,
        account: Arc<Account>,
        shared: Arc<Shared>,
        first: Engine,
    ) -> Arc<Self> {
        shared.pooled.fetch_add(1, Ordering::Relaxed);
        let shelf = Shelf { engines: vec![first], making: 0, last_used: Instant::now() };
        let stock = Arc::new(Self { program, account, shared: shared.clone(), shelf: Mutex::new(shelf) });
        let mut stocks = shared.stocks.lock().unwrap_or_else(PoisonError::into_inner);
        stocks.list.push(Arc::downgrade(&stock));
        stock
    }

    /// An engine that lies ready, if there is one.
    pub(crate) fn take(&self) -> Option<Engine> {
        let mut shelf = self.shelf();
        shelf.last_used = Instant::now();
        let engine = shelf.engines.pop();
        if engine.is_some() {
            self.shared.pooled.fetch_sub(1, Ordering::Relaxed);
        }
        engine
    }

    /// Orders engines in the place of those that were taken. Not part of taking one: where cores are few, making the
    /// next engine would slow down the call that is waiting for this one.
    pub(crate) fn replenish(self: &Arc<Self>) {
        let mut shelf = self.shelf();
        let wanted = self.shared.config.pooled_per_handler.saturating_sub(shelf.engines.len() + shelf.making);
        for _ in 0..wanted {
            if !self.reserve() {
                break;
            }
            shelf.making += 1;
            let stock = Arc::downgrade(self);
            let shared = self.shared.clone();
            let restock = move || match stock.upgrade() {
                Some(stock) => stock.restock(),
                None => drop(shared.pooled.fetch_sub(1, Ordering::Relaxed)),
            };
            let limit = TimeLimit::Within(self.shared.config.prepare);
            let job = Job { account: self.account.clone(), limit, call: None };
            self.shared.queue.chore(job, Box::new(restock));
        }
        drop(shelf);
        self.shared.sweep();
    }

    /// Takes a place among the engines that may lie ready.
    fn reserve(&self) -> bool {
        let most = self.shared.config.max_stock;
        let reserve = |pooled: usize| (pooled < most).then_some(pooled + 1);
        self.shared.pooled.fetch_update(Ordering::Relaxed, Ordering::Relaxed, reserve).is_ok()
    }

    /// The work of taking an engine apart.
    pub(crate) fn teardown(&self) -> Job {
        Job { account: self.account.clone(), limit: TimeLimit::Teardown, call: None }
    }

    fn restock(&self) {
        let control = Arc::new(Control::until(Instant::now() + self.shared.config.prepare));
        let made = self.shared.make(&self.program, control);
        let mut shelf = self.shelf();
        shelf.making -= 1;
        match made {
            Ok(engine) => shelf.engines.push(engine),
            // The next call makes its own and is told what is wrong.
            Err(_) => drop(self.shared.pooled.fetch_sub(1, Ordering::Relaxed)),
        }
    }

    fn shelf(&self) -> MutexGuard<'_, Shelf> {
        self.shelf.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Stock {
    fn drop(&mut self) {
        let lying = self.shelf().engines.len();
        self.shared.pooled.fetch_sub(lying, Ordering::Relaxed);
    }
}
