//! `[policy]` and `[moderation]`: the numbers of the orchestrator. Their defaults are the runtime's own.

use quarterdeck_contracts::MAX_CALLS_PER_MESSAGE;
use quarterdeck_runtime::{Budgets, Policy};

use super::kinds::{OrNone, days, seconds, whole};
use super::reader::Reader;

const DAY: u64 = 24 * 3_600;

/// Reads `[policy]`, what is below it, and `[moderation]`.
pub(super) fn policy(from: &mut Reader) -> Policy {
    let usual = Policy::default();
    from.table("policy", "What sessions may do, and how long things are kept.");
    let mut policy = Policy {
        confirmation_lifetime: from.read(
            "policy.confirmation_seconds",
            seconds(1, DAY),
            usual.confirmation_lifetime.as_secs(),
            "How long a person has to answer a request for confirmation",
        ),
        resume_timeout: from.read(
            "policy.resumable_seconds",
            seconds(0, DAY),
            usual.resume_timeout.as_secs(),
            "How long a session without a connection can be resumed",
        ),
        idle_after: from.read(
            "policy.idle_seconds",
            seconds(10, 30 * DAY),
            usual.idle_after.as_secs(),
            "After how long without a turn a session ends by itself",
        ),
        retention: from.read(
            "policy.retention_days",
            days(1, 3_650),
            usual.retention.as_secs() / DAY,
            "How long sessions and the records of their calls are kept",
        ),
        max_remembered_calls: from.read(
            "policy.remembered_calls",
            whole(1, 10_000),
            usual.max_remembered_calls,
            "Recorded calls that do not write which a session remembers",
        ),
        max_queued_events: from.read(
            "policy.waiting_events",
            whole(1, 100_000),
            usual.max_queued_events,
            "Events that wait for a client at the most",
        ),
        max_calls_per_message: from.read(
            "policy.calls_per_message",
            whole(1, MAX_CALLS_PER_MESSAGE as u64),
            usual.max_calls_per_message,
            "Calls that one message may carry; those beyond are refused unread",
        ),
        ..usual
    };
    from.table("policy.text", "Limits of sessions that are written.");
    policy.text = budgets(from, "policy.text", policy.text);
    from.table("policy.voice", "Limits of sessions that are spoken.");
    policy.voice = budgets(from, "policy.voice", policy.voice);
    from.table("moderation", "How far tools may shut a client out.");
    policy.max_block = from.read(
        "moderation.max_block",
        seconds(30, 365 * DAY),
        policy.max_block.as_secs(),
        "How many seconds a block lasts at the most; a longer one is shortened to it",
    );
    policy
}

fn budgets(from: &mut Reader, table: &str, usual: Budgets) -> Budgets {
    let key = |name: &str| format!("{table}.{name}");
    let time = || OrNone(whole(1, 600_000));
    Budgets {
        calls: from.read(&key("calls"), whole(1, 1_000), usual.calls, "Calls per turn"),
        retrieval: from.read(
            &key("retrieval"),
            whole(0, 1_000),
            usual.retrieval,
            "Retrieval calls per turn, counted apart from the others",
        ),
        top_k: from.read(
            &key("top_k"),
            OrNone(whole(1, 1_000)),
            usual.top_k,
            "The largest `top_k`; \"none\" leaves it to the tool",
        ),
        retrieval_ms: from.read(
            &key("retrieval_ms"),
            time(),
            usual.retrieval_ms,
            "How long one retrieval call should take; longer is warned about",
        ),
        call_ms: from.read(
            &key("call_ms"),
            time(),
            usual.call_ms,
            "How long any call should take; longer is warned about",
        ),
        turn_ms: from.read(
            &key("turn_ms"),
            time(),
            usual.turn_ms,
            "How long all calls of a turn should take together; longer is warned about",
        ),
        retries: from.read(
            &key("retries"),
            whole(0, 20),
            usual.retries,
            "How often a failed call is tried again",
        ),
        backoff_ms: from.read(
            &key("backoff_ms"),
            whole(1, 60_000),
            usual.backoff_ms,
            "The pause before the first retry; each further one is twice as long at the most",
        ),
    }
}
