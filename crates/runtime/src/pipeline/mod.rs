//! One call from the model's message to its answer: gates ► execute ► record ► intents.
//!
//! | step | file | what it does |
//! | --- | --- | --- |
//! | gates | `admit.rs` | facts ► gates ► ledger, under the session's lock; `schedule.rs`: how a voice call is waited for |
//! | reserve | `reserve.rs` | rate-limit slot, redemption and start mark, in one commit |
//! | execute | `execute.rs` | the handler, with retries |
//! | record | `record.rs` | a write's answer and its effects, in one commit |
//! | deliver | `deliver.rs` | the answer to those who wait for it, and its intents to the session |
//!
//! A call whose tool may run in the background leaves this path after `reserve.rs` for `detached.rs`, which executes and
//! records it in a task of its own.
//!
//! Every step works on one [`ToolCall`] and takes the session that the call belongs to. `batch.rs` admits the calls of a
//! message together and runs them in their order; `precheck.rs` checks arguments beforehand that take long to check, and
//! `precheck_handler.rs` lets a handler look at a call before the user is asked to approve it.

mod admit;
mod batch;
mod call;
mod capabilities;
mod context;
mod deliver;
mod detached;
mod execute;
mod partial_results;
mod precheck;
mod precheck_handler;
mod record;
mod recorded;
mod reserve;
mod retrieval_span;
mod schedule;
mod task_rows;
mod tool_span;

use std::panic::AssertUnwindSafe;
use std::pin::pin;
use std::sync::Arc;

use futures_util::FutureExt;
use tokio::time::Instant;

pub use batch::Batch;
pub(crate) use batch::start;
pub(crate) use call::ToolCall;
pub(crate) use detached::resume_task;
pub(crate) use precheck_handler::precheck;
pub(crate) use reserve::{Reservation, find_recorded, reserve};
pub(crate) use tool_span::{AskedSpan, ToolSpan};

use crate::session::SessionCore;
use call::CallOutcome;
use deliver::deliver;
use detached::run_detached;
use execute::execute;
use record::{Recorded, give_up, record};

/// How often a handler runs for one call, because a row that it had decided from was changed by another call.
const MAX_RUNS: usize = 4;

/// Takes an admitted call to its answer. It always gets one.
pub(crate) async fn run(core: &Arc<SessionCore>, mut call: ToolCall) {
    let started = Instant::now();
    // Pinned here: each future that it is handed to would have the room for another copy of it.
    let outcome = AssertUnwindSafe(pin!(reserve_and_execute(core, &mut call, started))).catch_unwind().await;
    match (outcome.unwrap_or_else(|_| Some(CallOutcome::panicked(core, &call))), call.task.clone()) {
        // On the heap, so that the usual call does not carry the room for it.
        (None, Some(task)) => Box::pin(run_detached(core, call, task, started)).await,
        (None, None) => {}
        (Some(outcome), _) => deliver(core, call, outcome, started.elapsed()),
    }
}

/// The same for a call that was approved, and for which everything is reserved.
pub(crate) async fn run_reserved(core: &Arc<SessionCore>, mut call: ToolCall) {
    let started = Instant::now();
    call.entry.start();
    if let Some(task) = call.task.clone() {
        return Box::pin(run_detached(core, call, task, started)).await;
    }
    let steps = AssertUnwindSafe(execute_and_record(core, &mut call, started)).catch_unwind();
    let outcome = steps.await.unwrap_or_else(|_| CallOutcome::panicked(core, &call));
    deliver(core, call, outcome, started.elapsed());
}

/// What the call came to, unless it goes on as a task.
async fn reserve_and_execute(
    core: &Arc<SessionCore>,
    call: &mut ToolCall,
    started: Instant,
) -> Option<CallOutcome> {
    if !call.entry.start() {
        return Some(CallOutcome::cancelled(core, call));
    }
    match reserve(core, call).await {
        Reservation::Granted if call.task.is_some() => None,
        Reservation::Granted => Some(execute_and_record(core, call, started).await),
        Reservation::Refused(error) => Some(CallOutcome::not_executed(core, call, *error)),
        Reservation::Recorded(envelope) => Some(CallOutcome::recorded(call, &envelope)),
    }
}

async fn execute_and_record(core: &Arc<SessionCore>, call: &mut ToolCall, started: Instant) -> CallOutcome {
    for _ in 0..MAX_RUNS {
        let (response, effects) = execute(core, call, started).await;
        if let Recorded::Final(outcome) = record(core, call, response, effects).await {
            return outcome;
        }
    }
    give_up(core, call).await
}
