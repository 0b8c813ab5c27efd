//! A call that the user must approve does not run without that approval.

use quarterdeck_contracts::{Confirmation, ErrorType, MAX_SHOWN_CHARS, shown_arguments};

use super::confirm_policy::{ConfirmReason, PolicyVerdict, judge};
use super::{Decision, Facts, Gate, Subject, refuse, refuse_with};

pub(super) struct ConfirmationGate;

impl Gate for ConfirmationGate {
    fn name(&self) -> &'static str {
        "confirmation"
    }

    fn judge(&self, call: &mut Subject<'_>, facts: &Facts) -> Decision {
        let Some(tool) = call.tool else { return Decision::Pass };
        let reason = match tool.metadata.requires_confirmation {
            Confirmation::Never => return Decision::Pass,
            Confirmation::Always => ConfirmReason::default(),
            Confirmation::Policy => match judge(tool.metadata, call.args, facts) {
                PolicyVerdict::Pass(why) => return Decision::Waive(why),
                PolicyVerdict::Ask(reason) => reason,
            },
        };
        // The user would be asked about a call that they never saw the model make.
        if facts.is_nested {
            return refuse(
                ErrorType::ConfirmationRequired,
                format!("{} needs the user's approval and cannot be called by another tool.", call.name),
            );
        }
        let shown = shown_arguments(call.args).chars().count();
        if shown <= MAX_SHOWN_CHARS { Decision::Confirm(reason) } else { cannot_be_shown(call.name, shown) }
    }
}

/// What cannot be read is not approved.
fn cannot_be_shown(name: &str, shown: usize) -> Decision {
    let message = format!(
        "The user has to approve {name}, and its arguments are too long to be shown: {shown} characters of at most \
         {MAX_SHOWN_CHARS}."
    );
    refuse_with(ErrorType::Validation, message, Some("Call it again with shorter arguments.".into()))
}

#[cfg(test)]
mod tests {
    use quarterdeck_contracts::Mode;
    use serde_json::{Value, json};

    use super::super::sample::{decide, facts, tool};
    use super::*;

    fn decision(requires: Value, is_nested: bool) -> String {
        let facts = Facts { is_nested, ..facts(Mode::Text) };
        decide(&ConfirmationGate, &tool(json!({ "requiresConfirmation": requires })), &mut json!({}), &facts)
    }

    #[test]
    fn the_user_is_asked_where_the_tool_says_so() {
        assert_eq!(decision(json!(false), false), "pass");
        assert_eq!(decision(json!(true), false), "ask");
        assert_eq!(decision(json!("policy"), false), "ask");
    }

    #[test]
    fn a_policy_decides_also_about_calls_of_other_tools() {
        let decision = |words: &str, is_nested: bool| {
            let facts = Facts { is_nested, user_words: words.into(), ..facts(Mode::Text) };
            let tool = tool(json!({
                "requiresConfirmation": "policy", "confirmWhen": { "notRequestedThisTurn": true },
                "requestedBy": { "en": ["draw *"] },
            }));
            decide(&ConfirmationGate, &tool, &mut json!({}), &facts)
        };
        assert_eq!(decision("draw a fox", false), "waive");
        assert_eq!(decision("draw a fox", true), "waive");
        assert_eq!(decision("a fox", false), "ask");
        assert!(decision("a fox", true).starts_with("CONFIRMATION_REQUIRED"));
    }

    #[test]
    fn arguments_that_cannot_be_shown_in_full_are_refused_unasked() {
        let decision = |text: String| {
            let tool = tool(json!({ "requiresConfirmation": true }));
            decide(&ConfirmationGate, &tool, &mut json!({ "query": text }), &facts(Mode::Text))
        };
        let around = shown_arguments(&json!({ "query": "" })).chars().count();
        assert_eq!(decision("x".repeat(MAX_SHOWN_CHARS - around)), "ask");
        let too_long = decision("x".repeat(MAX_SHOWN_CHARS - around + 1));
        assert!(too_long.starts_with("VALIDATION: The user has to approve"), "{too_long}");
        assert!(too_long.contains("20001 characters of at most 20000"), "{too_long}");
        // Every mark counts, so that a text of invisible characters does not pass for a short one.
        assert!(decision("\u{200b}".repeat(3_000)).starts_with("VALIDATION"));
    }

    #[test]
    fn a_tool_cannot_call_what_the_user_must_approve() {
        assert_eq!(decision(json!(false), true), "pass");
        for requires in [json!(true), json!("policy")] {
            assert_eq!(
                decision(requires, true),
                "CONFIRMATION_REQUIRED: kb_search needs the user's approval and cannot be called by another tool."
            );
        }
    }
}
