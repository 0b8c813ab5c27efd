//! Judges calls. A gate never runs a handler, reads a clock or looks anything up: facts are gathered just before each
//! call, because a second refund in the same turn must see the first.

mod arguments;
mod availability;
mod budget;
mod clamp;
mod confirm_policy;
mod confirmation;
mod duplicate;
mod facts;
mod known_tool;
mod loop_detection;
mod mode;
mod redelivery;
#[cfg(test)]
mod sample;
mod trace;
mod well_formed;

use quarterdeck_contracts::{ErrorType, Metadata, RateLimit, ToolError};
use quarterdeck_schema::Schema;
use serde_json::Value;

pub(crate) use availability::{missing_condition, reads_foreign_text};
pub use confirm_policy::ConfirmReason;
pub use facts::{ClientFacts, Duplicate, Facts, Redelivery};
pub use trace::{GateExplanation, GateOutcome, Step, Trace};

pub use crate::validation::CheckedArguments;
pub(crate) use clamp::clamp;

/// One rule between a model's call and its handler.
///
/// A gate judges from the call and the facts alone and does no I/O, so that any verdict can be reproduced from what
/// was recorded. It may change the arguments, with [`Decision::Change`].
pub(crate) trait Gate: Send + Sync {
    /// Stable name, used in traces and metrics.
    fn name(&self) -> &'static str;

    /// Decides about a call, or passes it on; the first answer wins.
    fn judge(&self, call: &mut Subject<'_>, facts: &Facts) -> Decision;
}

#[derive(Debug)]
pub(crate) enum Decision {
    Pass,
    /// Pass it on with a changed parameter.
    Change(Clamped),
    /// Pass it on, if the store has a slot left.
    Reserve(RateLimit),
    /// It was answered before.
    Replay(RecordedAnswer),
    Refuse(Box<ToolError>),
    /// Only if the user approves it.
    Confirm(ConfirmReason),
    /// Pass it on without the approval that its tool asks for at times. Why.
    Waive(Value),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RecordedAnswer {
    /// That of the same provider id.
    ById,
    /// That of the same content in this turn.
    ByContent,
    /// That of an equal write of an earlier turn that was not delivered yet.
    Undelivered,
}

/// A parameter that was lowered.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Clamped {
    pub parameter: &'static str,
    /// What the model asked for.
    pub asked: u64,
    /// What it gets.
    pub given: u64,
}

/// The call that is judged.
pub struct Subject<'a> {
    pub name: &'a str,
    /// The arguments, which gates may change.
    pub args: &'a mut Value,
    /// The tool, if there is one of that name.
    pub tool: Option<ToolView<'a>>,
    /// The result of checking its arguments, where that was done beforehand because it takes long.
    pub judged: Option<&'a CheckedArguments>,
    /// The names that exist.
    pub known: &'a dyn Fn() -> Vec<String>,
}

#[derive(Clone, Copy)]
pub struct ToolView<'a> {
    pub metadata: &'a Metadata,
    /// The compiled schema of its arguments.
    pub parameters: &'a Schema,
    /// The same schema as its author wrote it.
    pub source: &'a Value,
}

/// The decision of all gates together.
#[derive(Debug)]
pub enum Verdict {
    Allow(Allowed),
    /// It was answered before.
    Replay(RecordedAnswer),
    Refuse(Box<ToolError>),
    /// The user must approve it first.
    Confirm(ConfirmReason),
}

/// What an allowed call takes along.
#[derive(Debug, Default)]
pub struct Allowed {
    pub clamped: Vec<Clamped>,
    /// The slot it needs when it executes.
    pub rate_limit: Option<RateLimit>,
}

/// The gates, in their order. A gate's file and type have its name (`loop` is a keyword, hence `loop_detection`); the
/// type ends in `Gate` where a contract type has the name already.
const GATES: [&dyn Gate; 11] = [
    &well_formed::WellFormed,
    &known_tool::KnownTool,
    &mode::ModeGate,
    &redelivery::RedeliveryGate,
    &loop_detection::LoopDetection,
    &duplicate::DuplicateGate,
    &budget::Budget,
    &clamp::Clamp,
    &arguments::Arguments,
    &availability::AvailabilityGate,
    &confirmation::ConfirmationGate,
];

/// The names of the gates, in their order.
pub fn names() -> [&'static str; 11] {
    GATES.map(|gate| gate.name())
}

/// Asks every gate in turn; the first answer wins.
pub fn judge(call: &mut Subject<'_>, facts: &Facts) -> (Verdict, Trace) {
    let mut allowed = Allowed::default();
    let mut trace = Trace::default();
    for gate in GATES {
        let decision = gate.judge(call, facts);
        trace.note(gate.name(), &decision);
        match decision {
            Decision::Pass | Decision::Waive(_) => {}
            Decision::Change(clamped) => allowed.clamped.push(clamped),
            Decision::Reserve(limit) => allowed.rate_limit = Some(limit),
            Decision::Replay(which) => return (Verdict::Replay(which), trace),
            Decision::Refuse(error) => return (Verdict::Refuse(error), trace),
            Decision::Confirm(reason) => return (Verdict::Confirm(reason), trace),
        }
    }
    (Verdict::Allow(allowed), trace)
}

/// Whether a call that this gate answered has used the turn's budget: those before the budget's own gate have not. What
/// is no gate decides after all of them.
pub fn uses_budget(gate: &str) -> bool {
    let place = |name: &str| GATES.iter().position(|gate| gate.name() == name);
    place(gate).is_none_or(|place_of_gate| Some(place_of_gate) > place(budget::Budget.name()))
}

/// A refusal. Nothing ran, so nothing was changed.
fn refuse(kind: ErrorType, message: impl Into<String>) -> Decision {
    refuse_with(kind, message, None)
}

fn refuse_with(kind: ErrorType, message: impl Into<String>, suggestion: Option<String>) -> Decision {
    Decision::Refuse(Box::new(ToolError {
        partial_side_effects: Some(false),
        suggestion,
        ..ToolError::new(kind, message)
    }))
}

#[cfg(test)]
mod tests;
