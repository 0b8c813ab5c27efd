//! How the validator crate is set up, the same everywhere.

use std::sync::Arc;

use jsonschema::{Draft, Keyword, PatternOptions, ValidationError, ValidationOptions};
use serde_json::Value;

use crate::budget::Budget;
use crate::formats::Format;
use crate::pattern::Pattern;
use crate::plan::Plan;

/// Draft 2020-12, formats asserted, nothing fetched, and patterns matched by the plan's own matcher.
pub(crate) fn options(plan: Option<&Arc<Plan>>) -> ValidationOptions<'static> {
    let plan = plan.cloned();
    jsonschema::options()
        .with_draft(Draft::Draft202012)
        .should_validate_formats(true)
        .with_keyword("format", |_, name, _| {
            let known = name.as_str().and_then(Format::find);
            Ok(Box::new(known.unwrap_or(Format::Hint)))
        })
        .with_keyword("pattern", move |_, source, _| {
            let known =
                plan.as_ref().zip(source.as_str()).and_then(|(plan, source)| plan.patterns.find(source));
            match known {
                Some(pattern) => Ok(Box::new(MatchesPattern(pattern))),
                None => Err(ValidationError::custom("the pattern is not part of the plan")),
            }
        })
        .with_pattern_options(PatternOptions::regex())
}

struct MatchesPattern(Arc<Pattern>);

impl MatchesPattern {
    fn admits(&self, value: &Value) -> bool {
        // The crate judges only where the worst case is known to be small, so there is no budget to run out of.
        let matched = |text| self.0.is_match(text, &mut Budget::new(u64::MAX)).unwrap_or_default();
        value.as_str().is_none_or(matched)
    }
}

impl<'i> Keyword<'i> for MatchesPattern {
    fn validate(&self, value: &'i Value) -> Result<(), ValidationError<'i>> {
        if self.admits(value) { Ok(()) } else { Err(ValidationError::custom("the pattern does not match")) }
    }

    fn is_valid(&self, value: &'i Value) -> bool {
        self.admits(value)
    }
}
