//! One admitted call, to its answer.

use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::time::{Duration, Instant};

use futures_util::FutureExt;
use futures_util::future::{Either, select};
use quarterdeck_contracts::{
    Category, Commit, CommitError, ErrorType, Intent, Metadata, Outcome, RequestedIntent, Table, ToolError,
    ToolResponse,
};
use serde_json::{Value, json};

use super::admit::ToolCall;
use super::answer::Answer;
use super::audit::AuditRecord;
use super::context::{CallContext, Effects};
use super::events::{ClientEvent, DeliveryReason};
use super::reserve::{Reservation, outcome_unknown, refusal};
use super::rows::CallRow;
use super::{SessionCore, SessionData};
use crate::envelope::{internal_fault, refusal_error};
use crate::ledger::is_empty_result;
use crate::registry::LoadedTool;
use crate::state::Cause;

/// How often a call is run anew because a row that it had decided from was changed by another.
const MAX_RUNS: usize = 4;
/// No retry is begun after a call has taken this long.
const MAX_RETRY_TIME: Duration = Duration::from_secs(30);

/// How a call ended.
struct CallOutcome {
    response: Arc<ToolResponse>,
    /// Whether the handler ran, rather than somebody else having answered.
    ran: bool,
    /// Whether it blocked the client.
    blocks: bool,
}

impl SessionCore {
    /// Takes one admitted call through its handler to its answer. It always gets one.
    pub(super) async fn run_call(self: &Arc<Self>, mut call: ToolCall) {
        let begun = Instant::now();
        let finished = if call.entry.start() {
            match AssertUnwindSafe(self.reserve_and_run(&mut call)).catch_unwind().await {
                Ok(finished) => finished,
                Err(_) => self.panicked(&call),
            }
        } else {
            self.cancelled(&call)
        };
        self.deliver(call, finished, begun.elapsed());
    }

    /// The same for a call whose confirmation was redeemed and which is marked as begun.
    pub(super) async fn run_reserved(self: &Arc<Self>, mut call: ToolCall) {
        let begun = Instant::now();
        call.entry.start();
        let finished = match AssertUnwindSafe(self.run(&mut call)).catch_unwind().await {
            Ok(finished) => finished,
            Err(_) => self.panicked(&call),
        };
        self.deliver(call, finished, begun.elapsed());
    }

    async fn reserve_and_run(self: &Arc<Self>, call: &mut ToolCall) -> CallOutcome {
        match self.reserve(call).await {
            Reservation::Granted => self.run(call).await,
            Reservation::Refused(error) => self.not_executed(call, *error),
            Reservation::Recorded(envelope) => {
                let response = super::batch::replayed(&envelope, call.entry.turn);
                CallOutcome { response: Arc::new(response), ran: false, blocks: false }
            }
        }
    }

    /// Runs the handler and records what it did, in one commit with its effects.
    async fn run(self: &Arc<Self>, call: &mut ToolCall) -> CallOutcome {
        if call.entry.writes {
            return Box::pin(self.run_write(call)).await;
        }
        let (response, _) = self.execute(call).await;
        CallOutcome { response: Arc::new(response), ran: true, blocks: false }
    }

    /// Runs a handler that writes until what it decided from is still so when it is recorded.
    async fn run_write(self: &Arc<Self>, call: &mut ToolCall) -> CallOutcome {
        for _ in 0..MAX_RUNS {
            let (response, effects) = self.execute(call).await;
            let is_contained = effects.is_contained;
            match self.record_write(call, &response, effects).await {
                Ok(blocks) => return CallOutcome { response: Arc::new(response), ran: true, blocks },
                // Nothing of this run is real, so it may be run again on what is there now.
                Err(CommitError::Conflict { .. }) if is_contained => {}
                Err(error) => {
                    tracing::error!(session = %self.id, call = %call.entry.call_id, error = %error, "a write could not be recorded");
                    return self.not_executed(call, outcome_unknown(&call.entry.tool));
                }
            }
        }
        let _ = self.commit(Commit::default().delete(Table::Calls, self.call_key(call.entry.key()))).await;
        let message = format!("{} was overtaken by other changes, and did nothing.", call.entry.tool);
        self.not_executed(call, refusal_error(ErrorType::Transient, message).retryable())
    }

