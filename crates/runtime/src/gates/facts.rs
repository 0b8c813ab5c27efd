//! What gates judge from: plain data, so that a verdict can be reproduced.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use quarterdeck_contracts::Mode;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::policy::Budgets;
use crate::topics::Topics;

/// The situation of one call, gathered just before it is judged.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Facts {
    /// The session's mode, as it was opened.
    pub mode: Mode,
    /// Whether the provider's id was seen in this session.
    pub redelivery: Redelivery,
    /// How many calls of this turn before it had the same tool and arguments.
    pub identical: u32,
    /// How often this tool came back empty in this turn.
    pub empty: u32,
    /// Whether an equal call has an answer, or will have one.
    pub duplicate: Duplicate,
    /// Calls of this turn that have used its budget.
    pub calls: u32,
    /// Those of them that retrieve.
    pub retrieval: u32,
    pub budgets: Budgets,
    pub client: Arc<ClientFacts>,
    /// Capabilities and configuration keys that are present.
    pub present: Arc<BTreeSet<String>>,
    pub is_nested: bool,
    /// Whether text that is not the user's own was read in this turn: records, calendars, answers from the network.
    #[serde(default)]
    pub has_read_foreign_text: bool,
    /// What the user has typed or said in this turn so far: their own words, and no others.
    #[serde(default)]
    pub user_words: Arc<str>,
    /// The lists of topics that are configured.
    #[serde(default)]
    pub topics: Arc<Topics>,
}

#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ClientFacts {
    pub authenticated: bool,
    /// The claims of their verified token.
    pub claims: BTreeMap<String, Value>,
}

/// Whether a provider's id was seen before.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Redelivery {
    /// It is new, or nothing to rely on.
    New,
    /// The same call again.
    Same,
    /// Another call under the same id.
    Different,
}

/// Whether an equal call has an answer, or will have one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Duplicate {
    No,
    InTurn,
    /// An equal write of an earlier turn, whose answer was not delivered yet.
    UndeliveredWrite,
}
