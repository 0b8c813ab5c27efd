//! What a user is asked before a call that needs approval.

use std::fmt;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::{ConfirmBy, visible_value};

/// The secret that redeems one confirmation. It is for the user and never for the model,
/// so it neither prints itself nor compares as text.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct ConfirmationToken(String);

impl ConfirmationToken {
    /// Wraps a token made elsewhere.
    pub fn new(secret: impl Into<String>) -> Self {
        Self(secret.into())
    }

    /// The secret itself, for the one place that hands it to the client or redeems it.
    pub fn expose(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for ConfirmationToken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("ConfirmationToken(hidden)")
    }
}

/// The digits that a user must say to approve a call of a tool with `"confirmBy": "code"`. They are shown and spoken to the
/// user and never told to the model, so they do not print themselves.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct ConfirmationCode(String);

impl ConfirmationCode {
    /// How many digits a code has.
    pub const DIGITS: usize = 4;

    /// A code of the last four digits of a number.
    pub fn new(number: u16) -> Self {
        Self(format!("{:04}", number % 10_000))
    }

    /// The digits, to be shown or spoken to the user.
    pub fn expose(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for ConfirmationCode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("ConfirmationCode(hidden)")
    }
}

/// A question to the user: may this very call run?
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ConfirmationRequest {
    /// Redeems the request. Absent in the copy that a model sees.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub token: Option<ConfirmationToken>,
    /// When the request lapses, in milliseconds since the epoch.
    pub expires: u64,
    /// The tool that would run.
    pub tool: String,
    /// The arguments it would run with.
    pub args: Value,
    /// One sentence for the user.
    pub preview: String,
    /// Why the user is asked, where the tool asks only at times.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// How the user may answer.
    #[serde(rename = "confirmBy", default, skip_serializing_if = "ConfirmBy::is_any")]
    pub confirm_by: ConfirmBy,
    /// What the user must say to approve it by voice, where the tool demands it. Absent in the copy that a model sees.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub code: Option<ConfirmationCode>,
}

impl ConfirmationRequest {
    /// The same question without what only the user may hold: for a model, and for transports that ask by other means.
    pub fn without_secrets(self) -> Self {
        Self { token: None, code: None, ..self }
    }
}

/// How many characters the arguments of a call may have, shown in full, so that a user is asked about it. A call that
/// could not be read is refused instead.
pub const MAX_SHOWN_CHARS: usize = 20_000;

/// The arguments of a call in full, for the user who approves it: JSON in which every character can be seen, and in which
/// no value can begin a line of its own.
pub fn shown_arguments(args: &Value) -> String {
    format!("{:#}", visible_value(args))
}
