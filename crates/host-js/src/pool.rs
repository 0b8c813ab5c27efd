//! Threads that run handlers, and the queue before them.
//!
//! A thread is held only while an engine computes. When all compute and work waits, more threads are added up to
//! a bound: QuickJS cannot be preempted, the operating system's threads can. They leave again when they are idle.

use std::collections::VecDeque;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

/// How long work may wait before another thread is added.
const PATIENCE: Duration = Duration::from_millis(2);
/// How long a thread beyond the usual number stays without work.
const LINGER: Duration = Duration::from_secs(2);
/// How long closing waits for threads. One that is stuck inside the engine beyond that is left behind.
const FAREWELL: Duration = Duration::from_secs(5);

pub(crate) type Work = Box<dyn FnOnce() + Send>;

/// The threads. Dropping it ends them.
pub(crate) struct Pool {
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
    sizes: Sizes,
}

#[derive(Debug, Clone, Copy)]
pub(crate) struct Sizes {
    pub(crate) threads: usize,
    pub(crate) max_threads: usize,
    pub(crate) max_queue: usize,
    pub(crate) stack: usize,
}

#[derive(Default)]
struct State {
    ready: VecDeque<Work>,
    /// Calls among `ready` that have not started.
    starting: usize,
    /// Done when there is nothing else to do.
    chores: VecDeque<Work>,
    threads: usize,
    idle: usize,
    /// Counts what was taken from `ready`, so that the watcher sees whether anything moves.
    taken: u64,
    closing: bool,
    handles: Vec<JoinHandle<()>>,
}

/// The queue is full, or closed.
#[derive(Debug)]
pub(crate) struct NoRoom;

impl Pool {
    pub(crate) fn new(sizes: Sizes) -> Self {
        let queue =
            Arc::new(Queue { state: Mutex::default(), work: Condvar::new(), change: Condvar::new(), sizes });
        let watched = queue.clone();
        let watcher = thread::Builder::new().name("js-watch".into()).spawn(move || watched.watch()).ok();
        Self { queue, watcher }
    }

    pub(crate) fn queue(&self) -> &Arc<Queue> {
        &self.queue
    }
}

impl Drop for Pool {
    fn drop(&mut self) {
        let mut state = self.queue.lock();
        state.closing = true;
        let abandoned = (std::mem::take(&mut state.ready), std::mem::take(&mut state.chores));
        self.queue.work.notify_all();
        self.queue.change.notify_all();
        drop(state);
        drop(abandoned);
        if let Some(watcher) = self.watcher.take() {
            let _ = watcher.join();
        }
        let end = Instant::now() + FAREWELL;
        let mut state = self.queue.lock();
        while state.threads > 0 && Instant::now() < end {
            state = wait(&self.queue.change, state, end.saturating_duration_since(Instant::now()));
        }
        let everyone_left = state.threads == 0;
        let handles = std::mem::take(&mut state.handles);
        drop(state);
        if everyone_left {
            for handle in handles {
                let _ = handle.join();
            }
        }
    }
}

impl Queue {
    /// Queues the start of a call, if there is room.
    pub(crate) fn start(self: &Arc<Self>, work: Work) -> Result<(), NoRoom> {
        let mut state = self.lock();
        if state.closing || state.starting >= self.sizes.max_queue {
            return Err(NoRoom);
        }
        state.starting += 1;
        let queue = self.clone();
        state.ready.push_back(Box::new(move || {
            queue.lock().starting -= 1;
            work();
        }));
        self.wake(state);
        Ok(())
    }

    /// Queues the rest of a call that had started. There is always room: calls are bounded when they start.
    pub(crate) fn resume(self: &Arc<Self>, work: Work) -> Result<(), NoRoom> {
        let mut state = self.lock();
        if state.closing {
            return Err(NoRoom);
        }
        state.ready.push_back(work);
        self.wake(state);
        Ok(())
    }

    /// Queues something that nobody waits for. A thread that is at work does it when it has nothing else to do:
    /// waking another one now would take a processor from the caller whose answer is due.
    pub(crate) fn chore(self: &Arc<Self>, work: Work) {
        let mut state = self.lock();
        if state.closing {
            return;
        }
        state.chores.push_back(work);
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
        if state.idle == 0 && state.threads < self.sizes.threads {
            self.add_thread(&mut state);
        } else {
            self.call_for_help(&state);
        }
    }

