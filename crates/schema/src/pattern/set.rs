//! The patterns of one schema, each compiled once.

use std::collections::HashMap;
use std::sync::Arc;

use super::{Pattern, PatternError};

/// Instructions that the patterns of one schema may have together.
const MAX_TOTAL_SIZE: usize = 200_000;

/// Patterns of one schema that get the faster engine as well, which takes more memory than it tells.
const MAX_LINEAR_ENGINES: usize = 64;

/// Compiled patterns by their source.
#[derive(Debug, Default)]
pub(crate) struct PatternSet {
    known: HashMap<String, Result<Arc<Pattern>, PatternError>>,
    total_size: usize,
    linear_engines: usize,
}

impl PatternSet {
    pub(crate) fn compile(&mut self, source: &str) -> Result<Arc<Pattern>, PatternError> {
        if let Some(known) = self.known.get(source) {
            return known.clone();
        }
        let compiled = self.compiled(source).map(Arc::new);
        self.known.insert(source.to_owned(), compiled.clone());
        compiled
    }

    /// The pattern, if it was compiled before.
    pub(crate) fn find(&self, source: &str) -> Option<Arc<Pattern>> {
        self.known.get(source)?.clone().ok()
    }

    fn compiled(&mut self, source: &str) -> Result<Pattern, PatternError> {
        let parsed = Pattern::parse(source)?;
        let has_engine_left = self.linear_engines < MAX_LINEAR_ENGINES;
        let pattern = Pattern::compile(&parsed, MAX_TOTAL_SIZE - self.total_size, has_engine_left)?;
        self.total_size += pattern.size();
        self.linear_engines += usize::from(pattern.linear.is_some());
        Ok(pattern)
    }
}
