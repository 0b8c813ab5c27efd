//! Keywords that look at a value and at no other schema.

use std::sync::{Arc, OnceLock};

use jsonschema::Validator;
use serde_json::{Value, json};

use crate::budget::{Budget, BudgetExhausted};
use crate::engine;
use crate::pattern::Pattern;

/// Such a keyword. The validator crate judges all but patterns, and does the same where it judges whole values, so
/// that the two cannot disagree.
#[derive(Debug)]
pub(crate) struct Leaf {
    pub(crate) keyword: String,
    pub(crate) limit: Value,
    /// Steps that one comparison takes.
    steps: u64,
    judge: Judge,
}

/// Steps for each unit of a text that is parsed as a regular expression.
const STEPS_PER_PARSED_UNIT: u64 = 256;

#[derive(Debug)]
enum Judge {
    Pattern(Arc<Pattern>),
    /// Built when it is first asked.
    Crate(OnceLock<Option<Validator>>),
}

impl Leaf {
    pub(super) fn new(keyword: &str, limit: &Value) -> Self {
        let judge = Judge::Crate(OnceLock::new());
        Self { keyword: keyword.to_owned(), limit: limit.clone(), steps: steps(keyword, limit), judge }
    }

    pub(super) fn pattern(source: &str, pattern: Arc<Pattern>) -> Self {
        let (limit, judge) = (Value::String(source.to_owned()), Judge::Pattern(pattern));
        Self { keyword: "pattern".to_owned(), limit, steps: 1, judge }
    }

    /// Steps that it takes for any value.
    pub(super) fn steps(&self) -> u64 {
        self.steps
    }

    /// Steps that it takes for each unit of a value's [`size`], at most.
    pub(super) fn steps_per_unit(&self) -> u64 {
        match &self.judge {
            Judge::Pattern(pattern) => pattern.steps_per_unit(),
            Judge::Crate(_) if self.parses() => STEPS_PER_PARSED_UNIT,
            Judge::Crate(_) => 1,
        }
    }

    pub(crate) fn admits(&self, value: &Value, budget: &mut Budget) -> Result<bool, BudgetExhausted> {
        let length = match value {
            Value::String(text) if self.parses() => {
                text.len() / BYTES_PER_UNIT * STEPS_PER_PARSED_UNIT as usize
            }
            Value::String(text) => text.len() / BYTES_PER_UNIT,
            Value::Array(_) | Value::Object(_) if self.compares() => size(value, budget.left()) as usize,
            _ => 0,
        };
        budget.spend(self.steps + length as u64)?;
        match (&self.judge, value) {
            (Judge::Pattern(pattern), Value::String(text)) => pattern.is_match(text, budget),
            (Judge::Pattern(_), _) => Ok(true),
            (Judge::Crate(judge), _) => {
                let judge = judge.get_or_init(|| {
                    let keyword = &self.keyword;
                    engine::options(None).build(&json!({ keyword: self.limit })).ok()
                });
                Ok(judge.as_ref().is_none_or(|judge| judge.is_valid(value)))
            }
        }
    }

    /// Whether it has a text parsed, which takes longer than to look at it.
    fn parses(&self) -> bool {
        self.keyword == "format" && self.limit == "regex"
    }

    /// Whether it looks at all of a value rather than at its length.
    fn compares(&self) -> bool {
        matches!(self.keyword.as_str(), "enum" | "const" | "uniqueItems")
    }
}

fn steps(keyword: &str, limit: &Value) -> u64 {
    match (keyword, limit) {
        // These are looked up, not compared one by one.
        ("enum", Value::Array(options)) if options.iter().all(Value::is_string) => 1,
        ("enum" | "const", limit) => 1 + size(limit, u64::MAX),
        _ => 1,
    }
}

/// Levels of a value that are measured. Text that is nested deeper does not parse.
const MAX_MEASURED_DEPTH: usize = 128;

/// Bytes of a text that count as one unit of a value's size.
pub(crate) const BYTES_PER_UNIT: usize = 16;

/// How large a value is: its members, items and scalars, and the bytes of its texts by sixteens. It is not counted
/// further than `max`, and larger than any number if it is nested too deeply to count.
pub(crate) fn size(value: &Value, max: u64) -> u64 {
    size_at(value, max, MAX_MEASURED_DEPTH)
}

fn size_at(value: &Value, max: u64, levels: usize) -> u64 {
    let Some(levels) = levels.checked_sub(1) else { return u64::MAX };
    match value {
        Value::Array(items) => size_of_parts(items.iter().map(|item| (0, item)), max, levels),
        Value::Object(members) => {
            size_of_parts(members.iter().map(|(name, member)| (name.len(), member)), max, levels)
        }
        scalar => size_of_scalar(scalar),
    }
}

fn size_of_scalar(scalar: &Value) -> u64 {
    match scalar {
        Value::String(text) => 1 + (text.len() / BYTES_PER_UNIT) as u64,
        _ => 1,
    }
}

/// One more than the sizes of the parts, each with the length of its name.
fn size_of_parts<'v>(parts: impl Iterator<Item = (usize, &'v Value)>, max: u64, levels: usize) -> u64 {
    let mut size: u64 = 1;
    for (name, part) in parts {
        if size > max {
            break;
        }
        let named = size.saturating_add((name / BYTES_PER_UNIT) as u64);
        // Each call is measured, and most of its parts are scalars.
        let part = match part {
            Value::Array(_) | Value::Object(_) => size_at(part, max - size, levels),
            scalar => size_of_scalar(scalar),
        };
        size = named.saturating_add(part);
    }
    size
}
