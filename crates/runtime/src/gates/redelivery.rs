//! A call that the provider delivers again gets the answer that it had.

use quarterdeck_contracts::ErrorType;

use super::{Decision, Facts, Gate, Recorded, Redelivery, Subject, refuse};

pub(super) struct SeenId;

impl Gate for SeenId {
    fn name(&self) -> &'static str {
        "redelivery"
    }

    fn judge(&self, _: &mut Subject<'_>, facts: &Facts) -> Decision {
        match facts.redelivery {
            Redelivery::New => Decision::Pass,
            Redelivery::Same => Decision::Replay(Recorded::ById),
            Redelivery::Different => refuse(
                ErrorType::Validation,
                "This call id was used for another call; a new call needs a new id.",
            ),
        }
    }
}
