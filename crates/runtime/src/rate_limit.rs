//! Rate limits: a sliding window per client, per session or for all, counted by the store.

use quarterdeck_contracts::{RateLimit, RateLimitScope, Take};

/// What a call takes of its rate limit at a time.
pub(crate) fn take(tool: &str, limit: &RateLimit, client: &str, session: &str, now_ms: u64) -> Take {
    let key = match limit.per {
        RateLimitScope::Client => format!("{tool}/client/{client}"),
        RateLimitScope::Session => format!("{tool}/session/{session}"),
        RateLimitScope::Global => format!("{tool}/global"),
    };
    Take { key, count: 1, limit: limit.calls, window_ms: limit.window_ms, now_ms }
}

#[cfg(test)]
mod tests;
