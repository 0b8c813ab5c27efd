//! Regular expressions of ECMAScript, matched in time that is linear in the text.
//!
//! A pattern becomes an automaton. Look-around is judged first, innermost first: one scan of the text finds every
//! position at which it holds, and the automaton around it then asks that table. So a match costs at most the size of
//! the automaton times the length of the text, whatever the pattern, and every step of it is counted. What has no such
//! bound, a back-reference, is refused.

mod charset;
mod grammar;
mod linear;
mod program;
mod scan;
mod set;
mod syntax;
#[cfg(test)]
mod tests;

use std::fmt;

use crate::budget::{Budget, BudgetExhausted};
use crate::plan::BYTES_PER_UNIT;
use program::Program;
use syntax::Parsed;

pub(crate) use grammar::is_too_nested;
pub(crate) use set::PatternSet;

/// Instructions that a pattern's automatons may have together, once counted repetitions are written out.
const MAX_PROGRAM_SIZE: usize = 20_000;

/// Longer patterns are refused before they are parsed: the parser's time grows with the square of a class.
const MAX_PATTERN_BYTES: usize = 16_384;

/// Why a pattern cannot be used.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum PatternError {
    /// Not an ECMAScript regular expression with the `u` flag.
    Grammar(String),
    /// It refers to what a group has matched, for which no matcher has a bound.
    BackReference,
    /// Its automaton would be too large.
    TooLarge,
    /// A part of the grammar that we have no tables for.
    Unsupported(String),
}

impl fmt::Display for PatternError {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Grammar(reason) => {
                write!(formatter, "the pattern is not an ECMAScript regular expression: {reason}")
            }
            Self::BackReference => formatter
                .write_str("the pattern has a back-reference, so the time it takes on a text has no bound"),
            Self::TooLarge => formatter.write_str(
                "the pattern is too large once its repetitions are written out, or nested too deeply",
            ),
            Self::Unsupported(part) => write!(formatter, "the pattern uses {part}, which is not known here"),
        }
    }
}

/// A pattern that is ready to match.
pub(crate) struct Pattern {
    /// One automaton for each look-around, inner ones before those around them, and the whole pattern's at the end.
    programs: Vec<Program>,
    size: usize,
    /// The same pattern for a faster engine, where one can run it.
    linear: Option<regex::Regex>,
}

impl Pattern {
    fn parse(source: &str) -> Result<Parsed, PatternError> {
        if source.len() > MAX_PATTERN_BYTES || is_too_nested(source) {
            return Err(PatternError::TooLarge);
        }
        match grammar::find_error(source) {
            Some(reason) => Err(PatternError::Grammar(reason)),
            None => syntax::parse(source),
        }
    }

    /// An automaton of at most `max_size` instructions, with the faster engine beside it if that `is_wanted`.
    fn compile(parsed: &Parsed, max_size: usize, is_wanted: bool) -> Result<Self, PatternError> {
        let programs = program::compile(parsed, max_size.min(MAX_PROGRAM_SIZE))?;
        let size = programs.iter().map(Program::size).sum();
        Ok(Self { programs, size, linear: is_wanted.then(|| linear::translated(parsed)).flatten() })
    }

    /// Instructions of all its automatons.
    fn size(&self) -> usize {
        self.size
    }

    /// Steps that each unit of a text's size can cost at most. A state takes up to two steps for a character.
    pub(crate) fn steps_per_unit(&self) -> u64 {
        2 * (self.size * BYTES_PER_UNIT) as u64
    }

    /// Whether the pattern matches anywhere in the text.
    pub(crate) fn is_match(&self, text: &str, budget: &mut Budget) -> Result<bool, BudgetExhausted> {
        let worst = (self.size as u64).saturating_mul(text.len() as u64 + 1);
        match &self.linear {
            Some(linear) if budget.spend_spare(worst) => Ok(linear.is_match(text)),
            // Its worst case is rarely met, so it is tried with every step counted before the text is refused.
            _ => scan::is_match(&self.programs, text, budget),
        }
    }
}

impl fmt::Debug for Pattern {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("Pattern").field("size", &self.size).finish_non_exhaustive()
    }
}
