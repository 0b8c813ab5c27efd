//! The clock that interrupts code that computes.
//!
//! Compiled code looks at the engine's epoch in every loop and function, and yields when it has changed. One thread changes it
//! as long as any step runs, and sleeps for good when none has for a while: a server at rest is not woken.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use wasmtime::Engine;

/// Ticks without a step after which the thread sleeps until there is one.
const IDLE_TICKS: u32 = 50;

/// Changes an engine's epoch in a thread of its own, until it is dropped.
pub(crate) struct Ticker {
    state: Arc<State>,
    thread: Option<JoinHandle<()>>,
}

#[derive(Default)]
struct State {
    /// Steps that run.
    steps: AtomicUsize,
    is_parked: AtomicBool,
    is_closed: AtomicBool,
}

impl Ticker {
    pub(crate) fn start(engine: Engine, interval: Duration) -> io::Result<Self> {
        let state = Arc::new(State::default());
        let of_thread = state.clone();
        let thread = thread::Builder::new()
            .name("wasm-ticker".into())
            .spawn(move || of_thread.tick(&engine, interval))?;
        Ok(Self { state, thread: Some(thread) })
    }

    /// Counts a step, and with it the need for ticks, until the result is dropped.
    pub(crate) fn count_step(&self) -> RunningStep {
        self.state.steps.fetch_add(1, Ordering::SeqCst);
        // Either this sees that the thread has parked, or the thread sees the step before it parks.
        if self.state.is_parked.swap(false, Ordering::SeqCst) {
            self.wake();
        }
        RunningStep(self.state.clone())
    }

    fn wake(&self) {
        if let Some(thread) = &self.thread {
            thread.thread().unpark();
        }
    }
}

impl Drop for Ticker {
    fn drop(&mut self) {
        self.state.is_closed.store(true, Ordering::SeqCst);
        self.state.is_parked.store(false, Ordering::SeqCst);
        self.wake();
        if let Some(thread) = self.thread.take() {
            // It does not panic; and if it had, there would be nothing left to stop.
            let _ = thread.join();
        }
    }
}

impl State {
    fn tick(&self, engine: &Engine, interval: Duration) {
        let mut idle_ticks = 0;
        while !self.is_closed.load(Ordering::SeqCst) {
            thread::sleep(interval);
            if self.steps.load(Ordering::SeqCst) > 0 {
                engine.increment_epoch();
                idle_ticks = 0;
                continue;
            }
            idle_ticks += 1;
            if idle_ticks >= IDLE_TICKS {
                self.park();
                idle_ticks = 0;
            }
        }
    }

    fn park(&self) {
        self.is_parked.store(true, Ordering::SeqCst);
        if self.steps.load(Ordering::SeqCst) > 0 || self.is_closed.load(Ordering::SeqCst) {
            self.is_parked.store(false, Ordering::SeqCst);
        }
        // Parking may end without a reason.
        while self.is_parked.load(Ordering::SeqCst) {
            thread::park();
        }
    }
}

/// A step that runs.
pub struct RunningStep(Arc<State>);

impl Drop for RunningStep {
    fn drop(&mut self) {
        self.0.steps.fetch_sub(1, Ordering::SeqCst);
    }
}

#[cfg(test)]
mod tests {
    use std::time::Instant;

    use super::*;

    #[test]
    fn ticker_parks_when_idle_and_wakes_for_the_next_step() {
        let ticker = Ticker::start(Engine::default(), Duration::from_micros(100)).unwrap();
        let until = |is_parked: bool| {
            let end = Instant::now() + Duration::from_secs(10);
            while ticker.state.is_parked.load(Ordering::SeqCst) != is_parked {
                assert!(Instant::now() < end, "parked is still {}", !is_parked);
                thread::yield_now();
            }
        };
        until(true);
        let step = ticker.count_step();
        until(false);
        drop(step);
        until(true);
    }
}
