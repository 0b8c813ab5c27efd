//! A store, and a clock that stands still.

use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use quarterdeck_contracts::Store;
use quarterdeck_invitations::WallClock;
use quarterdeck_store::MemoryStore;

/// 10:00 UTC on 12 January 2026.
pub(crate) fn now() -> SystemTime {
    UNIX_EPOCH + Duration::from_secs(1_768_212_000)
}

pub(crate) fn clock() -> WallClock {
    Arc::new(now)
}

pub(crate) fn store() -> Arc<dyn Store> {
    Arc::new(MemoryStore::default())
}
