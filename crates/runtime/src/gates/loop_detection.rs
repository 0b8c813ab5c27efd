//! Refuses a call that repeats itself within a turn.

use quarterdeck_contracts::{Category, ErrorType};

use super::{Decision, Facts, Gate, Subject, refuse_with};

/// How many calls of one tool with the same arguments in a turn are a loop.
const LOOP_THRESHOLD: u32 = 3;
/// After this many empty results, a retrieval tool is refused for the rest of the turn.
const MAX_EMPTY_RESULTS: u32 = 2;

pub(super) struct LoopDetection;

impl Gate for LoopDetection {
    fn name(&self) -> &'static str {
        "loop"
    }

    fn judge(&self, call: &mut Subject<'_>, facts: &Facts) -> Decision {
        let Some(tool) = call.tool else { return Decision::Pass };
        let nth = facts.identical + 1;
        if nth >= LOOP_THRESHOLD {
            return refuse_with(
                ErrorType::LoopDetected,
                format!("{} was called {nth} times with the same arguments.", call.name),
                Some("Try another approach or other words.".into()),
            );
        }
        if tool.metadata.category == Category::Retrieval && facts.empty >= MAX_EMPTY_RESULTS {
            return refuse_with(
                ErrorType::LoopDetected,
                format!("{} found nothing twice; the data may not exist.", call.name),
                Some("Use other terms or another tool, or say that you do not know.".into()),
            );
        }
        Decision::Pass
    }
}

#[cfg(test)]
mod tests {
    use quarterdeck_contracts::Mode;
    use serde_json::json;

    use super::super::sample::{decide, facts, tool};
    use super::*;

    fn decision(more: serde_json::Value, identical: u32, empty: u32) -> String {
        let facts = Facts { identical, empty, ..facts(Mode::Text) };
        decide(&LoopDetection, &tool(more), &mut json!({}), &facts)
    }

    #[test]
    fn the_third_identical_call_is_a_loop() {
        assert_eq!(decision(json!({}), 0, 0), "pass");
        assert_eq!(decision(json!({}), 1, 0), "pass");
        let third = "LOOP_DETECTED: kb_search was called 3 times with the same arguments. Try another approach or other words.";
        assert_eq!(decision(json!({}), 2, 0), third);
        assert_eq!(decision(json!({ "repeatable": true }), 2, 0), third, "whatever the tool");
        assert_eq!(decision(json!({ "control": true }), 2, 0), third);
        assert!(decision(json!({}), 9, 0).contains("called 10 times"));
    }

    #[test]
    fn a_retrieval_tool_that_was_empty_twice_is_not_asked_again() {
        assert_eq!(decision(json!({}), 0, 1), "pass");
        let empty = "LOOP_DETECTED: kb_search found nothing twice; the data may not exist. Use other terms or another tool, or say that you do not know.";
        assert_eq!(decision(json!({}), 0, 2), empty);
        assert_eq!(decision(json!({}), 1, 3), empty);
        assert_eq!(decision(json!({ "category": "utility" }), 0, 2), "pass", "only retrieval is empty");
    }
}
