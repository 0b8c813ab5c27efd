//! What a person is asked before a call that needs their word.

use std::fmt;

use serde::{Deserialize, Serialize};
use serde_json::Value;

/// The secret that redeems one confirmation. It is for the person and never for the model,
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

/// A question to the person: may this very call run?
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
    /// One sentence for a person.
    pub preview: String,
}
