//! Threads that run handlers, and the queues before them.
//!
//! A thread is queue only while an engine computes. When all compute and work waits, more threads are added up to
//! a bound: QuickJS cannot be preempted, the operating system's threads can. They leave again when they are idle.
//!
//! Each handler has a queue of its own and a bound on the threads that it holds. A free thread takes up the work of
//! the handler that holds the fewest, and a handler that holds none gets a thread even when all of them are taken,
//! so that no handler can keep another one waiting for good.
//!
//! A native function of the engine may compute for hours and cannot be interrupted. A thread that is still at it a
//! while after its deadline is *stuck*: another takes its place, within a bound, the operating system runs it after
//! everything else and on one processor, and its handler is taken out of service. When it returns it ends.

use std::collections::{HashMap, VecDeque};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use quarterdeck_contracts::handler::{CallFacts, SessionFacts, StuckCall};

use crate::handler_status::HandlerStatus;
use crate::limits::TimeLimit;
use crate::priority::ThreadId;

/// How long work may wait before another thread is added.
const ADD_THREAD_DELAY: Duration = Duration::from_millis(2);
/// How long a thread beyond the usual number stays without work.
const IDLE_THREAD_TIMEOUT: Duration = Duration::from_secs(2);
/// How long closing waits for threads. One that is stuck inside the engine beyond that is left behind.
const SHUTDOWN_TIMEOUT: Duration = Duration::from_secs(5);
/// How long a thread may run on after its deadline. An engine that can be interrupted stops within milliseconds.
const STUCK_GRACE: Duration = Duration::from_secs(1);
/// How often running work is looked at.
const STUCK_CHECK_INTERVAL: Duration = Duration::from_millis(250);
/// Threads beyond the bound, for handlers that hold none.
const MAX_EXTRA_THREADS: usize = 32;

pub(crate) type Run = Box<dyn FnOnce() + Send>;

/// The threads. Dropping it ends them.
pub(crate) struct ThreadPool {
    queue: Arc<Queue>,
    watcher: Option<JoinHandle<()>>,
}

/// Where work waits for a thread.
pub(crate) struct Queue {
    state: Mutex<State>,
    /// Workers wait here for work.
    work: Condvar,
    /// The watcher waits here for reasons to look, and closing for threads to leave.
    change: Condvar,
    limits: PoolLimits,
}

#[derive(Debug, Clone, Copy)]
pub(crate) struct PoolLimits {
    pub(crate) threads: usize,
    pub(crate) max_threads: usize,
    pub(crate) max_threads_per_handler: usize,
    pub(crate) max_stuck_threads: usize,
    pub(crate) max_queue: usize,
    pub(crate) max_queue_per_handler: usize,
    pub(crate) stack_bytes: usize,
}

/// Whose work something is, and how long it may take.
#[derive(Clone)]
pub(crate) struct Job {
    pub(crate) status: Arc<HandlerStatus>,
    pub(crate) limit: TimeLimit,
    /// The call that it belongs to.
    pub(crate) call: Option<CallIds>,
}

/// Which call it is, shared rather than copied: every call makes one, and hardly any is needed.
#[derive(Clone)]
pub(crate) struct CallIds {
    session: Arc<SessionFacts>,
    call: Arc<str>,
}

impl CallIds {
    pub(crate) fn of(facts: &CallFacts) -> Self {
        Self { session: facts.session.clone(), call: facts.call_id.clone() }
    }
}

impl From<CallIds> for StuckCall {
    fn from(ids: CallIds) -> Self {
        Self { session_id: ids.session.id.clone(), turn: ids.session.turn, call_id: ids.call.to_string() }
    }
}

struct Work {
    job: Job,
    run: Run,
    /// What is done instead when the handler goes out of service before the work has started.
    refuse: Option<Run>,
    /// Work is numbered as it comes.
    number: u64,
}

#[derive(Default)]
struct State {
    /// By `HandlerStatus::id`.
    handlers: HashMap<u64, HandlerQueue>,
    /// Calls that have not started.
    starting: usize,
    /// Done when there is nothing else to do.
    background: VecDeque<Work>,
    workers: HashMap<u64, Worker>,
    /// Threads, but for those that were replaced.
    threads: usize,
    idle: usize,
    /// Stuck threads that were replaced.
    replaced: usize,
    /// Counts what was taken up, so that the watcher sees whether anything moves.
    taken: u64,
    queued: u64,
    spawned: u64,
    /// The watcher has nothing to look at and waits to be woken.
    is_watcher_asleep: bool,
    closing: bool,
    handles: Vec<JoinHandle<()>>,
}

/// What one handler holds and waits for.
#[derive(Default)]
struct HandlerQueue {
    running: usize,
    starting: usize,
    ready: VecDeque<Work>,
}

