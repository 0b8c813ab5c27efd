//! Rate limits: a sliding window that the engine counts in, so that no caller has to read, decide and try again.

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

/// Up to so many takings are kept one by one. Beyond that, those of one such fraction of the window share a group, which
/// is as old as its newest: a little strict, and bounded.
const MAX_GROUPS: u64 = 256;

/// Takes places in a rate limit, whose window is a row of [`Table::Rates`](super::Table::Rates).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Take {
    /// Which limit.
    pub key: String,
    /// How many places.
    pub count: u64,
    /// How many there are in a window.
    pub limit: u64,
    /// How long a window is.
    pub window_ms: u64,
    /// The time of the process that asks. An engine that several nodes share goes by its own clock instead, because theirs
    /// may differ.
    pub now_ms: u64,
}

/// What came of counting.
#[derive(Debug, Clone, PartialEq)]
pub enum Taken {
    /// The window as it is now, to be kept until a time.
    Counted {
        /// What the row becomes.
        window: Value,
        /// Until when it is kept.
        expires_ms: u64,
    },
    /// There is no room.
    Refused {
        /// How long until there is.
        retry_after_ms: u64,
    },
}

#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
struct Group {
    at: u64,
    calls: u64,
}

impl Take {
    /// Counts in a stored window, at a time.
    pub fn count_in(&self, stored: Option<Value>, now_ms: u64) -> Taken {
        let mut groups: Vec<Group> =
            stored.and_then(|window| serde_json::from_value(window).ok()).unwrap_or_default();
        // One from beyond the next window was counted by a clock that has been set back since; it would take a place for
        // as long as the clock was set back.
        let window = now_ms.saturating_sub(self.window_ms)..=now_ms.saturating_add(self.window_ms);
        groups.retain(|group| window.contains(&group.at) && group.at + self.window_ms > now_ms);
        let taken = groups.iter().map(|group| group.calls).fold(0, u64::saturating_add);
        if taken.saturating_add(self.count) > self.limit {
            return Taken::Refused { retry_after_ms: self.retry_after(&groups, taken, now_ms) };
        }
        groups.push(Group { at: now_ms, calls: self.count });
        if groups.len() as u64 > MAX_GROUPS {
            groups = merge_groups(groups, (self.window_ms / MAX_GROUPS).max(1));
        }
        Taken::Counted { window: json!(groups), expires_ms: now_ms.saturating_add(self.window_ms) }
    }

    /// When enough of the oldest groups have left the window; a whole window for more places than there are.
    fn retry_after(&self, groups: &[Group], taken: u64, now_ms: u64) -> u64 {
        let mut left = taken;
        let freeing = groups.iter().find(|group| {
            left = left.saturating_sub(group.calls);
            left.saturating_add(self.count) <= self.limit
        });
        let at = freeing.map_or(now_ms, |group| group.at);
        at.saturating_add(self.window_ms).saturating_sub(now_ms).max(1)
    }
}

/// Puts takings of the same stretch of time together. Stretches are fixed, so that steady traffic does not keep adding to
/// one group that never grows old.
fn merge_groups(groups: Vec<Group>, stretch_ms: u64) -> Vec<Group> {
    let mut fewer: Vec<Group> = Vec::with_capacity(groups.len());
    for group in groups {
        match fewer.last_mut() {
            Some(last) if last.at / stretch_ms == group.at / stretch_ms => {
                *last = Group { at: last.at.max(group.at), calls: last.calls + group.calls };
            }
            _ => fewer.push(group),
        }
    }
    fewer
}
