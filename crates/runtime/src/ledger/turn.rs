//! What happened in one turn.

use std::sync::Arc;
use std::time::Duration;

use super::Map;
use crate::policy::Budgets;

/// Beyond so many different calls in a turn, further ones are not counted apart; the budget is spent by then.
const MAX_DISTINCT_CALLS: usize = 1_000;

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
    seen: Map<Arc<str>, u32>,
    empty: Map<Arc<str>, u32>,
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

    /// How many equal calls this turn has seen.
    pub(crate) fn seen(&self, content: &str) -> u32 {
        self.seen.get(content).copied().unwrap_or(0)
    }

    pub(crate) fn count_seen(&mut self, content: &Arc<str>) {
        if let Some(count) = self.seen.get_mut(content) {
            *count += 1;
        } else if self.seen.len() < MAX_DISTINCT_CALLS {
            self.seen.insert(content.clone(), 1);
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
