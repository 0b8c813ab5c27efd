//! The same call under another id is the same call.

use super::{Decision, Duplicate, Facts, Gate, RecordedAnswer, Subject};

pub(super) struct DuplicateGate;

impl Gate for DuplicateGate {
    fn name(&self) -> &'static str {
        "duplicate"
    }

    fn judge(&self, call: &mut Subject<'_>, facts: &Facts) -> Decision {
        let means_twice = call.tool.is_some_and(|tool| tool.metadata.repeatable);
        match facts.duplicate {
            Duplicate::InTurn if !means_twice => Decision::Replay(RecordedAnswer::ByContent),
            Duplicate::UndeliveredWrite if !means_twice => Decision::Replay(RecordedAnswer::Undelivered),
            _ => Decision::Pass,
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
    fn an_equal_call_gets_the_answer_of_the_first_unless_twice_means_twice() {
        let decision = |duplicate, repeatable: bool| {
            let facts = Facts { duplicate, ..facts(Mode::Text) };
            decide(&DuplicateGate, &tool(json!({ "repeatable": repeatable })), &mut json!({}), &facts)
        };
        assert_eq!(decision(Duplicate::No, false), "pass");
        assert_eq!(decision(Duplicate::InTurn, false), "replay ByContent");
        assert_eq!(decision(Duplicate::UndeliveredWrite, false), "replay Undelivered");
        for duplicate in [Duplicate::No, Duplicate::InTurn, Duplicate::UndeliveredWrite] {
            assert_eq!(decision(duplicate, true), "pass");
        }
    }
}
