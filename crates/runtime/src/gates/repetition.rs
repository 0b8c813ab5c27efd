//! A model that asks the same thing again and again is told so.

use quarterdeck_contracts::{Category, ErrorType};

use super::{Decision, Facts, Gate, Subject, refuse_with};

/// The call of the same tool with the same arguments that is one too many.
const TOO_MANY: u32 = 3;
/// After so many empty results a retrieval tool is not asked again in the turn.
const EMPTY_ENOUGH: u32 = 2;

pub(super) struct Repetition;

impl Gate for Repetition {
    fn name(&self) -> &'static str {
        "loop"
    }

    fn judge(&self, call: &mut Subject<'_>, facts: &Facts) -> Decision {
        let Some(tool) = call.tool else { return Decision::Pass };
        let nth = facts.identical + 1;
        if nth >= TOO_MANY {
            return refuse_with(
                ErrorType::LoopDetected,
                format!("{} was called {nth} times with the same arguments.", call.name),
                Some("Try another approach or other words.".into()),
            );
        }
        if tool.metadata.category == Category::Retrieval && facts.empty >= EMPTY_ENOUGH {
            return refuse_with(
                ErrorType::LoopDetected,
                format!("{} found nothing twice; the data may not exist.", call.name),
                Some("Use other terms or another tool, or say that you do not know.".into()),
            );
        }
        Decision::Pass
    }
}
