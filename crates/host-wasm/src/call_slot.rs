//! Places for calls.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use quarterdeck_contracts::handler::HostError;

/// The error of a call when there is no place for it.
const BUSY: HostError = HostError::Busy { retry_after_ms: 250 };

/// Calls in progress, of a handler or of a host.
#[derive(Debug, Clone, Default)]
pub struct CallCount(Arc<AtomicUsize>);

impl CallCount {
    /// How many there are.
    pub fn get(&self) -> usize {
        self.0.load(Ordering::Relaxed)
    }

    fn add(&self, max: usize) -> bool {
        let add = |calls: usize| (calls < max).then_some(calls + 1);
        self.0.fetch_update(Ordering::AcqRel, Ordering::Acquire, add).is_ok()
    }

    fn remove(&self) {
        self.0.fetch_sub(1, Ordering::AcqRel);
    }
}

/// A place among the calls that may be in progress, and with it a slot for an instance.
///
/// A call that finds none is refused rather than made to wait: the calls that hold the places may be waiting for this very one.
pub struct CallSlot {
    of_handler: CallCount,
    of_host: CallCount,
}

impl CallSlot {
    /// One handler may have three quarters of the places; the rest is left for the others.
    pub fn take(of_handler: &CallCount, of_host: &CallCount, max_calls: usize) -> Result<Self, HostError> {
        if !of_handler.add(max_calls - max_calls / 4) {
            return Err(BUSY);
        }
        if !of_host.add(max_calls) {
            of_handler.remove();
            return Err(BUSY);
        }
        Ok(Self { of_handler: of_handler.clone(), of_host: of_host.clone() })
    }
}

impl Drop for CallSlot {
    fn drop(&mut self) {
        self.of_host.remove();
        self.of_handler.remove();
    }
}