    /// Wakes an idle thread, or the watcher when there is none.
    fn call_for_help(&self, state: &State) {
        if state.idle > 0 {
            self.work.notify_one();
        } else {
            self.change.notify_all();
        }
    }

    fn add_thread(self: &Arc<Self>, state: &mut State) {
        let queue = self.clone();
        // The engine measures its own stack; what lies under it is for the host's and the engine's native code.
        let stack_size = self.sizes.stack + (2 << 20);
        let builder = thread::Builder::new().name("js-worker".into()).stack_size(stack_size);
        if let Ok(handle) = builder.spawn(move || queue.serve()) {
            state.threads += 1;
            state.handles.retain(|handle| !handle.is_finished());
            state.handles.push(handle);
        }
    }

    /// A worker's life.
    fn serve(&self) {
        while let Some(work) = self.next() {
            // A panic has been told to the caller by what the work dropped; the thread goes on.
            let _ = catch_unwind(AssertUnwindSafe(work));
        }
        let mut state = self.lock();
        state.threads -= 1;
        self.change.notify_all();
        drop(state);
    }

    fn next(&self) -> Option<Work> {
        let mut state = self.lock();
        loop {
            if state.closing {
                return None;
            }
            if let Some(work) = state.ready.pop_front() {
                state.taken += 1;
                // Whoever queued the rest may have counted on this thread, which was still counted as idle.
                if !state.ready.is_empty() {
                    self.call_for_help(&state);
                }
                return Some(work);
            }
            if let Some(work) = state.chores.pop_front() {
                return Some(work);
            }
            state.idle += 1;
            let since = Instant::now();
            state = wait(&self.work, state, LINGER);
            state.idle -= 1;
            let idled = since.elapsed() >= LINGER && state.ready.is_empty() && state.chores.is_empty();
            if idled && state.threads > self.sizes.threads {
                return None;
            }
        }
    }

    /// Whether work waits, nobody is free to take it, and there may be more threads.
    fn is_stuck(&self, state: &State) -> bool {
        !state.ready.is_empty() && state.idle == 0 && state.threads < self.sizes.max_threads
    }

    /// The watcher's life: adds a thread whenever work waits and nothing moves.
    fn watch(self: Arc<Self>) {
        let mut state = self.lock();
        while !state.closing {
            if !self.is_stuck(&state) {
                state = self.change.wait(state).unwrap_or_else(PoisonError::into_inner);
                continue;
            }
            let taken = state.taken;
            drop(state);
            thread::sleep(PATIENCE);
            state = self.lock();
            // Others may have added threads meanwhile, so the whole question is asked again.
            if state.taken == taken && !state.closing && self.is_stuck(&state) {
                self.add_thread(&mut state);
            }
        }
    }
}

fn wait<'a>(condvar: &Condvar, state: MutexGuard<'a, State>, timeout: Duration) -> MutexGuard<'a, State> {
    condvar.wait_timeout(state, timeout).unwrap_or_else(PoisonError::into_inner).0
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc;

    use super::*;

    fn pool(threads: usize, max_threads: usize) -> Pool {
        Pool::new(Sizes { threads, max_threads, max_queue: 1_000, stack: 64 << 10 })
    }

    #[test]
    fn work_queued_in_one_breath_is_all_taken_up_while_threads_may_grow() {
        for _ in 0..100 {
            let pool = pool(2, 8);
            let (sender, receiver) = mpsc::channel();
            let release = Arc::new((Mutex::new(false), Condvar::new()));
            for _ in 0..6 {
                let (sender, release) = (sender.clone(), release.clone());
                let work = move || {
                    sender.send(()).unwrap();
                    let mut released = release.0.lock().unwrap();
                    while !*released {
                        released = release.1.wait(released).unwrap();
                    }
                };
                pool.queue().resume(Box::new(work)).unwrap();
            }
            for _ in 0..6 {
                receiver.recv_timeout(Duration::from_secs(5)).expect("all six run at once");
            }
            *release.0.lock().unwrap() = true;
            release.1.notify_all();
        }
    }

    #[test]
    fn a_panic_ends_its_work_and_not_the_thread() {
        let pool = pool(1, 1);
        let (sender, receiver) = mpsc::channel();
        pool.queue().resume(Box::new(|| panic!("on purpose"))).unwrap();
        pool.queue().resume(Box::new(move || sender.send(()).unwrap())).unwrap();
        receiver.recv_timeout(Duration::from_secs(5)).unwrap();
        assert_eq!(pool.queue().threads(), 1);
    }
}
