//! What the gates decided about one call.

use std::fmt;

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::{Decision, RecordedAnswer, names};
use crate::latency::{Schedule, ScheduledCall};

/// The name of the latency scheduler, which decides about voice calls that all gates have passed.
const LATENCY: &str = "latency";

/// The decisions of one call, in order. A gate that passed a call on unchanged leaves no step, unless there is something
/// to explain about it.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Trace {
    /// The decisions of gates that did not just pass it on.
    pub steps: Vec<Step>,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Step {
    pub gate: String,
    pub decision: GateOutcome,
    /// Details, depending on the decision.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub detail: Option<Value>,
}

/// What a gate did with a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[expect(missing_docs, reason = "the names say it")]
pub enum GateOutcome {
    Changed,
    Reserved,
    Replayed,
    Refused,
    Asked,
    Approved,
    /// It was decided how the call is waited for.
    Scheduled,
    /// It had nothing to object to, which leaves a step only where that has a reason.
    Passed,
    /// Another had answered before it, which leaves no step either.
    NotReached,
}

/// What one gate had to say about a call, be it nothing. It holds no argument of the call but those that a gate has
/// lowered, so it may be shown to anyone.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct GateExplanation<'a> {
    pub gate: &'static str,
    pub verdict: GateOutcome,
    /// Details, depending on the decision.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub note: Option<&'a Value>,
}

impl Trace {
    pub(super) fn note(&mut self, gate: &'static str, decision: &Decision) {
        let (decision, detail) = match decision {
            Decision::Pass => return,
            Decision::Change(clamped) => (
                GateOutcome::Changed,
                Some(json!({ clamped.parameter: { "asked": clamped.asked, "given": clamped.given } })),
            ),
            Decision::Reserve(limit) => (GateOutcome::Reserved, Some(json!(limit))),
            Decision::Replay(which) => (GateOutcome::Replayed, Some(json!(which.as_str()))),
            Decision::Refuse(error) => (GateOutcome::Refused, Some(json!(error.kind))),
            Decision::Confirm(reason) => (GateOutcome::Asked, reason.conditions.clone()),
            Decision::Waive(why) => (GateOutcome::Passed, Some(why.clone())),
        };
        self.steps.push(Step { gate: gate.to_owned(), decision, detail });
    }

    /// Adds a refusal of the store, which decides about a reservation after the gates.
    pub(crate) fn refused_by_store(&mut self, gate: &str, detail: Value) {
        let decision = GateOutcome::Refused;
        self.steps.push(Step { gate: gate.to_owned(), decision, detail: Some(detail) });
    }

    /// Adds how a voice call is waited for, which is decided after the gates.
    pub(crate) fn scheduled(&mut self, scheduled: &ScheduledCall) {
        let decision = match scheduled.schedule {
            Schedule::Refuse => GateOutcome::Refused,
            Schedule::Inline | Schedule::Filler | Schedule::Background => GateOutcome::Scheduled,
        };
        self.steps.push(Step { gate: LATENCY.to_owned(), decision, detail: Some(json!(scheduled)) });
    }

    /// The trace of the same call after the user has approved it.
    pub(crate) fn approved(mut self) -> Self {
        // Why the user was asked stays with it.
        let detail = self.steps.iter().find(|step| step.decision == GateOutcome::Asked);
        let detail = detail.and_then(|step| step.detail.clone());
        self.steps.retain(|step| step.decision != GateOutcome::Asked);
        let gate = super::Gate::name(&super::confirmation::ConfirmationGate).to_owned();
        self.steps.push(Step { gate, decision: GateOutcome::Approved, detail });
        self
    }

    /// Every gate in its order, those that passed the call on included; of a voice call that has passed them also how it is
    /// waited for.
    pub fn explain(&self) -> Vec<GateExplanation<'_>> {
        let answered_by = self.answered_by();
        let mut is_over = false;
        let each = names().map(|gate| {
            // The store decides after the gate.
            let step = self.steps.iter().rev().find(|step| step.gate == gate);
            let verdict = match step {
                Some(step) => step.decision,
                None if is_over => GateOutcome::NotReached,
                None => GateOutcome::Passed,
            };
            is_over |= answered_by == Some(gate);
            GateExplanation { gate, verdict, note: step.and_then(|step| step.detail.as_ref()) }
        });
        let mut explained = each.to_vec();
        explained.extend(self.steps.iter().find(|step| step.gate == LATENCY).map(|step| GateExplanation {
            gate: LATENCY,
            verdict: step.decision,
            note: step.detail.as_ref(),
        }));
        explained
    }

    /// The gate that answered instead of the handler.
    pub fn answered_by(&self) -> Option<&str> {
        let last = self.steps.last()?;
        matches!(last.decision, GateOutcome::Replayed | GateOutcome::Refused | GateOutcome::Asked)
            .then_some(last.gate.as_str())
    }
}

impl RecordedAnswer {
    fn as_str(self) -> &'static str {
        match self {
            Self::ById => "the same id",
            Self::ByContent => "the same content in this turn",
            Self::Undelivered => "an equal write that was not delivered yet",
        }
    }
}

impl fmt::Display for GateOutcome {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Changed => "changed",
            Self::Reserved => "reserved a slot",
            Self::Replayed => "answered from the record",
            Self::Refused => "refused",
            Self::Asked => "needs the user's approval",
            Self::Approved => "approved by the user",
            Self::Scheduled => "scheduled",
            Self::Passed => "passed",
            Self::NotReached => "not reached",
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn step(gate: &str, decision: GateOutcome, detail: Option<Value>) -> Step {
        Step { gate: gate.into(), decision, detail }
    }

    fn describe(trace: &Trace) -> String {
        let each = trace.explain();
        each.iter().map(|said| format!("{}: {}\n", said.gate, said.verdict)).collect()
    }

    #[test]
    fn every_gate_is_explained_those_that_passed_and_those_that_were_not_asked() {
        let refused = step("budget", GateOutcome::Refused, Some(json!("BUDGET_EXCEEDED")));
        let trace = Trace { steps: vec![refused] };
        let said = describe(&trace);
        assert!(said.contains("duplicate: passed\nbudget: refused\nclamp: not reached\n"), "{said}");
        let shown = json!(trace.explain());
        assert_eq!(shown[0], json!({ "gate": "well_formed", "verdict": "passed" }));
        assert_eq!(shown[6], json!({ "gate": "budget", "verdict": "refused", "note": "BUDGET_EXCEEDED" }));
        assert_eq!(shown[10], json!({ "gate": "confirmation", "verdict": "not_reached" }));
    }

    #[test]
    fn an_approved_call_was_asked_before() {
        let asked = Trace { steps: vec![step("confirmation", GateOutcome::Asked, None)] };
        assert_eq!(asked.answered_by(), Some("confirmation"));
        let approved = asked.approved();
        assert_eq!(approved.steps, [step("confirmation", GateOutcome::Approved, None)]);
        assert_eq!(approved.answered_by(), None);
    }

    #[test]
    fn the_store_decides_after_the_gates() {
        let mut trace = Trace { steps: vec![step("availability", GateOutcome::Reserved, None)] };
        trace.refused_by_store("availability", json!("RATE_LIMIT"));
        assert!(describe(&trace).contains("availability: refused\n"));
    }
}
