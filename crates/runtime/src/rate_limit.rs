//! Rate limits: a sliding window per client, per session or for all, counted in the store.

use quarterdeck_contracts::{Commit, RateLimit, RateLimitScope, Store, StoreError, Table};
use serde::{Deserialize, Serialize};
use serde_json::json;

/// Up to so many calls are kept one by one. Beyond that, calls of one such fraction of the window share a group, which
/// is as old as its newest call: a little strict, and bounded.
const MAX_GROUPS: u64 = 256;

/// The key of the window that a call counts in.
pub(crate) fn key(tool: &str, limit: &RateLimit, client: &str, session: &str) -> String {
    match limit.per {
        RateLimitScope::Client => format!("{tool}/client/{client}"),
        RateLimitScope::Session => format!("{tool}/session/{session}"),
        RateLimitScope::Global => format!("{tool}/global"),
    }
}

/// Whether one more call is within a rate limit.
pub(crate) enum Slot {
    /// This commit takes it, unless another call did in the meantime.
    Available(Commit),
    Taken {
        retry_after_ms: u64,
    },
}

#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
struct Group {
    at: u64,
    calls: u64,
}

/// Finds a slot for a call at a time.
pub(crate) async fn find_slot(
    store: &dyn Store,
    key: &str,
    limit: &RateLimit,
    now_ms: u64,
) -> Result<Slot, StoreError> {
    let row = store.get(Table::Rates, key).await?;
    let version = row.as_ref().map(|row| row.version);
    let mut groups: Vec<Group> =
        row.and_then(|row| serde_json::from_value(row.value).ok()).unwrap_or_default();
    // A call from beyond the next window was counted by a clock that has been set back since; it would take a place for
    // as long as the clock was set back.
    let window = now_ms.saturating_sub(limit.window_ms)..=now_ms.saturating_add(limit.window_ms);
    groups.retain(|group| window.contains(&group.at) && group.at + limit.window_ms > now_ms);
    if groups.iter().map(|group| group.calls).sum::<u64>() >= limit.calls {
        let oldest = groups.first().map_or(now_ms, |group| group.at);
        return Ok(Slot::Taken { retry_after_ms: (oldest + limit.window_ms).saturating_sub(now_ms).max(1) });
    }
    groups.push(Group { at: now_ms, calls: 1 });
    if groups.len() as u64 > MAX_GROUPS {
        groups = merge_groups(groups, (limit.window_ms / MAX_GROUPS).max(1));
    }
    let expires = Some(now_ms + limit.window_ms);
    let commit = Commit::default().check(Table::Rates, key, version).put_until(
        Table::Rates,
        key,
        json!(groups),
        expires,
    );
    Ok(Slot::Available(commit))
}

/// Puts calls of the same stretch of time together. Stretches are fixed, so that steady traffic does not keep adding to
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

#[cfg(test)]
mod tests;
