//! Case files (`*.case.json`): tests that a tool's author writes without writing code.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::Mode;

/// One file: one case or a list of them.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum CaseFile {
    /// An array of cases.
    Many(Vec<Case>),
    /// A single case.
    One(Box<Case>),
}

impl CaseFile {
    /// The cases, however they were written.
    pub fn into_cases(self) -> Vec<Case> {
        match self {
            Self::Many(cases) => cases,
            Self::One(case) => vec![*case],
        }
    }
}

/// A situation, the calls made in it and what must come back.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Case {
    /// A sentence.
    pub name: String,
    /// Text unless said otherwise.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mode: Option<Mode>,
    /// A fixed clock (RFC 3339).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub now: Option<String>,
    /// What exists before the first call.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub given: Option<CaseFixtures>,
    /// What the user says in the first turn.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub said: Option<String>,
    /// Several calls, one after another. A case has these or a call of its own.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub calls: Vec<CaseCall>,
    /// The arguments of the only call.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub args: Option<Value>,
    /// What the only call must answer.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expect: Option<Expectation>,
    /// `data` must be equal, not only contain what is listed.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub exact: bool,
    /// The user's answer to the only call's confirmation request.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub confirm: Option<ConfirmationAnswer>,
}

/// One call of a case with several.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct CaseCall {
    /// The arguments.
    pub args: Value,
    /// The provider's call id.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub id: Option<String>,
    /// Begins a new turn.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub new_turn: bool,
    /// What the user says before it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub said: Option<String>,
    /// What must come back.
    pub expect: Expectation,
    /// `data` must be equal, not only contain what is listed.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub exact: bool,
    /// The user's answer to a confirmation request.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub confirm: Option<ConfirmationAnswer>,
}

/// The part of an envelope that must be there.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Expectation(pub Value);

impl Expectation {
    /// Whether the expected envelope is a success, when the expectation says so.
    pub fn ok(&self) -> Option<bool> {
        self.0.get("ok").and_then(Value::as_bool)
    }
}

/// What exists before the first call.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CaseFixtures {
    /// Records of the knowledge base.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub kb: Vec<Value>,
    /// Events in the calendar.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub calendar: Vec<Value>,
    /// Who calls: a client who has signed in. Without it, one who has not.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub client: Option<CaseClient>,
    /// Recorded answers to the handler's `fetch`. When there are any, nothing is sent.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub fetch: Vec<RecordedFetch>,
}

/// A client who has signed in.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CaseClient {
    /// The client's id; a name of the session's own unless said otherwise.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub id: Option<String>,
    /// The claims of the verified token.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub claims: BTreeMap<String, Value>,
}

/// A recorded answer to one request. Several for the same method and URL are given in their order, the last one again
/// and again.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RecordedFetch {
    /// The whole URL, without what the host adds to it.
    pub url: String,
    /// GET unless said otherwise.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub method: Option<String>,
    /// 200 unless said otherwise.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub status: Option<u16>,
    /// Headers of the answer.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub headers: BTreeMap<String, String>,
    /// The body: a text as it is, anything else as JSON.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub body: Option<Value>,
    /// The host cannot be reached.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub unreachable: bool,
}

/// How the user answers a confirmation request.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ConfirmationAnswer {
    /// Yes.
    Approve,
    /// No.
    Deny,
}
