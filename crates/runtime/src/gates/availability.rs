//! The tool's own conditions hold, and it does not run too often.

use quarterdeck_contracts::{Availability, ErrorType};

use super::{Decision, Facts, Gate, Subject, refuse};

pub(super) struct Available;

impl Gate for Available {
    fn name(&self) -> &'static str {
        "availability"
    }

    fn judge(&self, call: &mut Subject<'_>, facts: &Facts) -> Decision {
        let Some(tool) = call.tool else { return Decision::Pass };
        if let Some(reason) = tool.metadata.availability.as_ref().and_then(|asked| missing(asked, facts)) {
            return refuse(ErrorType::Unavailable, format!("{} is not available: {reason}.", call.name));
        }
        match &tool.metadata.rate_limit {
            Some(limit) => Decision::Reserve(limit.clone()),
            None => Decision::Pass,
        }
    }
}

/// The first condition that does not hold.
pub(super) fn missing(asked: &Availability, facts: &Facts) -> Option<String> {
    if asked.authenticated && !facts.client.authenticated {
        return Some("the person has not signed in".into());
    }
    for (claim, allowed) in &asked.claims {
        if !facts.client.claims.get(claim).is_some_and(|value| allowed.contains(value)) {
            return Some(format!("the person's `{claim}` does not allow it"));
        }
    }
    asked
        .requires
        .iter()
        .find(|required| !facts.present.contains(*required))
        .map(|required| format!("`{required}` is not configured"))
}
