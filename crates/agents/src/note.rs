//! What a model is told behind the person's back.

use quarterdeck_contracts::{Outcome, ToolResponse};

/// How much of what a call has done is told.
const LONGEST_DATA: usize = 500;

/// Notes, in the form that the prompt explains.
pub(crate) fn as_note(notes: &[String]) -> String {
    let lines: Vec<_> = notes.iter().map(|note| format!("[Note: {note}]")).collect();
    lines.join("\n")
}

/// What a call came to that could not be answered where it was made.
pub(crate) fn late(name: &str, response: &ToolResponse) -> String {
    let outcome = serde_json::to_string(&response.for_model()).unwrap_or_default();
    format!("An earlier call of {name} has come to this: {outcome}")
}

/// What a call has done, for whoever may not know any more that it was made.
pub(crate) fn done(name: &str, response: &ToolResponse) -> Option<String> {
    let Outcome::Success(data) = &response.outcome else { return None };
    let data = data.to_string();
    Some(format!("{name} was done: {}", &data[..data.floor_char_boundary(LONGEST_DATA)]))
}
