//! The tool exists in the session's mode.

use quarterdeck_contracts::{ErrorType, Mode};

use super::{Decision, Facts, Gate, Subject, refuse_with};

pub(super) struct AllowedMode;

impl Gate for AllowedMode {
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
