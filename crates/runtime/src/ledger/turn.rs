//! What happened in one turn.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::{CallContent, Map, hash_key};
use crate::policy::Budgets;

/// Beyond so many different calls in a turn, further ones are not counted apart; the budget is spent by then.
const MAX_DISTINCT_CALLS: usize = 1_000;

/// How many different calls are handed over to another node. A turn with more is continued without a budget.
const MAX_HANDED_OVER_CALLS: usize = 100;
/// How many of the user's words are handed over. Without them more is asked before it is done.
const MAX_HANDED_OVER_WORDS_BYTES: usize = 4 * 1024;

/// How much of what the user has typed or said in a turn is looked at.
const MAX_USER_WORDS_BYTES: usize = 32 * 1024;

#[derive(Debug, Default)]
pub(crate) struct Turn {
    pub(crate) number: u64,
    /// Calls that have used the budget.
    pub(crate) calls: u32,
    /// Those of them that retrieve.
    pub(crate) retrieval: u32,
    /// How many calls there were when it was last summed up.
    pub(crate) summed_up_calls: u32,
    /// Whether text that is not the user's own was read in it.
    pub(crate) has_read_foreign_text: bool,
    /// What the user has typed or said in it.
    pub(crate) user_words: Arc<str>,
    /// How long handlers have run.
    pub(crate) tool_time: Duration,
    seen: Map<CallContent, u32>,
    /// The same of calls that another node has seen, by their keys.
    seen_before: BTreeMap<String, u32>,
    empty: Map<Arc<str>, u32>,
}

/// What a turn has used and seen, for the node that continues it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct TurnFacts {
    number: u64,
    calls: u32,
    retrieval: u32,
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    has_read_foreign_text: bool,
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    announces_foreign_text: bool,
    tool_ms: u64,
    #[serde(default, skip_serializing_if = "String::is_empty")]
    user_words: String,
    /// How often each call was seen, by its key.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    seen: BTreeMap<String, u32>,
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    empty: BTreeMap<String, u32>,
}

impl TurnFacts {
    /// Whether the next turn begins with what others wrote.
    pub(super) fn announces_foreign_text(&self) -> bool {
        self.announces_foreign_text
    }
}

impl Turn {
    pub(crate) fn new(number: u64) -> Self {
        Self { number, ..Self::default() }
    }

    /// Leaves no budget, for a turn of which it is not known what it has used and read.
    pub(crate) fn exhaust(&mut self, budgets: &Budgets) {
        (self.calls, self.retrieval) = (budgets.calls, budgets.retrieval);
        // These are not calls that it is known to have made.
        self.summed_up_calls = self.calls;
        self.has_read_foreign_text = true;
    }

    /// Adds words of the user, up to a limit beyond which no request is looked for.
    pub(crate) fn add_user_words(&mut self, words: &str) {
        let room = MAX_USER_WORDS_BYTES.saturating_sub(self.user_words.len());
        let words = &words[..words.floor_char_boundary(room)];
        if !words.is_empty() {
            self.user_words = format!("{}{words}", self.user_words).into();
        }
    }

    /// What another node needs to continue it; `None` when that would be too much.
    pub(super) fn facts(&self, announces_foreign_text: bool) -> Option<TurnFacts> {
        let mut seen = self.seen_before.clone();
        for (content, count) in &self.seen {
            seen.insert(hash_key(content, self.number, 0).to_string(), *count);
        }
        let words = Some(&self.user_words).filter(|words| words.len() <= MAX_HANDED_OVER_WORDS_BYTES);
        (seen.len() <= MAX_HANDED_OVER_CALLS).then(|| TurnFacts {
            number: self.number,
            calls: self.calls,
            retrieval: self.retrieval,
            has_read_foreign_text: self.has_read_foreign_text,
            announces_foreign_text,
            tool_ms: self.tool_time.as_millis() as u64,
            user_words: words.map_or_else(String::new, |words| words.to_string()),
            seen,
            empty: self.empty.iter().map(|(tool, count)| (tool.to_string(), *count)).collect(),
        })
    }

    /// Continues from what another node has handed over; `false` when that was another turn.
    pub(super) fn continue_from(&mut self, facts: &TurnFacts) -> bool {
        if facts.number != self.number {
            return false;
        }
        (self.calls, self.retrieval) = (facts.calls, facts.retrieval);
        // It was summed up where the calls were made.
        self.summed_up_calls = facts.calls;
        self.has_read_foreign_text = facts.has_read_foreign_text;
        self.tool_time = Duration::from_millis(facts.tool_ms);
        self.user_words = facts.user_words.as_str().into();
        self.seen_before.clone_from(&facts.seen);
        self.empty = facts.empty.iter().map(|(tool, count)| (tool.as_str().into(), *count)).collect();
        true
    }

    /// How many equal calls this turn has seen.
    pub(crate) fn seen(&self, content: &CallContent) -> u32 {
        self.seen.get(content).copied().unwrap_or_else(|| self.count_before(content))
    }

    fn count_before(&self, content: &str) -> u32 {
        if self.seen_before.is_empty() {
            return 0;
        }
        self.seen_before.get(&*hash_key(content, self.number, 0)).copied().unwrap_or(0)
    }

    pub(crate) fn count_seen(&mut self, content: &CallContent) {
        if let Some(count) = self.seen.get_mut(content) {
            *count += 1;
        } else if self.seen.len() < MAX_DISTINCT_CALLS {
            self.seen.insert(content.clone(), 1 + self.count_before(content));
        }
    }

    /// How often a tool came back empty.
    pub(crate) fn empty(&self, tool: &str) -> u32 {
        self.empty.get(tool).copied().unwrap_or(0)
    }

    pub(crate) fn count_empty(&mut self, tool: &Arc<str>) {
        *self.empty.entry(tool.clone()).or_default() += 1;
    }
}
