//! Engines made ahead of time, so that a fresh one for every call costs the caller nothing.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::Instant;

use quarterdeck_contracts::handler::HostError;

use crate::config::HostConfig;
use crate::engine::{Engine, EngineTracker};
use crate::handler_status::{HandlerStatus, HostMonitor};
use crate::limits::{Control, TimeLimit};
use crate::program::Program;
use crate::thread_pool::{Job, Queue};

/// What all engine pools of a host share.
pub(crate) struct HostState {
    pub(crate) config: Arc<HostConfig>,
    pub(crate) queue: Arc<Queue>,
    pub(crate) tracker: Arc<EngineTracker>,
    pub(crate) monitor: Arc<HostMonitor>,
    /// Engines that are ready or being made, of all pools.
    pub(crate) pooled: AtomicUsize,
    pools: Mutex<PoolList>,
}

struct PoolList {
    list: Vec<Weak<EnginePool>>,
    swept_at: Instant,
}

/// The engines that are ready for one handler.
pub(crate) struct EnginePool {
    pub(crate) program: Arc<Program>,
    pub(crate) status: Arc<HandlerStatus>,
    shared: Arc<HostState>,
    idle: Mutex<IdleEngines>,
}

struct IdleEngines {
    engines: Vec<Engine>,
    making: usize,
    last_used: Instant,
}

impl HostState {
    pub(crate) fn new(config: Arc<HostConfig>, queue: Arc<Queue>) -> Self {
        let pools = Mutex::new(PoolList { list: Vec::new(), swept_at: Instant::now() });
        Self {
            config,
            queue,
            tracker: Arc::default(),
            monitor: Arc::default(),
            pooled: AtomicUsize::new(0),
            pools,
        }
    }

    /// Makes an engine here and now.
    pub(crate) fn make(&self, program: &Arc<Program>, control: Arc<Control>) -> Result<Engine, HostError> {
        Engine::make(program, &self.config, control, &self.tracker)
    }

    /// Drops the engines of handlers that are not called. Looks at most four times in that period, whenever there
    /// is a call.
    fn sweep(&self) {
        let keep = self.config.engine_idle_timeout;
        let mut pools = self.pools.lock().unwrap_or_else(PoisonError::into_inner);
        if pools.swept_at.elapsed() < keep / 4 {
            return;
        }
        pools.swept_at = Instant::now();
        pools.list.retain(|pool| pool.strong_count() > 0);
        let stale: Vec<_> = pools.list.iter().filter_map(Weak::upgrade).collect();
        drop(pools);
        for pool in stale {
            let mut idle = pool.idle();
            if idle.last_used.elapsed() >= keep {
                let engines = std::mem::take(&mut idle.engines);
                self.pooled.fetch_sub(engines.len(), Ordering::Relaxed);
                self.queue.run_in_background(pool.teardown(), Box::new(move || drop(engines)));
            }
        }
    }
}

impl EnginePool {
    /// Opens a pool with the engine that proved that the handler can be loaded.
    pub(crate) fn open(
        program: Arc<Program>,
        status: Arc<HandlerStatus>,
        shared: Arc<HostState>,
        first: Engine,
    ) -> Arc<Self> {
        shared.pooled.fetch_add(1, Ordering::Relaxed);
        let idle = IdleEngines { engines: vec![first], making: 0, last_used: Instant::now() };
        let pool = Arc::new(Self { program, status, shared: shared.clone(), idle: Mutex::new(idle) });
        let mut pools = shared.pools.lock().unwrap_or_else(PoisonError::into_inner);
        pools.list.push(Arc::downgrade(&pool));
        pool
    }

    /// An engine that is ready, if there is one.
    pub(crate) fn take(&self) -> Option<Engine> {
        let mut idle = self.idle();
        idle.last_used = Instant::now();
        let engine = idle.engines.pop();
        if engine.is_some() {
            self.shared.pooled.fetch_sub(1, Ordering::Relaxed);
        }
        engine
    }

    /// Orders engines in the place of those that were taken. Not part of taking one: where cores are few, making the
    /// next engine would slow down the call that is waiting for this one.
    pub(crate) fn refill(self: &Arc<Self>) {
        let mut idle = self.idle();
        let wanted = self.shared.config.pooled_per_handler.saturating_sub(idle.engines.len() + idle.making);
        for _ in 0..wanted {
            if !self.reserve() {
                break;
            }
            idle.making += 1;
            let pool = Arc::downgrade(self);
            let shared = self.shared.clone();
            let add_engine = move || match pool.upgrade() {
                Some(pool) => pool.add_engine(),
                None => drop(shared.pooled.fetch_sub(1, Ordering::Relaxed)),
            };
            let limit = TimeLimit::Within(self.shared.config.load_timeout);
            let job = Job { status: self.status.clone(), limit, call: None };
            self.shared.queue.run_in_background(job, Box::new(add_engine));
        }
        drop(idle);
        self.shared.sweep();
    }

    /// Counts one more engine, unless there are as many as may be ready.
    fn reserve(&self) -> bool {
        let max = self.shared.config.max_pooled_engines;
        let reserve = |pooled: usize| (pooled < max).then_some(pooled + 1);
        self.shared.pooled.fetch_update(Ordering::Relaxed, Ordering::Relaxed, reserve).is_ok()
    }

    /// The work of tearing an engine down.
    pub(crate) fn teardown(&self) -> Job {
        Job { status: self.status.clone(), limit: TimeLimit::Teardown, call: None }
    }

    fn add_engine(&self) {
        let control = Arc::new(Control::until(Instant::now() + self.shared.config.load_timeout));
        let made = self.shared.make(&self.program, control);
        let mut idle = self.idle();
        idle.making -= 1;
        match made {
            Ok(engine) => idle.engines.push(engine),
            // The next call makes its own engine and reports what is wrong.
            Err(_) => drop(self.shared.pooled.fetch_sub(1, Ordering::Relaxed)),
        }
    }

    fn idle(&self) -> MutexGuard<'_, IdleEngines> {
        self.idle.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for EnginePool {
    fn drop(&mut self) {
        let ready = self.idle().engines.len();
        self.shared.pooled.fetch_sub(ready, Ordering::Relaxed);
    }
}
