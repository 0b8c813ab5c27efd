//! How the validator crate is set up, the same everywhere.

use jsonschema::{Draft, PatternOptions, ValidationOptions};

use crate::formats::Format;

/// Steps a pattern with look-around or back-references may take on one string. The crate's own default is ten times
/// this, which lets one hostile string hold a core for most of a second.
const BACKTRACK_LIMIT: usize = 100_000;

/// Draft 2020-12, formats asserted, nothing fetched.
pub(crate) fn options() -> ValidationOptions<'static> {
    jsonschema::options()
        .with_draft(Draft::Draft202012)
        .should_validate_formats(true)
        .with_keyword("format", |_, name, _| {
            let known = name.as_str().and_then(Format::find);
            Ok(Box::new(known.unwrap_or(Format::Hint)))
        })
        .with_pattern_options(PatternOptions::fancy_regex().backtrack_limit(BACKTRACK_LIMIT))
}
