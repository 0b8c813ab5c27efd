//! How many partial results one execution may send, how large and how fast.

use std::time::{Duration, Instant};

use serde_json::Value;

const MAX_CHUNK_BYTES: usize = 64 * 1024;
const MAX_CHUNKS: usize = 1_000;
const MAX_BYTES: usize = 4 << 20;
/// Chunks that may come at once.
const BURST: u32 = 20;
/// How long it takes until one more may come.
const INTERVAL: Duration = Duration::from_millis(50);

/// What one execution has sent so far.
#[derive(Debug, Default)]
pub(super) struct PartialResults {
    chunks: usize,
    bytes: usize,
    /// When all of the burst is available again.
    full_at: Option<Instant>,
    has_refused: bool,
}

/// Why a chunk is not passed on.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct ChunkRefusal {
    pub(super) reason: &'static str,
    /// Whether no other was refused before.
    pub(super) is_first: bool,
}

impl PartialResults {
    /// Counts a chunk, or refuses it.
    pub(super) fn admit(&mut self, chunk: &Value, now: Instant) -> Option<ChunkRefusal> {
        let bytes = chunk.to_string().len();
        let full_at = self.full_at.unwrap_or(now).max(now);
        let reason = if bytes > MAX_CHUNK_BYTES {
            "partial result dropped: it has more than 64 KiB"
        } else if self.chunks >= MAX_CHUNKS || self.bytes + bytes > MAX_BYTES {
            "partial result dropped: the call has sent too many"
        } else if full_at + INTERVAL > now + INTERVAL * BURST {
            "partial result dropped: they come faster than 20 in a second"
        } else {
            (self.chunks, self.bytes, self.full_at) =
                (self.chunks + 1, self.bytes + bytes, Some(full_at + INTERVAL));
            return None;
        };
        Some(ChunkRefusal { reason, is_first: !std::mem::replace(&mut self.has_refused, true) })
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn partial_results_are_bounded_in_size_number_and_rate() {
        let start = Instant::now();
        let mut partial = PartialResults::default();
        let large = json!("x".repeat(MAX_CHUNK_BYTES));
        assert!(partial.admit(&large, start).is_some_and(|refusal| refusal.is_first));
        assert!(partial.admit(&large, start).is_some_and(|refusal| !refusal.is_first));

        let admitted = (0..100).filter(|_| partial.admit(&json!(1), start).is_none()).count();
        assert_eq!(admitted, 20);
        assert_eq!(partial.admit(&json!(1), start + INTERVAL), None);

        let slowly = (0..2_000).filter(|n| partial.admit(&json!(n), start + INTERVAL * (n + 21)).is_none());
        assert_eq!(slowly.count(), MAX_CHUNKS - 21);
    }

    #[test]
    fn the_bytes_of_all_chunks_are_bounded() {
        let start = Instant::now();
        let mut partial = PartialResults::default();
        let chunk = json!("x".repeat(60 * 1024));
        let admitted = (0..200).filter(|n| partial.admit(&chunk, start + INTERVAL * *n).is_none()).count();
        assert_eq!(admitted, MAX_BYTES / (60 * 1024 + 2));
    }
}
