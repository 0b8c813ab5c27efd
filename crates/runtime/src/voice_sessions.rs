//! Who is speaking: which clients have a voice session open.

use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use quarterdeck_contracts::Mode;

/// Counts open voice sessions by client.
#[derive(Debug, Default)]
pub(crate) struct VoiceSessions {
    open: Mutex<HashMap<Arc<str>, usize>>,
    changes: AtomicU64,
}

impl VoiceSessions {
    pub(crate) fn opened(&self, mode: Mode, client: &Arc<str>) {
        if mode == Mode::Voice {
            *self.lock().entry(client.clone()).or_default() += 1;
            self.changes.fetch_add(1, Ordering::Release);
        }
    }

    pub(crate) fn closed(&self, mode: Mode, client: &Arc<str>) {
        if mode != Mode::Voice {
            return;
        }
        let mut open = self.lock();
        if let Some(count) = open.get_mut(client) {
            *count -= 1;
            if *count == 0 {
                open.remove(client);
            }
        }
        self.changes.fetch_add(1, Ordering::Release);
    }

    pub(crate) fn has_open(&self, client: &str) -> bool {
        self.lock().contains_key(client)
    }

    /// Grows whenever a voice session is opened or closed.
    pub(crate) fn changes(&self) -> u64 {
        self.changes.load(Ordering::Acquire)
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, HashMap<Arc<str>, usize>> {
        self.open.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
