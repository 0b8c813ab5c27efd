//! How much of answers and conversations stays in memory. The rest is in the store.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use super::held::HeldBytes;

/// How much of one conversation is kept in memory. Older turns stay in the store.
pub(super) const MAX_CONVERSATION_BYTES: usize = 16 << 20;
/// How much of an idle conversation stays in memory. A larger one is read from the store again.
pub(super) const MAX_IDLE_BYTES: usize = 1 << 20;

/// What answers and conversations take in memory, in bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct MemoryUse {
    /// Events that wait for readers.
    pub answers: usize,
    /// Turns that are kept in memory.
    pub conversations: usize,
}

#[derive(Debug)]
pub(super) struct AnswerMemory {
    max_conversation_bytes: usize,
    answers: Arc<AtomicUsize>,
    conversations: Arc<AtomicUsize>,
}

impl AnswerMemory {
    pub(super) fn new(max_conversation_bytes: usize) -> Self {
        Self { max_conversation_bytes, answers: Arc::default(), conversations: Arc::default() }
    }

    pub(super) fn answer_counter(&self) -> HeldBytes {
        HeldBytes::of(&self.answers)
    }

    pub(super) fn conversation_counter(&self) -> HeldBytes {
        HeldBytes::of(&self.conversations)
    }

    /// Whether conversations take more than they may.
    pub(super) fn is_full(&self) -> bool {
        self.conversations.load(Ordering::Relaxed) > self.max_conversation_bytes
    }

    pub(super) fn used(&self) -> MemoryUse {
        let (answers, conversations) = (&self.answers, &self.conversations);
        MemoryUse {
            answers: answers.load(Ordering::Relaxed),
            conversations: conversations.load(Ordering::Relaxed),
        }
    }
}