impl HandlerQueue {
    /// Whether the next work may have a thread. What is over runs nothing; an engine that waits behind threads that are
    /// stuck is dropped all the same.
    fn may_take(&self, max: usize) -> bool {
        self.ready.front().is_some_and(|work| self.running < max || work.job.limit.is_over())
    }
}

struct Worker {
    thread: ThreadId,
    running: Option<Running>,
}

struct Running {
    job: Job,
    since: Instant,
    /// When it was first seen to be past its end. The clock alone would blame everything that ran while the machine
    /// was asleep.
    overdue: Option<Instant>,
    stuck: Option<Stuck>,
}

impl Running {
    fn is_stuck(&mut self, now: Instant) -> bool {
        now >= self.job.limit.over_at(self.since)
            && now.saturating_duration_since(*self.overdue.get_or_insert(now)) >= STUCK_GRACE
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Stuck {
    /// Another thread has its place.
    Replaced,
    /// There were too many already.
    InPlace,
}

/// A thread that was just found to be stuck, and what waited for its handler.
struct StuckThread {
    thread: ThreadId,
    job: Job,
    refused: Vec<Work>,
}

/// The queue is full, or closed.
#[derive(Debug)]
pub(crate) struct QueueFull;

impl ThreadPool {
    pub(crate) fn new(limits: PoolLimits) -> Self {
        let queue =
            Arc::new(Queue { state: Mutex::default(), work: Condvar::new(), change: Condvar::new(), limits });
        let watched = queue.clone();
        let watcher = thread::Builder::new().name("js-watch".into()).spawn(move || watched.watch()).ok();
        Self { queue, watcher }
    }

    pub(crate) fn queue(&self) -> &Arc<Queue> {
        &self.queue
    }
}

impl Drop for ThreadPool {
    fn drop(&mut self) {
        let mut state = self.queue.lock();
        state.closing = true;
        let ready: Vec<_> =
            state.handlers.values_mut().map(|queue| std::mem::take(&mut queue.ready)).collect();
        let abandoned = (ready, std::mem::take(&mut state.background));
        self.queue.work.notify_all();
        self.queue.change.notify_all();
        drop(state);
        drop(abandoned);
        if let Some(watcher) = self.watcher.take() {
            let _ = watcher.join();
        }
        let end = Instant::now() + SHUTDOWN_TIMEOUT;
        let mut state = self.queue.lock();
        while state.threads > 0 && Instant::now() < end {
            state = wait(&self.queue.change, state, end.saturating_duration_since(Instant::now()));
        }
        let are_all_gone = state.threads == 0 && state.replaced == 0;
        let handles = std::mem::take(&mut state.handles);
        drop(state);
        if are_all_gone {
            for handle in handles {
                let _ = handle.join();
            }
        }
    }
}

impl Queue {
    /// Queues the start of a call, if there is room. `refuse` is done in its place when the handler goes out of
    /// service in the meantime.
    pub(crate) fn start(self: &Arc<Self>, job: Job, run: Run, refuse: Run) -> Result<(), QueueFull> {
        let mut state = self.lock();
        let of_handler = state.handlers.get(&job.status.id).map_or(0, |queue| queue.starting);
        let is_full =
            state.starting >= self.limits.max_queue || of_handler >= self.limits.max_queue_per_handler;
        if state.closing || is_full {
            return Err(QueueFull);
        }
        state.make_ready(job, run, Some(refuse));
        self.wake(state);
        Ok(())
    }

    /// Queues the rest of a call that had started. There is always room: calls are bounded when they start.
    pub(crate) fn resume(self: &Arc<Self>, job: Job, run: Run) -> Result<(), QueueFull> {
        let mut state = self.lock();
        if state.closing {
            return Err(QueueFull);
        }
        state.make_ready(job, run, None);
        self.wake(state);
        Ok(())
    }

    /// Queues work that no caller waits for. A thread that is at work does it when it has nothing else to do:
    /// waking another one now would take a processor from the caller whose answer is due.
    pub(crate) fn run_in_background(self: &Arc<Self>, job: Job, run: Run) {
        let mut state = self.lock();
        if state.closing {
            return;
        }
        let number = state.next_number();
        state.background.push_back(Work { job, run, refuse: None, number });
        if state.idle == state.threads {
            self.wake(state);
        }
    }

    pub(crate) fn threads(&self) -> usize {
        self.lock().threads
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn wake(self: &Arc<Self>, mut state: MutexGuard<'_, State>) {
        if state.idle == 0 && state.threads < self.limits.threads {
            self.add_thread(&mut state);
        } else {
            self.wake_thread_or_watcher(&state);
        }
    }

    /// Wakes an idle thread, or the watcher when there is none.
    fn wake_thread_or_watcher(&self, state: &State) {
        if state.idle > 0 {
            self.work.notify_one();
        } else {
            self.change.notify_all();
        }
    }

    fn add_thread(self: &Arc<Self>, state: &mut State) {
        let queue = self.clone();
        // The engine measures its own stack; what lies under it is for the host's and the engine's native code.
        let stack_size = self.limits.stack_bytes + (2 << 20);
        let number = state.spawned;
        let builder = thread::Builder::new().name("js-worker".into()).stack_size(stack_size);
        if let Ok(handle) = builder.spawn(move || queue.run_worker(number)) {
            state.spawned += 1;
            state.threads += 1;
            state.handles.retain(|handle| !handle.is_finished());
            state.handles.push(handle);
        }
    }

    /// Runs work until the thread should end.
    fn run_worker(&self, number: u64) {
        let worker = Worker { thread: ThreadId::current(), running: None };
        self.lock().workers.insert(number, worker);
        while let Some(run) = self.next(number) {
            // The caller learns of a panic from what the work dropped; the thread goes on.
            let _ = catch_unwind(AssertUnwindSafe(run));
        }
        self.lock().workers.remove(&number);
        self.change.notify_all();
    }

    /// Ends the work that a worker has done, and gives it more; nothing when it should end.
    fn next(&self, number: u64) -> Option<Run> {
        let mut state = self.lock();
        match state.finish_work(number) {
            Some(Stuck::Replaced) => {
                state.replaced -= 1;
                return None;
            }
            // Its priority is low for good.
            Some(Stuck::InPlace) => {
                state.threads -= 1;
                return None;
            }
            None => {}
        }
        loop {
            // Threads beyond the bound are for handlers that hold none.
            let is_extra = state.threads > self.limits.max_threads && !state.has_starved_handler();
            if state.closing || is_extra {
                state.threads -= 1;
                return None;
            }
            if let Some(work) = state.take_ready(self.limits.max_threads_per_handler) {
                state.taken += 1;
                // The rest was queued while this thread still counted as idle, so no other was woken for it.
                if state.has_ready(self.limits.max_threads_per_handler) {
                    self.wake_thread_or_watcher(&state);
                }
                return Some(self.assign(&mut state, number, work));
            }
            if let Some(work) = state.take_background(self.limits.max_threads_per_handler) {
                return Some(self.assign(&mut state, number, work));
            }
            state.idle += 1;
            let since = Instant::now();
            state = wait(&self.work, state, IDLE_THREAD_TIMEOUT);
            state.idle -= 1;
            let has_idled =
                since.elapsed() >= IDLE_THREAD_TIMEOUT && state.is_empty(self.limits.max_threads_per_handler);
            if has_idled && state.threads > self.limits.threads {
                state.threads -= 1;
                return None;
            }
        }
    }

    fn assign(&self, state: &mut State, number: u64, work: Work) -> Run {
        let Work { job, run, .. } = work;
        state.handlers.entry(job.status.id).or_default().running += 1;
        if let Some(worker) = state.workers.get_mut(&number) {
            worker.running = Some(Running { job, since: Instant::now(), overdue: None, stuck: None });
        }
        if std::mem::take(&mut state.is_watcher_asleep) {
            self.change.notify_all();
        }
        run
    }

    /// Whether work waits, no thread is free to take it, and there may be more threads.
    fn needs_thread(&self, state: &State) -> bool {
        let max = self.limits.max_threads;
        state.idle == 0
            && state.has_ready(self.limits.max_threads_per_handler)
            && (state.threads < max
                || (state.has_starved_handler() && state.threads < max + MAX_EXTRA_THREADS))
    }

    /// Adds a thread whenever work waits and nothing moves, and looks for threads that are stuck.
    fn watch(self: Arc<Self>) {
        let mut state = self.lock();
        while !state.closing {
            let found = state.find_stuck(Instant::now(), self.limits.max_stuck_threads);
            if !found.is_empty() {
                drop(state);
                found.into_iter().for_each(StuckThread::report);
                state = self.lock();
                continue;
            }
            if !self.needs_thread(&state) {
                state = self.sleep(state);
                continue;
            }
            let taken = state.taken;
            drop(state);
            thread::sleep(ADD_THREAD_DELAY);
            state = self.lock();
            // Others may have added threads meanwhile, so everything is checked again.
            if state.taken == taken && !state.closing && self.needs_thread(&state) {
                self.add_thread(&mut state);
            }
        }
    }

    /// Waits for something to look at.
    fn sleep<'a>(&self, mut state: MutexGuard<'a, State>) -> MutexGuard<'a, State> {
        let is_running =
            |worker: &Worker| worker.running.as_ref().is_some_and(|running| running.stuck.is_none());
        let is_waiting = |queue: &HandlerQueue| !queue.ready.is_empty();
        if state.workers.values().any(is_running) || state.handlers.values().any(is_waiting) {
            return wait(&self.change, state, STUCK_CHECK_INTERVAL);
        }
        state.is_watcher_asleep = true;
        self.change.wait(state).unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    fn next_number(&mut self) -> u64 {
        self.queued += 1;
        self.queued
    }

    fn make_ready(&mut self, job: Job, run: Run, refuse: Option<Run>) {
        let number = self.next_number();
        let queue = self.handlers.entry(job.status.id).or_default();
        if refuse.is_some() {
            queue.starting += 1;
            self.starting += 1;
        }
        queue.ready.push_back(Work { job, run, refuse, number });
    }

    /// The next work of the handler that holds the fewest threads; of those, what came first.
    fn take_ready(&mut self, max: usize) -> Option<Work> {
        let waiting = self.handlers.values_mut().filter(|queue| queue.may_take(max));
        let first = waiting.filter_map(|queue| Some((queue.running, queue.ready.front()?.number, queue)));
        let (.., queue) = first.min_by_key(|(running, number, _)| (*running, *number))?;
        let work = queue.ready.pop_front()?;
        if work.refuse.is_some() {
            queue.starting -= 1;
            self.starting -= 1;
        }
        Some(work)
    }

    fn take_background(&mut self, max: usize) -> Option<Work> {
        let place = self.background.iter().position(|work| self.may_run(work, max))?;
        self.background.remove(place)
    }

    fn may_run(&self, work: &Work, max: usize) -> bool {
        let queue = self.handlers.get(&work.job.status.id);
        queue.is_none_or(|queue| queue.running < max) || work.job.limit.is_over()
    }

    fn has_ready(&self, max: usize) -> bool {
        self.handlers.values().any(|queue| queue.may_take(max))
    }

    /// Whether work waits whose handler holds no thread.
    fn has_starved_handler(&self) -> bool {
        self.handlers.values().any(|queue| queue.running == 0 && !queue.ready.is_empty())
    }

    fn is_empty(&self, max: usize) -> bool {
        !self.has_ready(max) && !self.background.iter().any(|work| self.may_run(work, max))
    }

    /// Records that a worker is done with what it ran.
    fn finish_work(&mut self, number: u64) -> Option<Stuck> {
        let running = self.workers.get_mut(&number)?.running.take()?;
        let id = running.job.status.id;
        if let Some(queue) = self.handlers.get_mut(&id) {
            queue.running -= 1;
            if queue.running == 0 && queue.ready.is_empty() {
                self.handlers.remove(&id);
            }
        }
        if running.stuck.is_some() {
            running.job.status.uncount_stuck();
        }
        running.stuck
    }

    /// Marks the threads whose work should have ended a while ago.
    fn find_stuck(&mut self, now: Instant, max: usize) -> Vec<StuckThread> {
        let mut found = Vec::new();
        for worker in self.workers.values_mut() {
            let Some(running) = worker.running.as_mut().filter(|running| running.stuck.is_none()) else {
                continue;
            };
            if !running.is_stuck(now) {
                continue;
            }
            running.job.status.count_stuck();
            running.stuck = Some(if self.replaced < max {
                self.replaced += 1;
                self.threads -= 1;
                Stuck::Replaced
            } else {
                Stuck::InPlace
            });
            found.push(StuckThread { thread: worker.thread, job: running.job.clone(), refused: Vec::new() });
        }
        for found in &mut found {
            found.refused = self.take_starts(found.job.status.id);
        }
        found
    }

    /// Takes the calls of a handler that have not started out of its queue.
    fn take_starts(&mut self, id: u64) -> Vec<Work> {
        let Some(queue) = self.handlers.get_mut(&id) else { return Vec::new() };
        let (starts, rest): (Vec<_>, Vec<_>) =
            std::mem::take(&mut queue.ready).into_iter().partition(|work| work.refuse.is_some());
        queue.ready = rest.into();
        queue.starting -= starts.len();
        self.starting -= starts.len();
        starts
    }
}

impl StuckThread {
    fn report(self) {
        self.thread.deprioritise();
        self.job.status.strike(self.job.call.map(StuckCall::from));
        for refuse in self.refused.into_iter().filter_map(|work| work.refuse) {
            refuse();
        }
    }
}

fn wait<'a>(condvar: &Condvar, state: MutexGuard<'a, State>, timeout: Duration) -> MutexGuard<'a, State> {
    condvar.wait_timeout(state, timeout).unwrap_or_else(PoisonError::into_inner).0
}

#[cfg(test)]
mod tests;
