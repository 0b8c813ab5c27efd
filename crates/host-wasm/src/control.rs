//! When a call has to stop.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Instant;

/// One call's end, as the thread that it computes on sees it.
#[derive(Debug)]
pub(crate) struct Control {
    pub(crate) deadline: Instant,
    stopped: AtomicBool,
}

impl Control {
    pub(crate) fn until(deadline: Instant) -> Arc<Self> {
        Arc::new(Self { deadline, stopped: AtomicBool::new(false) })
    }

    pub(crate) fn is_over(&self) -> bool {
        self.stopped.load(Ordering::Relaxed) || Instant::now() >= self.deadline
    }
}

/// Stops the call when its caller no longer waits for the answer.
pub(crate) struct StopOnDrop(pub(crate) Arc<Control>);

impl Drop for StopOnDrop {
    fn drop(&mut self) {
        self.0.stopped.store(true, Ordering::Relaxed);
    }
}
