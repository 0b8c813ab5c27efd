//! What a person must approve is never run on the model's word alone.

use quarterdeck_contracts::{Confirmation, ErrorType};

use super::{Decision, Facts, Gate, Subject, refuse};

pub(super) struct PersonsWord;

impl Gate for PersonsWord {
    fn name(&self) -> &'static str {
        "confirmation"
    }

    fn judge(&self, call: &mut Subject<'_>, facts: &Facts) -> Decision {
        match call.tool.map(|tool| tool.metadata.requires_confirmation) {
            None | Some(Confirmation::Never) => Decision::Pass,
            // The person would be asked about a call that they never saw the model make.
            Some(_) if facts.is_nested => refuse(
                ErrorType::ConfirmationRequired,
                format!("{} needs a person's approval and cannot be called by another tool.", call.name),
            ),
            Some(Confirmation::Always | Confirmation::Policy) => Decision::Ask,
        }
    }
}