    /// Runs the handler, again where that is safe and may help.
    async fn execute(self: &Arc<Self>, call: &mut ToolCall) -> (ToolResponse, Effects) {
        let begun = Instant::now();
        let mut retries = 0;
        loop {
            let context = CallContext::new(self.clone(), call);
            let Some(tool) = self.snapshot.find(&call.entry.tool) else {
                // It was found when the call was admitted, and a snapshot does not change.
                let error = outcome_unknown(&call.entry.tool);
                return (self.snapshot.refuse(&call.entry.tool, error, self.now()), context.effects());
            };
            let args = self.arguments(tool, call, retries);
            let running = self.snapshot.run(tool, args, context.clone());
            let mut response = match self.unless_cancelled(call, running).await {
                Some(response) => response,
                None => self.snapshot.refuse(&call.entry.tool, cancelled_error(&call.entry.tool), self.now()),
            };
            let effects = context.effects();
            if let Some(pause) = self.pause_before_retry(call, &response, retries, begun.elapsed()) {
                // Cancelled meanwhile, it is not run again: the next round finds that out before anything else.
                self.unless_cancelled(call, tokio::time::sleep(pause)).await;
                retries += 1;
                continue;
            }
            response.meta.retry_count = (retries > 0).then_some(retries);
            response.meta.parent_call_id = call.ancestors.last().map(|parent| parent.call_id.to_string());
            if retries > 0 {
                response.meta.duration = begun.elapsed().as_millis() as u64;
            }
            return (response, effects);
        }
    }

    /// A call that does not write stops when it is cancelled; one that does has begun and is let finish.
    async fn unless_cancelled<T>(&self, call: &ToolCall, running: impl Future<Output = T>) -> Option<T> {
        if call.entry.writes {
            return Some(running.await);
        }
        if call.entry.is_cancelled() {
            return None;
        }
        let running = std::pin::pin!(running);
        let cancelled = std::pin::pin!(call.entry.wait_for_cancel());
        match select(running, cancelled).await {
            Either::Left((response, _)) => Some(response),
            Either::Right(_) => None,
        }
    }

    /// The arguments of one attempt. The first of a look-up that nobody audits gets them for good, which saves a copy;
    /// should it be tried again, they are made anew from what the model wrote, as the gates made them.
    fn arguments(&self, tool: &LoadedTool, call: &mut ToolCall, attempt: u32) -> Value {
        // To make arguments anew that took long to judge would take as long again.
        if call.entry.writes || self.shared.audit.is_enabled() || call.has_slow_arguments {
            return call.args.clone();
        }
        if attempt == 0 {
            return std::mem::take(&mut call.args);
        }
        let (_, asked) = call.entry.content.split_once('\n').unwrap_or_default();
        let mut args: Value = serde_json::from_str(asked).unwrap_or_default();
        for clamped in &call.clamped {
            args[clamped.parameter] = clamped.given.into();
        }
        // They were accepted before.
        let _ = tool.parameters.admit(&mut args);
        args
    }

    /// How long to wait before the call is tried again, if it is.
    fn pause_before_retry(
        &self,
        call: &ToolCall,
        response: &ToolResponse,
        retries: u32,
        taken: Duration,
    ) -> Option<Duration> {
        let Outcome::Failure(error) = &response.outcome else { return None };
        let metadata = self.snapshot.find(&call.entry.tool)?.metadata();
        let budgets = self.shared.policy.budgets(self.mode);
        let most = budgets.retries.min(error.max_retries.unwrap_or(u32::MAX));
        if retries >= most || !may_be_retried(metadata, error) || call.entry.is_cancelled() {
            return None;
        }
        let ceiling = budgets.backoff_ms << retries.min(16);
        let pause = match error.retry_after_ms {
            Some(after) => after.max(budgets.backoff_ms.min(after)),
            // In voice there is one retry and it comes soon; elsewhere they spread.
            None if budgets.turn_ms.is_some() => ceiling,
            None => jitter(ceiling),
        };
        let pause = Duration::from_millis(pause);
        let room = match budgets.turn_ms {
            Some(turn) => Duration::from_millis(turn).saturating_sub(self.lock().ledger.turn().tool_time),
            None => MAX_RETRY_TIME,
        };
        (taken + pause <= room).then_some(pause)
    }

