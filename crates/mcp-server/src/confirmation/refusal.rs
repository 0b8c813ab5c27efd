//! What a model is told of a call that was not approved. None of it approves anything.

use quarterdeck_contracts::{ErrorType, ToolError};
use quarterdeck_runtime::OpenConfirmation;
use rmcp::ErrorData;

use super::seal::StateError;

const SUGGESTION: &str = "Call it again without `requestState`; the user will be asked.";

/// The confirmation that a repeated call is answered with is not open any more.
pub(super) fn lapsed(tool: &str) -> ToolError {
    let message = format!("The question whether {tool} may run has expired. Nothing was done.");
    let suggestion = "Call it again if it is still wanted, with another idempotency key if you sent one.";
    ToolError::new(ErrorType::ConfirmationExpired, message).with_suggestion(suggestion)
}

/// The state that a client has brought was not sealed for this call.
pub(super) fn not_sealed_here() -> ErrorData {
    ErrorData::invalid_params(format!("{} {SUGGESTION}", StateError::Invalid), None)
}

/// The decision that a client has brought does not count any more.
pub(super) fn invalid(error: StateError) -> ToolError {
    let kind = match error {
        StateError::Invalid => ErrorType::ConfirmationInvalid,
        StateError::Expired => ErrorType::ConfirmationExpired,
    };
    ToolError::new(kind, error.to_string()).with_suggestion(SUGGESTION)
}

/// The user has to decide on a page of ours.
pub(super) fn approve_at(open: &OpenConfirmation, url: &str) -> ToolError {
    let tool = &open.request.tool;
    let minutes = open.time_left.as_secs().div_ceil(60).max(1);
    let message = format!(
        "The user must approve {tool} first, and this client cannot ask. Tell the user to open {url} and to decide there \
         within {minutes} min. Nothing was done."
    );
    let suggestion = "After the user has approved it there, make the same call again; it then runs once.";
    ToolError::new(ErrorType::ConfirmationRequired, message).with_suggestion(suggestion)
}

/// There is no way to the user.
pub(super) fn cannot_ask(tool: &str) -> ToolError {
    let message =
        format!("The user must approve {tool} first, and this client cannot ask. Nothing was done.");
    let suggestion = "Tell the user to use a client that supports elicitation and has signed in.";
    ToolError::new(ErrorType::ConfirmationRequired, message).with_suggestion(suggestion)
}

/// More questions are open than may be.
pub(super) fn too_many(tool: &str) -> ToolError {
    let message =
        format!("The user must approve {tool} first, and too many questions are open. Nothing was done.");
    let error = ToolError::new(ErrorType::RateLimit, message).retryable();
    error.with_suggestion("Wait until the user has decided about the others.")
}
