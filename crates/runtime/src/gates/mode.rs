//! The tool exists in the session's mode.

use quarterdeck_contracts::{ErrorType, Mode};

use super::{Decision, Facts, Gate, Subject, refuse_with};

pub(super) struct ModeGate;

impl Gate for ModeGate {
    fn name(&self) -> &'static str {
        "mode"
    }

    fn judge(&self, call: &mut Subject<'_>, facts: &Facts) -> Decision {
        let Some(tool) = call.tool else { return Decision::Pass };
        if tool.metadata.allowed_modes.contains(&facts.mode) {
            return Decision::Pass;
        }
        let (here, instead) = match facts.mode {
            Mode::Text => ("text", "In text, answer in the chat without it."),
            Mode::Voice => ("voice", "Offer to do this in the chat after the call."),
        };
        refuse_with(
            ErrorType::ModeRestricted,
            format!("{} is not available in {here} mode.", call.name),
            Some(instead.into()),
        )
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::super::sample::{decide, facts, tool};
    use super::*;

    #[test]
    fn a_tool_of_the_other_mode_is_refused_with_the_way_that_exists_here() {
        let (typed, spoken) = (json!({ "allowedModes": ["text"] }), json!({ "allowedModes": ["voice"] }));
        let decision = |more, mode| decide(&ModeGate, &tool(more), &mut json!({}), &facts(mode));
        assert_eq!(decision(typed.clone(), Mode::Text), "pass");
        assert_eq!(decision(spoken.clone(), Mode::Voice), "pass");
        assert_eq!(
            decision(spoken, Mode::Text),
            "MODE_RESTRICTED: kb_search is not available in text mode. In text, answer in the chat without it."
        );
        assert_eq!(
            decision(typed, Mode::Voice),
            "MODE_RESTRICTED: kb_search is not available in voice mode. Offer to do this in the chat after the call."
        );
    }
}
