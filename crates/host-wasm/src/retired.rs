//! The instance of the call that ended last, until its memory is cleared.
//!
//! That takes a quarter of a call's time, and no caller waits for it: the answer goes out first. A host keeps one such instance, beyond
//! the slots that its calls have.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError, TryLockError};

use tokio::runtime::Handle;

use crate::code::Code;
use crate::instance::CallInstance;

/// Where a host keeps it.
#[derive(Clone, Default)]
pub struct Retired(Arc<Mutex<Option<CallInstance>>>);

impl Retired {
    /// Takes the instance of a call that has ended, and with it the duty to clear it: soon, when the caller's task waits.
    pub(crate) fn put(&self, mut instance: CallInstance) {
        let Ok(runtime) = Handle::try_current() else { return };
        // One that is being cleared at this moment keeps its place, so that there is never a second beyond the slots.
        let Some(mut place) = self.try_lock() else { return };
        *place = None;
        instance.release_slot();
        *place = Some(instance);
        drop(place);
        let retired = self.clone();
        runtime.spawn(async move { *retired.0.lock().unwrap_or_else(PoisonError::into_inner) = None });
    }

    /// Clears the instance now if it ran this code, so that the next call of the handler finds its memory as it was prepared.
    pub(crate) fn clear_for(&self, code: &Arc<Code>) {
        if let Some(mut place) = self.try_lock()
            && place.as_ref().is_some_and(|instance| instance.runs(code))
        {
            *place = None;
        }
    }

    fn try_lock(&self) -> Option<MutexGuard<'_, Option<CallInstance>>> {
        match self.0.try_lock() {
            Ok(place) => Some(place),
            Err(TryLockError::Poisoned(place)) => Some(place.into_inner()),
            Err(TryLockError::WouldBlock) => None,
        }
    }
}
