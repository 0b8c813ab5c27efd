//! When a tool with `"requiresConfirmation": "policy"` asks the user. The doc comments speak to tool authors, as those of
//! [`crate::Definition`] do.

use indexmap::IndexMap;
use serde::{Deserialize, Serialize};
use serde_json::Number;

/// Conditions under which a call waits for the user's approval. One that holds is enough.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "json-schema", derive(schemars::JsonSchema), schemars(inline, extend("minProperties" = 1)))]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct ConfirmWhen {
    /// The user has not asked for it in this turn: none of the phrases in `requestedBy` matches what they wrote or said.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub not_requested_this_turn: bool,
    /// The name of a list under `[topics]` in the configuration: a text among the arguments has words of it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "json-schema", schemars(length(min = 1, max = 64)))]
    pub topics: Option<String>,
    /// JSON pointers of numbers among the arguments, each with the largest one that needs no approval.
    #[serde(default, skip_serializing_if = "IndexMap::is_empty")]
    #[cfg_attr(
        feature = "json-schema",
        schemars(with = "std::collections::BTreeMap<String, f64>", extend("minProperties" = 1, "maxProperties" = 20))
    )]
    pub over: IndexMap<String, Number>,
    /// Claims of the client's verified token, all of which it must have to go without approval: `staff` is one that is
    /// true, `role=staff` one that has this value.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[cfg_attr(feature = "json-schema", schemars(length(min = 1, max = 20)))]
    pub claims: Vec<String>,
}

impl ConfirmWhen {
    /// Whether there is any condition. A policy that has none cannot let a call pass.
    pub fn has_conditions(&self) -> bool {
        self.not_requested_this_turn
            || self.topics.is_some()
            || !self.over.is_empty()
            || !self.claims.is_empty()
    }
}

/// The phrases that count as asking for a tool, by language.
pub type RequestPhrases = IndexMap<String, Vec<String>>;
