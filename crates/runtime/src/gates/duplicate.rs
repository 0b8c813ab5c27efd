//! The same call under another id is the same call.

use super::{Decision, Duplicate, Facts, Gate, Recorded, Subject};

pub(super) struct SameContent;

impl Gate for SameContent {
    fn name(&self) -> &'static str {
        "duplicate"
    }

    fn judge(&self, call: &mut Subject<'_>, facts: &Facts) -> Decision {
        let means_twice = call.tool.is_some_and(|tool| tool.metadata.repeatable);
        match facts.duplicate {
            Duplicate::InTurn if !means_twice => Decision::Replay(Recorded::ByContent),
            Duplicate::UndeliveredWrite if !means_twice => Decision::Replay(Recorded::Undelivered),
            _ => Decision::Pass,
        }
    }
}
