//! Notes for the model about what it did not see happen.

use quarterdeck_contracts::{Outcome, ToolResponse};

/// How much of a call's result a note carries.
const MAX_DATA_BYTES: usize = 500;

/// Notes, in the form that the prompt explains.
pub(crate) fn format_notes(notes: &[String]) -> String {
    let lines: Vec<_> = notes.iter().map(|note| format!("[Note: {note}]")).collect();
    lines.join("\n")
}

/// The outcome of a call that could not be answered on the connection that made it.
pub(crate) fn late_answer_note(name: &str, response: &ToolResponse) -> String {
    let outcome = serde_json::to_string(&response.for_model()).unwrap_or_default();
    format!("An earlier call of {name} has come to this: {outcome}")
}

/// Has a model that speaks say the farewell before the call ends.
pub(crate) fn farewell_note(words: &str) -> String {
    format!(
        "The call is about to end. Say this farewell to the user now, in these words and nothing else: {words}"
    )
}

/// What a successful call did, for a model that may have forgotten the call.
pub(crate) fn completed_write_note(name: &str, response: &ToolResponse) -> Option<String> {
    let Outcome::Success(data) = &response.outcome else { return None };
    let data = data.to_string();
    Some(format!("{name} was done: {}", &data[..data.floor_char_boundary(MAX_DATA_BYTES)]))
}
