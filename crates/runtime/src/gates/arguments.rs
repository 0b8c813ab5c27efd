//! The arguments are what the tool's schema says.

use super::{Decision, Facts, Gate, Subject};
use crate::envelope::refused;
use crate::redact::Secrets;

pub(super) struct Arguments;

impl Gate for Arguments {
    fn name(&self) -> &'static str {
        "arguments"
    }

    fn judge(&self, call: &mut Subject<'_>, _: &Facts) -> Decision {
        let Some(tool) = call.tool else { return Decision::Pass };
        match tool.parameters.admit(call.args) {
            Ok(_) => Decision::Pass,
            Err(violations) => {
                let mut refusal = refused(&violations);
                Secrets::of(tool.metadata, call.args).hide_in_error(&mut refusal);
                Decision::Refuse(Box::new(refusal))
            }
        }
    }
}
