//! What answers take in memory, counted where it is held.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

/// Bytes that one part holds, counted among those of all. They are given back when it is dropped.
#[derive(Debug, Default)]
pub(super) struct HeldBytes {
    all: Arc<AtomicUsize>,
    own: usize,
}

impl HeldBytes {
    /// Nothing yet, counted among these.
    pub(super) fn of(all: &Arc<AtomicUsize>) -> Self {
        Self { all: all.clone(), own: 0 }
    }

    pub(super) fn bytes(&self) -> usize {
        self.own
    }

    pub(super) fn add(&mut self, bytes: usize) {
        self.own += bytes;
        self.all.fetch_add(bytes, Ordering::Relaxed);
    }

    pub(super) fn take(&mut self, bytes: usize) {
        let bytes = bytes.min(self.own);
        self.own -= bytes;
        self.all.fetch_sub(bytes, Ordering::Relaxed);
    }

    pub(super) fn set(&mut self, bytes: usize) {
        self.take(self.own);
        self.add(bytes);
    }
}

impl Drop for HeldBytes {
    fn drop(&mut self) {
        self.take(self.own);
    }
}

/// How many bytes something takes when it is written as JSON, which is about what it takes in memory.
pub(super) fn written_bytes(value: &impl serde::Serialize) -> usize {
    let mut count = Counted(0);
    // Nothing of ours fails to be written, and half a count would still be one.
    let _ = serde_json::to_writer(&mut count, value);
    count.0
}

struct Counted(usize);

impl std::io::Write for Counted {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.0 += bytes.len();
        Ok(bytes.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}
