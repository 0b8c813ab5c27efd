//! What several handlers refuse in the same words.

use jiff::Timestamp;
use quarterdeck_contracts::{ErrorType, ToolError};
use serde_json::json;

/// A refusal of one parameter, in the form that the schema's own refusals have. `message` is for the model.
pub(crate) fn refuse(name: &str, keyword: &str, message: &str) -> ToolError {
    let details = json!([{ "path": format!("/{name}"), "keyword": keyword, "message": message }]);
    ToolError::new(ErrorType::Validation, message).with_details(details)
}

/// A moment. The schema has checked its form; what is left to refuse is one outside the calendar.
pub(crate) fn instant(name: &str, text: &str) -> Result<Timestamp, ToolError> {
    text.parse().map_err(|_| {
        refuse(name, "format", &format!("{name} is not a moment with an offset"))
            .with_suggestion("Write it like 2026-01-13T09:00:00Z or 2026-01-13T10:00:00+01:00.")
    })
}
