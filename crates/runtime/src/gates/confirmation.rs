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

#[cfg(test)]
mod tests {
    use quarterdeck_contracts::Mode;
    use serde_json::{Value, json};

    use super::super::sample::{facts, says, tool};
    use super::*;

    fn told(requires: Value, is_nested: bool) -> String {
        let facts = Facts { is_nested, ..facts(Mode::Text) };
        says(&PersonsWord, &tool(json!({ "requiresConfirmation": requires })), &mut json!({}), &facts)
    }

    #[test]
    fn a_person_is_asked_where_the_tool_says_so() {
        assert_eq!(told(json!(false), false), "pass");
        assert_eq!(told(json!(true), false), "ask");
        assert_eq!(told(json!("policy"), false), "ask");
    }

    #[test]
    fn a_tool_cannot_call_what_a_person_must_approve() {
        assert_eq!(told(json!(false), true), "pass");
        for requires in [json!(true), json!("policy")] {
            assert_eq!(
                told(requires, true),
                "CONFIRMATION_REQUIRED: kb_search needs a person's approval and cannot be called by another tool."
            );
        }
    }
}
