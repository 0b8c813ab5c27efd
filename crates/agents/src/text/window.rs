//! How much the model takes: what is configured, until the model says that it is less.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use quarterdeck_contracts::ContextOverflow;

/// The window of one model, in tokens.
#[derive(Debug, Default)]
pub(super) struct Window {
    /// What the model said; 0 as long as it has not.
    told: AtomicUsize,
    /// Whether something was too long for it, with or without a number.
    is_small: AtomicBool,
}

impl Window {
    /// Tokens that a request and its answer may have together.
    pub(super) fn tokens(&self, configured: usize) -> usize {
        match self.told.load(Ordering::Relaxed) {
            0 => configured,
            told => told.min(configured),
        }
    }

    /// Whether the guides of the tools have no place in it.
    pub(super) fn is_small(&self) -> bool {
        self.is_small.load(Ordering::Relaxed)
    }

    /// Remembers that a request was too long, so that the next turn does not fail first.
    pub(super) fn learn(&self, overflow: Option<ContextOverflow>) {
        self.is_small.store(true, Ordering::Relaxed);
        if let Some(limit) = overflow.and_then(|overflow| usize::try_from(overflow.limit).ok()) {
            self.told.store(limit, Ordering::Relaxed);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_model_that_takes_less_than_configured_is_believed() {
        let window = Window::default();
        assert_eq!((window.tokens(8_192), window.is_small()), (8_192, false));
        window.learn(Some(ContextOverflow { limit: 2_048, sent: None }));
        assert_eq!((window.tokens(8_192), window.is_small()), (2_048, true));
        window.learn(Some(ContextOverflow { limit: 100_000, sent: Some(200_000) }));
        assert_eq!(window.tokens(8_192), 8_192);
        window.learn(None);
        assert!(window.is_small());
    }
}