    /// Writes what a call came to, together with its effects; a failed call has none. Messages go out afterwards.
    async fn record_write(
        self: &Arc<Self>,
        call: &ToolCall,
        response: &ToolResponse,
        effects: Effects,
    ) -> Result<bool, CommitError> {
        let key = self.call_key(call.entry.key());
        if !is_recorded(response) {
            self.commit(Commit::default().delete(Table::Calls, key)).await?;
            return Ok(false);
        }
        let row = CallRow::done(&call.entry, response, self.now_ms());
        let mut commit = Commit::default().put_until(Table::Calls, key, json!(row), self.keep_until());
        if response.is_ok() {
            commit = commit.and(self.with_expiry(effects.commit));
        }
        self.commit(commit).await?;
        if response.is_ok() {
            self.send(effects.messages);
        }
        Ok(response.is_ok() && effects.blocks)
    }

    /// What a handler wrote is forgotten in time, like everything else: a block or an issued session when it has run
    /// out, a value after the retention time. Events of the calendar are the site's own.
    fn with_expiry(&self, mut commit: Commit) -> Commit {
        for write in &mut commit.writes {
            let Some(value) = &write.value else { continue };
            write.expires_ms = match write.table {
                Table::Values => self.keep_until(),
                Table::Blocks => value["untilMs"].as_u64(),
                Table::Sessions => value["expiresMs"].as_u64(),
                _ => write.expires_ms,
            };
        }
        commit
    }

    /// Puts the answer where everyone who waits for it looks, and applies what it asks for.
    fn deliver(self: &Arc<Self>, call: ToolCall, finished: CallOutcome, took: Duration) {
        let ToolCall { entry, args, trace, .. } = &call;
        let CallOutcome { response, ran, blocks } = finished;
        let mut data = self.lock();
        data.unfinished.retain(|other| !Arc::ptr_eq(other, entry));
        if ran {
            self.count_result(&mut data, &call, &response, took);
        }
        let is_abandoned = ran && entry.writes && entry.is_cancelled();
        let transitions = if ran { self.apply(&mut data, &call, &response, blocks) } else { Vec::new() };
        if is_recorded(&response) {
            entry.mark_final();
            if !entry.writes {
                data.unsaved.add(entry, self.shared.policy.max_remembered_calls);
            }
        } else {
            data.ledger.remove(entry);
        }
        data.unsaved.session |= !transitions.is_empty();
        entry.set_trace(trace);
        entry.set_answer(response.clone());
        if entry.is_cancelled() {
            data.undelivered.retain(|pending| !pending.is_of(entry));
        }
        if is_abandoned {
            self.report_abandoned(&mut data, &call, &response);
        }
        if !data.undelivered.is_empty() {
            self.hand_over(&mut data);
        }
        self.save_soon(&mut data);
        drop(data);

        if let Some(tool) = self.snapshot.find(&entry.tool).filter(|_| ran) {
            self.measure(entry, tool.metadata(), &response, took);
        }
        if let Some(gate) = trace.answered_by().filter(|_| !ran) {
            self.shared.metrics.record_refusal(&entry.tool, gate);
        }
        self.audit_call(&AuditRecord {
            call_id: &entry.call_id,
            turn: entry.turn,
            entry: Some(entry),
            tool: &entry.tool,
            args,
            trace,
            response: &response,
            how: if is_abandoned { Some("abandoned") } else { (!ran).then_some("refused") },
        });
        self.audit_transitions(transitions);
    }

    fn count_result(&self, data: &mut SessionData, call: &ToolCall, response: &ToolResponse, took: Duration) {
        if call.entry.turn != data.ledger.turn_number() {
            return;
        }
        let retrieves = self
            .snapshot
            .find(&call.entry.tool)
            .is_some_and(|tool| tool.metadata().category == Category::Retrieval);
        let turn = data.ledger.turn();
        turn.tool_time += took;
        if retrieves && matches!(&response.outcome, Outcome::Success(data) if is_empty_result(data)) {
            turn.count_empty(&call.entry.tool);
        }
    }

