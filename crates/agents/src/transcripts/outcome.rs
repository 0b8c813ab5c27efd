//! Whether a turn gave the user an answer.

use quarterdeck_contracts::{Category, ErrorType, Outcome, ToolResponse};
use quarterdeck_runtime::{Snapshot, is_empty_result};

use super::{AnswerOutcome, TranscriptCall};
use crate::turn::Ending;

/// A call as it is kept, by what it came to.
pub(crate) fn transcript_call(
    snapshot: &Snapshot,
    id: &str,
    tool: &str,
    response: Option<&ToolResponse>,
) -> TranscriptCall {
    let is_retrieval =
        snapshot.find(tool).is_some_and(|tool| tool.metadata().category == Category::Retrieval);
    let (ok, error_type, is_empty) = match response.map(|response| &response.outcome) {
        Some(Outcome::Success(data)) => (true, None, is_empty_result(data)),
        Some(Outcome::Failure(error)) => (false, Some(error.kind.as_str().to_owned()), false),
        None => (false, None, false),
    };
    TranscriptCall { id: id.to_owned(), tool: tool.to_owned(), is_retrieval, ok, error_type, is_empty }
}

impl AnswerOutcome {
    /// The outcome of a turn by its ending and its calls. Without an ending the model has said what it had to say.
    pub(crate) fn of(ending: Option<&Ending>, calls: &[&TranscriptCall]) -> Self {
        match ending {
            Some(Ending::Failed | Ending::Empty) => return Self::Error,
            Some(Ending::Filtered) => return Self::Refused,
            // The user has left, or a tool has ended the conversation: nothing was left open.
            Some(Ending::Aborted | Ending::Closed) => return Self::Answered,
            Some(Ending::Answered | Ending::Cut) | None => {}
        }
        let is_found = calls.iter().any(|call| call.ok && !(call.is_retrieval && call.is_empty));
        if calls.is_empty() || is_found {
            return Self::Answered;
        }
        // One that found nothing outweighs another that was refused after it, such as a third try.
        if calls.iter().any(|call| call.ok) {
            return Self::NoEvidence;
        }
        let failed = |kinds: &[ErrorType]| {
            let mut types = calls.iter().filter_map(|call| call.error_type.as_deref());
            types.any(|name| kinds.iter().any(|kind| kind.as_str() == name))
        };
        if failed(&[ErrorType::Transient, ErrorType::Internal, ErrorType::Unavailable]) {
            return Self::Error;
        }
        // What the user has denied, or not yet decided, was not refused to the user.
        let own = [
            ErrorType::ConfirmationDenied,
            ErrorType::ConfirmationRequired,
            ErrorType::ConfirmationExpired,
            ErrorType::Cancelled,
        ];
        let is_open = calls.iter().any(|call| call.error_type.is_none());
        if is_open || failed(&own) { Self::Answered } else { Self::Refused }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn call(is_retrieval: bool, outcome: Result<bool, ErrorType>) -> TranscriptCall {
        let (tool, id) = ("tool".to_owned(), "call".to_owned());
        let error_type = outcome.err().map(|kind| kind.as_str().to_owned());
        let is_empty = outcome == Ok(false);
        TranscriptCall { id, tool, is_retrieval, ok: outcome.is_ok(), error_type, is_empty }
    }

    #[test]
    fn a_turn_is_answered_unless_it_found_nothing_was_refused_or_failed() {
        let (found, nothing) = (call(true, Ok(true)), call(true, Ok(false)));
        let budget = call(true, Err(ErrorType::BudgetExceeded));
        let denied = call(false, Err(ErrorType::ConfirmationDenied));
        let broken = call(false, Err(ErrorType::Transient));
        let done = call(false, Ok(false));
        let check = |calls: &[&TranscriptCall], expected| {
            assert_eq!(AnswerOutcome::of(Some(&Ending::Answered), calls), expected, "{calls:?}");
            assert_eq!(AnswerOutcome::of(Some(&Ending::Failed), calls), AnswerOutcome::Error, "{calls:?}");
        };
        check(&[], AnswerOutcome::Answered);
        check(&[&found], AnswerOutcome::Answered);
        check(&[&nothing, &found], AnswerOutcome::Answered);
        check(&[&nothing], AnswerOutcome::NoEvidence);
        check(&[&nothing, &budget], AnswerOutcome::NoEvidence);
        check(&[&budget], AnswerOutcome::Refused);
        check(&[&denied], AnswerOutcome::Answered);
        check(&[&broken], AnswerOutcome::Error);
        check(&[&done], AnswerOutcome::Answered);
    }
}
