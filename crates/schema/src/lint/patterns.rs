//! Judges regular expressions, and remembers each verdict.

use std::collections::HashMap;

use jsonschema::Validator;
use serde_json::{Value, json};

use crate::{engine, pattern};

/// Compiled patterns by their source.
#[derive(Default)]
pub(super) struct Patterns {
    known: HashMap<String, Result<Validator, PatternFault>>,
}

/// Why a pattern cannot be used.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum PatternFault {
    /// Not an ECMAScript regular expression with the `u` flag.
    Grammar(String),
    /// Correct, but our engine cannot run it within its limits.
    Costly,
}

impl Patterns {
    pub(super) fn judge(&mut self, pattern: &str) -> Option<PatternFault> {
        self.compiled(pattern).as_ref().err().cloned()
    }

    pub(super) fn matches(&mut self, pattern: &str, text: &str) -> bool {
        self.compiled(pattern).as_ref().is_ok_and(|engine| engine.is_valid(&Value::String(text.to_owned())))
    }

    fn compiled(&mut self, pattern: &str) -> &Result<Validator, PatternFault> {
        self.known.entry(pattern.to_owned()).or_insert_with(|| compile(pattern))
    }
}

fn compile(pattern: &str) -> Result<Validator, PatternFault> {
    if pattern::is_too_nested(pattern) {
        return Err(PatternFault::Costly);
    }
    if let Some(reason) = pattern::grammar_fault(pattern) {
        return Err(PatternFault::Grammar(reason));
    }
    engine::options()
        .build(&json!({ "pattern": pattern::translated(pattern) }))
        .map_err(|_| PatternFault::Costly)
}
