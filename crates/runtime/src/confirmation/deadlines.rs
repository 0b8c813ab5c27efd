//! When confirmations expire, as this process knows it.

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// When the confirmations that this process knows expire, by [`crate::Clock::monotonic`]. One stays listed until its row
/// says what became of it.
#[derive(Debug, Default)]
pub(crate) struct Deadlines(Mutex<HashMap<String, Duration>>);

impl Deadlines {
    pub(super) fn lock(&self) -> MutexGuard<'_, HashMap<String, Duration>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn open(&self, hashed: &str, at: Duration) {
        self.lock().insert(hashed.to_owned(), at);
    }

    pub(crate) fn close(&self, hashed: &str) {
        self.lock().remove(hashed);
    }
}
