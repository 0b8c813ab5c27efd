//! What a model is told behind the person's back.

use quarterdeck_contracts::ToolResponse;

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
