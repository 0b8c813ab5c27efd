//! A call that the provider delivers again gets the answer that it had.

use quarterdeck_contracts::ErrorType;

use super::{Decision, Facts, Gate, RecordedAnswer, Redelivery, Subject, refuse};

pub(super) struct RedeliveryGate;

impl Gate for RedeliveryGate {
    fn name(&self) -> &'static str {
        "redelivery"
    }

    fn judge(&self, _: &mut Subject<'_>, facts: &Facts) -> Decision {
        match facts.redelivery {
            Redelivery::New => Decision::Pass,
            Redelivery::Same => Decision::Replay(RecordedAnswer::ById),
            Redelivery::Different => refuse(
                ErrorType::Validation,
                "This call id was used for another call; a new call needs a new id.",
            ),
        }
    }
}

#[cfg(test)]
mod tests {
    use quarterdeck_contracts::Mode;
    use serde_json::json;

    use super::super::sample::{decide, facts, tool};
    use super::*;

    #[test]
    fn an_id_is_answered_once_and_stands_for_one_call() {
        let decision = |redelivery| {
            let facts = Facts { redelivery, ..facts(Mode::Text) };
            // A tool that means each of several equal calls does not mean a frame that comes twice.
            decide(&RedeliveryGate, &tool(json!({ "repeatable": true })), &mut json!({}), &facts)
        };
        assert_eq!(decision(Redelivery::New), "pass");
        assert_eq!(decision(Redelivery::Same), "replay ById");
        assert_eq!(
            decision(Redelivery::Different),
            "VALIDATION: This call id was used for another call; a new call needs a new id."
        );
    }
}
