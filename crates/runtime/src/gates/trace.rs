//! What gates said about one call.

use std::fmt;

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::{Decision, Recorded};

/// The decisions of one call, in order. A gate that passed a call on unchanged leaves no step.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Trace {
    /// Those that said something.
    pub steps: Vec<Step>,
}

/// What one gate said.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Step {
    /// The gate.
    pub gate: String,
    /// What it did.
    pub decision: Decided,
    /// What exactly.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub detail: Option<Value>,
}

/// What a gate did with a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[expect(missing_docs, reason = "the names say it")]
pub enum Decided {
    Changed,
    Reserved,
    Replayed,
    Refused,
    Asked,
}

impl Trace {
    pub(super) fn note(&mut self, gate: &'static str, decision: &Decision) {
        let (decision, detail) = match decision {
            Decision::Pass => return,
            Decision::Change(clamped) => (
                Decided::Changed,
                Some(json!({ clamped.parameter: { "asked": clamped.asked, "given": clamped.given } })),
            ),
            Decision::Reserve(limit) => (Decided::Reserved, Some(json!(limit))),
            Decision::Replay(which) => (Decided::Replayed, Some(json!(which.as_str()))),
            Decision::Refuse(error) => (Decided::Refused, Some(json!(error.kind))),
            Decision::Ask => (Decided::Asked, None),
        };
        self.steps.push(Step { gate: gate.to_owned(), decision, detail });
    }

    /// Notes a refusal of the store, which has the last word on a reservation.
    pub(crate) fn refused_by_store(&mut self, gate: &str, detail: Value) {
        let decision = Decided::Refused;
        self.steps.push(Step { gate: gate.to_owned(), decision, detail: Some(detail) });
    }

    /// The gate that answered instead of the handler.
    pub fn answered_by(&self) -> Option<&str> {
        let last = self.steps.last()?;
        matches!(last.decision, Decided::Replayed | Decided::Refused | Decided::Asked)
            .then_some(last.gate.as_str())
    }
}

impl Recorded {
    fn as_str(self) -> &'static str {
        match self {
            Self::ById => "the same id",
            Self::ByContent => "the same content in this turn",
            Self::Undelivered => "an equal write that nobody has received yet",
        }
    }
}

impl fmt::Display for Decided {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Changed => "changed",
            Self::Reserved => "reserved a slot",
            Self::Replayed => "answered from the record",
            Self::Refused => "refused",
            Self::Asked => "asks a person",
        })
    }
}
