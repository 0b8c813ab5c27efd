//! Whether a spoken decision counts.
//!
//! The voice agent hears the user; what the definition and the operator demand is judged here, whatever the agent believes.

use quarterdeck_contracts::{ConfirmBy, ConfirmationAnswer, ErrorType, Mode, ToolError};
use serde_json::json;

use super::decision::SpokenWords;
use super::row::ConfirmationRow;
use crate::clock::epoch_ms;
use crate::envelope::refusal_error;
use crate::session::SessionCore;

/// After how many wrong codes a question is no longer answered by voice: four digits can be guessed.
pub(crate) const MAX_WRONG_CODES: u8 = 3;

/// A transcript whose recogniser is less sure than that is no answer. One that does not say how sure it is must be trusted by
/// the operator who has configured it; the grammar is narrow in any case.
pub const MIN_SPOKEN_CONFIDENCE: f32 = 0.6;

/// Why a spoken decision does not count. The question stays open.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum SpokenRefusal {
    /// The operator has not switched spoken confirmation on.
    Off,
    /// The session is not a call.
    NotInCall,
    /// The tool demands the page.
    PageRequired,
    /// This process has not asked the question.
    NotAsked,
    /// The words were not said between the question and now.
    NotHeardInTime,
    /// The recogniser is not sure of the words.
    Uncertain,
    /// The tool demands a code, and it was not said or is another one.
    WrongCode,
    /// There were too many wrong codes.
    TooManyWrongCodes,
}

impl SpokenRefusal {
    const ALL: [Self; 8] = [
        Self::Off,
        Self::NotInCall,
        Self::PageRequired,
        Self::NotAsked,
        Self::NotHeardInTime,
        Self::Uncertain,
        Self::WrongCode,
        Self::TooManyWrongCodes,
    ];

    /// The name in the audit log and in an error's details.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Off => "off",
            Self::NotInCall => "not_in_call",
            Self::PageRequired => "page_required",
            Self::NotAsked => "not_asked",
            Self::NotHeardInTime => "not_heard_in_time",
            Self::Uncertain => "uncertain",
            Self::WrongCode => "wrong_code",
            Self::TooManyWrongCodes => "too_many_wrong_codes",
        }
    }

    /// The refusal that an error of [`crate::Session::resolve_confirmation`] stands for.
    pub fn of(error: &ToolError) -> Option<Self> {
        let name = error.details.as_ref()?.get("spokenRefusal")?.as_str()?;
        let is_ours = error.kind == ErrorType::ConfirmationRequired;
        Self::ALL.into_iter().find(|refusal| is_ours && refusal.as_str() == name)
    }

    pub(super) fn error(self) -> ToolError {
        let message = match self {
            Self::Off | Self::NotInCall | Self::PageRequired => {
                "This cannot be answered by voice. Answer it on the page."
            }
            Self::TooManyWrongCodes => "There were too many wrong codes. Answer it on the page.",
            Self::WrongCode => "Say the code that is shown, or answer on the page.",
            Self::NotAsked | Self::NotHeardInTime | Self::Uncertain => {
                "That was not taken as an answer. Say it again, or answer on the page."
            }
        };
        ToolError {
            details: Some(json!({ "spokenRefusal": self.as_str() })),
            ..refusal_error(ErrorType::ConfirmationRequired, message.to_owned())
        }
    }
}

/// Judges a spoken decision about an open confirmation, and counts wrong codes.
pub(super) fn judge(
    core: &SessionCore,
    hash: &str,
    row: &ConfirmationRow,
    answer: ConfirmationAnswer,
    words: &SpokenWords,
) -> Result<(), SpokenRefusal> {
    if !core.shared.policy.spoken_confirmation.is_allowed {
        return Err(SpokenRefusal::Off);
    }
    if core.mode != Mode::Voice {
        return Err(SpokenRefusal::NotInCall);
    }
    // A tool that is not known demands the most.
    let confirm_by = core.snapshot.find(&row.tool).map_or(ConfirmBy::Page, |tool| tool.metadata().confirm_by);
    if confirm_by == ConfirmBy::Page {
        return Err(SpokenRefusal::PageRequired);
    }
    // A yes that answered something else is no answer to this question, however late its transcript arrives.
    let heard_ms = epoch_ms(words.heard_at);
    if row.opened_ms.is_none_or(|opened| heard_ms < opened) || heard_ms > epoch_ms(core.now()) {
        return Err(SpokenRefusal::NotHeardInTime);
    }
    if words.confidence.is_some_and(|confidence| confidence.is_nan() || confidence < MIN_SPOKEN_CONFIDENCE) {
        return Err(SpokenRefusal::Uncertain);
    }
    let mut data = core.lock();
    let asked = data.find_confirmation(hash).filter(|confirmation| confirmation.request.is_some());
    let Some(confirmation) = asked else { return Err(SpokenRefusal::NotAsked) };
    if confirm_by == ConfirmBy::Any || answer == ConfirmationAnswer::Deny {
        return Ok(());
    }
    if confirmation.wrong_codes >= MAX_WRONG_CODES {
        return Err(SpokenRefusal::TooManyWrongCodes);
    }
    let code = confirmation.request.as_ref().and_then(|request| request.code.as_ref());
    if code.is_some_and(|code| words.code.as_deref() == Some(code.expose())) {
        return Ok(());
    }
    confirmation.wrong_codes += 1;
    Err(SpokenRefusal::WrongCode)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_refusal_is_found_again_in_its_error_and_in_no_other() {
        for refusal in SpokenRefusal::ALL {
            assert_eq!(SpokenRefusal::of(&refusal.error()), Some(refusal));
            let other = ToolError { kind: ErrorType::Permanent, ..refusal.error() };
            assert_eq!(SpokenRefusal::of(&other), None, "a handler may write what it likes into details");
        }
        assert_eq!(SpokenRefusal::of(&ToolError::new(ErrorType::ConfirmationRequired, "…")), None);
    }
}
