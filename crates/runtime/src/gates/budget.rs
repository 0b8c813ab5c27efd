//! A turn has so many calls, and so many of them may look things up.

use quarterdeck_contracts::{Category, ErrorType};

use super::{Decision, Facts, Gate, Subject, refuse_with};

pub(super) struct Budget;

impl Gate for Budget {
    fn name(&self) -> &'static str {
        "budget"
    }

    fn judge(&self, call: &mut Subject<'_>, facts: &Facts) -> Decision {
        let Some(tool) = call.tool else { return Decision::Pass };
        // Ending a call or blocking someone must work when everything else is spent.
        if tool.metadata.control {
            return Decision::Pass;
        }
        let spent =
            if tool.metadata.category == Category::Retrieval && facts.retrieval >= facts.budgets.retrieval {
                counted(facts.budgets.retrieval, "retrieval call")
            } else if facts.calls >= facts.budgets.calls {
                counted(facts.budgets.calls, "call")
            } else {
                return Decision::Pass;
            };
        refuse_with(
            ErrorType::BudgetExceeded,
            format!("This turn's budget of {spent} is spent."),
            Some("Answer with what you have, or ask the person to narrow it down.".into()),
        )
    }
}

fn counted(number: u32, noun: &str) -> String {
    let plural = if number == 1 { "" } else { "s" };
    format!("{number} {noun}{plural}")
}
