//! Judges regular expressions.

use crate::budget::{Budget, MAX_STEPS};
use crate::pattern::{PatternError, PatternSet};

/// The patterns of a schema, and the work that trying them on declared names may take.
pub(super) struct Patterns {
    known: PatternSet,
    budget: Budget,
}

impl Default for Patterns {
    fn default() -> Self {
        Self { known: PatternSet::default(), budget: Budget::new(MAX_STEPS) }
    }
}

impl Patterns {
    pub(super) fn judge(&mut self, pattern: &str) -> Option<PatternError> {
        self.known.compile(pattern).err()
    }

    /// Whether the pattern is known to match. One that takes too long to tell is not.
    pub(super) fn matches(&mut self, pattern: &str, text: &str) -> bool {
        let compiled = self.known.compile(pattern);
        compiled.is_ok_and(|pattern| pattern.is_match(text, &mut self.budget).unwrap_or_default())
    }
}
