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
        // Ending a call or blocking a client must work when the budget is spent.
        if tool.metadata.control {
            return Decision::Pass;
        }
        let spent =
            if tool.metadata.category == Category::Retrieval && facts.retrieval >= facts.budgets.retrieval {
                count_noun(facts.budgets.retrieval, "retrieval call")
            } else if facts.calls >= facts.budgets.calls {
                count_noun(facts.budgets.calls, "call")
            } else {
                return Decision::Pass;
            };
        refuse_with(
            ErrorType::BudgetExceeded,
            format!("This turn's budget of {spent} is spent."),
            Some("Answer with what you have, or ask the user to narrow it down.".into()),
        )
    }
}

fn count_noun(number: u32, noun: &str) -> String {
    let plural = if number == 1 { "" } else { "s" };
    format!("{number} {noun}{plural}")
}

#[cfg(test)]
mod tests {
    use quarterdeck_contracts::Mode;
    use serde_json::json;

    use super::super::sample::{decide, facts, tool};
    use super::*;

    const SPENT: &str = "is spent. Answer with what you have, or ask the user to narrow it down.";

    fn decision(mode: Mode, more: serde_json::Value, calls: u32, retrieval: u32) -> String {
        decide(&Budget, &tool(more), &mut json!({}), &Facts { calls, retrieval, ..facts(mode) })
    }

    #[test]
    fn the_last_call_within_a_budget_passes_and_the_next_does_not() {
        for (mode, calls, retrieval) in [(Mode::Voice, 3, 2), (Mode::Text, 10, 5)] {
            assert_eq!(decision(mode, json!({}), retrieval - 1, retrieval - 1), "pass");
            assert_eq!(
                decision(mode, json!({}), retrieval, retrieval),
                format!("BUDGET_EXCEEDED: This turn's budget of {retrieval} retrieval calls {SPENT}")
            );
            assert_eq!(decision(mode, json!({}), calls - 1, 0), "pass");
            assert_eq!(
                decision(mode, json!({}), calls, 0),
                format!("BUDGET_EXCEEDED: This turn's budget of {calls} calls {SPENT}")
            );
        }
    }

    #[test]
    fn what_does_not_retrieve_needs_no_retrieval_budget() {
        let action = || json!({ "category": "action", "sideEffects": "writes" });
        assert_eq!(decision(Mode::Voice, action(), 2, 2), "pass");
        assert!(decision(Mode::Voice, action(), 3, 0).contains("3 calls"));
    }

    #[test]
    fn session_control_is_never_refused_here() {
        assert_eq!(decision(Mode::Voice, json!({ "control": true }), 1_000, 1_000), "pass");
    }

    #[test]
    fn one_call_is_not_one_calls() {
        let mut facts = facts(Mode::Text);
        facts.budgets.retrieval = 1;
        facts.retrieval = 1;
        let decision = decide(&Budget, &tool(json!({})), &mut json!({}), &facts);
        assert_eq!(decision, format!("BUDGET_EXCEEDED: This turn's budget of 1 retrieval call {SPENT}"));
    }
}