    fn apply(
        &self,
        data: &mut SessionData,
        call: &ToolCall,
        response: &ToolResponse,
        blocks: bool,
    ) -> Vec<crate::state::Transition> {
        if response.intents.is_empty() {
            return Vec::new();
        }
        data.facts = None;
        let output = match &response.outcome {
            Outcome::Success(output) => Some(output),
            Outcome::Failure(_) => None,
        };
        let cause = Cause { call_id: &call.entry.call_id, data: output, blocks };
        // An end that a discarded generation asked for would hang up on the person.
        let is_cut = call.entry.is_cancelled() && !blocks;
        if is_cut && response.intents.iter().any(ends) {
            let kept: Vec<_> = response.intents.iter().filter(|intent| !ends(intent)).cloned().collect();
            tracing::warn!(session = %self.id, call = %call.entry.call_id, "an end was asked for by a generation that was cut");
            return data.controller.apply(&kept, cause);
        }
        data.controller.apply(&response.intents, cause)
    }

    /// A person who barged in must know that something was done all the same, and so must the model.
    fn report_abandoned(
        self: &Arc<Self>,
        data: &mut SessionData,
        call: &ToolCall,
        response: &Arc<ToolResponse>,
    ) {
        let entry = &call.entry;
        let how = if response.is_ok() { "was done" } else { "failed" };
        data.notes.push(format!("{} was interrupted but had begun, and {how}.", entry.tool));
        data.unsaved.session = true;
        let answer = Answer {
            is_wanted: false,
            trace: entry.trace(),
            ..Answer::without_receipt(entry.call_id.clone(), entry.tool.clone(), response.clone())
        };
        self.push_event(data, ClientEvent::Answer { why: DeliveryReason::Abandoned, answer });
    }

    fn not_executed(&self, call: &ToolCall, error: ToolError) -> CallOutcome {
        CallOutcome { response: refusal(self, &call.entry.tool, error), ran: false, blocks: false }
    }

    fn cancelled(&self, call: &ToolCall) -> CallOutcome {
        self.not_executed(call, cancelled_error(&call.entry.tool))
    }

    /// Our own code has failed. The write, if it was one, may or may not have happened.
    fn panicked(&self, call: &ToolCall) -> CallOutcome {
        tracing::error!(session = %self.id, call = %call.entry.call_id, "a call broke inside the orchestrator");
        match self.snapshot.find(&call.entry.tool) {
            Some(tool) => self.not_executed(call, internal_fault(tool.metadata())),
            None => self.not_executed(call, outcome_unknown(&call.entry.tool)),
        }
    }

    /// Sends what a handler had to say to its client.
    pub(super) fn send(&self, messages: Vec<Value>) {
        if messages.is_empty() {
            return;
        }
        let mut data = self.lock();
        for message in messages {
            self.push_event(&mut data, ClientEvent::Message(message));
        }
    }
}

fn ends(intent: &RequestedIntent) -> bool {
    matches!(intent, RequestedIntent::Known(Intent::EndVoiceSession { .. }))
}

pub(super) fn cancelled_error(tool: &str) -> ToolError {
    refusal_error(
        ErrorType::Cancelled,
        format!("{tool} was cancelled; whether there is a result is not known."),
    )
}

fn may_be_retried(metadata: &Metadata, error: &ToolError) -> bool {
    let computed = error.details.as_ref().is_some_and(|details| details["computing"] == true);
    matches!(error.kind, ErrorType::Transient | ErrorType::RateLimit)
        && error.retryable
        && !computed
        && (metadata.idempotent || error.partial_side_effects == Some(false))
        && error.idempotency_required != Some(true)
}

/// Whether an answer is final. A failure that may succeed later and did nothing is not, nor is a cancelled call.
fn is_recorded(response: &ToolResponse) -> bool {
    match &response.outcome {
        Outcome::Success(_) => true,
        Outcome::Failure(error) => {
            let may_turn_out_differently = error.retryable || error.kind == ErrorType::Cancelled;
            error.partial_side_effects == Some(true) || !may_turn_out_differently
        }
    }
}

/// Somewhere between nothing and the ceiling.
fn jitter(ceiling_ms: u64) -> u64 {
    let mut bytes = [0_u8; 8];
    match getrandom::fill(&mut bytes) {
        Ok(()) => u64::from_le_bytes(bytes) % (ceiling_ms + 1),
        Err(_) => ceiling_ms,
    }
}
