//! `[policy]`, `[confirmation]` and `[moderation]`: the limits of the orchestrator.

use quarterdeck_contracts::MAX_CALLS_PER_MESSAGE;
use quarterdeck_runtime::{Budgets, Listen, Policy};

use super::kinds::{boolean, choice, choices, days, or_none, seconds, whole};
use super::reader::{Reader, settings};

const DAY: u64 = 24 * 3_600;

choices! { for Listen { Own = "own", Provider = "provider", } }

pub(super) fn policy(from: &mut Reader) -> Policy {
    let mut policy = Policy::default();
    from.table("policy", "What sessions may do, and how long things are kept.");
    settings! { from;
        "confirmation_seconds": seconds(1, DAY) => policy.confirmation_lifetime,
            "How long the user has to answer a request for confirmation";
        "resumable_seconds": seconds(0, DAY) => policy.resume_timeout,
            "How long a session without a connection can be resumed";
        "idle_seconds": seconds(10, 30 * DAY) => policy.idle_timeout,
            "After how long without a turn a session ends by itself";
        "retention_days": days(1, 3_650) => policy.retention,
            "How long sessions and the records of their calls are kept";
        "remembered_calls": whole(1, 10_000) => policy.max_remembered_calls,
            "Recorded calls that do not write which a session remembers";
        "waiting_events": whole(1, 100_000) => policy.max_queued_events,
            "Events that wait for a client at the most";
        "calls_per_message": whole(1, MAX_CALLS_PER_MESSAGE as u64) => policy.max_calls_per_message,
            "Calls that one message may carry; those beyond are refused unread";
        "tasks_per_client": whole(0, 1_000) => policy.max_tasks_per_client,
            "Background tasks of one client that may run at the same time";
        "tasks": whole(0, 100_000) => policy.max_tasks,
            "Background tasks of all clients that may run at the same time";
    }
    from.table("policy.text", "Limits of text sessions.");
    budgets(from, &mut policy.text);
    from.table("policy.voice", "Limits of voice sessions.");
    budgets(from, &mut policy.voice);
    settings! { from;
        "max_wait_ms": or_none(whole(1, 600_000)) => policy.voice.max_wait_ms,
            "How long calls of a turn keep the user waiting at the most; a tool that is known to take longer goes to the background, \
             or is refused where it cannot";
    }
    from.table("confirmation", "How users approve calls of tools.");
    settings! { from;
        "spoken": boolean() => policy.spoken_confirmation.is_allowed,
            "Whether a user may answer by voice in a call; a tool's `confirmBy` may demand a code or the page all the same";
        "listen": choice() => policy.spoken_confirmation.listen,
            "Whose transcript of the user's voice counts: that of our own speech to text, or that of the voice model's provider";
    }
    from.table("moderation", "How long tools may block a client.");
    settings! { from;
        "max_block": seconds(30, 365 * DAY) => policy.max_block,
            "How many seconds a block lasts at the most; a longer one is shortened to it";
    }
    policy
}

fn budgets(from: &mut Reader, budgets: &mut Budgets) {
    let milliseconds = || or_none(whole(1, 600_000));
    settings! { from;
        "calls": whole(1, 1_000) => budgets.calls, "Calls per turn";
        "retrieval": whole(0, 1_000) => budgets.retrieval, "Retrieval calls per turn, counted apart from the others";
        "top_k": or_none(whole(1, 1_000)) => budgets.top_k, "The largest `top_k`; \"none\" leaves it to the tool";
        "retrieval_ms": milliseconds() => budgets.retrieval_ms,
            "How long one retrieval call should take; longer is warned about";
        "call_ms": milliseconds() => budgets.call_ms, "How long any call should take; longer is warned about";
        "turn_ms": milliseconds() => budgets.turn_ms,
            "How long all calls of a turn should take together; longer is warned about";
        "retries": whole(0, 20) => budgets.retries, "How often a failed call is tried again";
        "backoff_ms": whole(1, 60_000) => budgets.backoff_ms,
            "The pause before the first retry; each further one is twice as long at the most";
    }
}
