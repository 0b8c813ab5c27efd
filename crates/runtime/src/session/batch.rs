//! The calls of one message.

use std::collections::VecDeque;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Waker};

use futures_util::future::join_all;
use quarterdeck_contracts::{ErrorType, ToolError, ToolResponse};
use tokio::sync::oneshot;

use super::admit::{Plan, Planned, ToolCall};
use super::answer::{Answer, AnswerSource, DeliveryGuard, PendingAnswer, Reply, is_cancelled};
use super::execute::cancelled_error;
use super::precheck::Submitted;
use super::{SessionCore, SessionData};
use crate::call::Call;
use crate::envelope::refusal_error;
use crate::gates::Trace;
use crate::ledger::{CallUpdate, Entry};

/// The answers of one message's calls, in the order of the calls. The calls go on when it is dropped, and their answers
/// are handed to the session's next connection.
pub struct Batch {
    core: Arc<SessionCore>,
    slots: VecDeque<Slot>,
    /// The same batch, once its calls have been judged and admitted.
    pending: Option<oneshot::Receiver<Batch>>,
}

/// One call's place in the order.
struct Slot {
    call_id: Arc<str>,
    name: Arc<str>,
    from: From,
    /// What the gates said, where they answered.
    trace: Option<Trace>,
}

enum From {
    Refusal(Arc<ToolResponse>),
    Entry { entry: Arc<Entry>, is_replay: bool },
}

/// Something that a batch has to do.
enum Job {
    Run(ToolCall),
    Ask(ToolCall),
}

impl SessionCore {
    /// Admits the calls of one message and starts them.
    pub(super) fn admit_message(self: &Arc<Self>, calls: impl ExactSizeIterator<Item = Submitted>) -> Batch {
        let mut jobs = Vec::new();
        let mut slots = VecDeque::with_capacity(calls.len());
        let mut data = self.lock();
        for (index, Submitted { call, judged, is_cancelled }) in calls.enumerate() {
            if index >= self.shared.policy.max_calls_per_message {
                slots.push_back(self.refuse_excess(&mut data, call));
                continue;
            }
            if is_cancelled {
                slots.push_back(self.refuse_unread(&mut data, call, cancelled_error));
                continue;
            }
            let Planned { call_id, name, plan, trace } =
                self.admit(&mut data, call, judged.as_ref(), Vec::new());
            let from = match plan {
                Plan::Refused(response) => From::Refusal(response),
                Plan::Joined(entry) => From::Entry { entry, is_replay: true },
                Plan::Run(call) => {
                    let entry = call.entry.clone();
                    jobs.push(Job::Run(call));
                    From::Entry { entry, is_replay: false }
                }
                Plan::Ask(call) => {
                    let entry = self.suspend(&mut data, &call.entry);
                    jobs.push(Job::Ask(call));
                    From::Entry { entry, is_replay: false }
                }
            };
            slots.push_back(Slot { call_id, name, from, trace });
        }
        self.save_soon(&mut data);
        drop(data);
        if !jobs.is_empty() {
            start(self.clone().run_all(jobs));
        }
        Batch { core: self.clone(), slots, pending: None }
    }

    /// Calls that only read run together; one that writes waits for those before it and holds those after it.
    async fn run_all(self: Arc<Self>, mut jobs: Vec<Job>) {
        // Most messages hold one call.
        if jobs.len() == 1
            && let Some(Job::Run(call)) = jobs.pop_if(|job| matches!(job, Job::Run(_)))
        {
            return self.run_call(call).await;
        }
        Box::pin(self.run_in_order(jobs)).await;
    }

    async fn run_in_order(self: Arc<Self>, jobs: Vec<Job>) {
        let mut together = Vec::new();
        for job in jobs {
            match job {
                Job::Run(call) if call.entry.writes => {
                    join_all(std::mem::take(&mut together)).await;
                    self.run_call(call).await;
                }
                Job::Run(call) => together.push(self.run_call(call)),
                // Asking is quick, and what a person decides comes after this message anyway.
                Job::Ask(call) => self.ask(call).await,
            }
        }
        join_all(together).await;
    }

    fn refuse_excess(&self, data: &mut SessionData, call: Call) -> Slot {
        let most = self.shared.policy.max_calls_per_message;
        self.refuse_unread(data, call, |_| {
            refusal_error(ErrorType::BudgetExceeded, format!("A message may hold {most} calls."))
        })
    }

    /// The answer of a call that no gate has seen.
    fn refuse_unread(&self, data: &mut SessionData, call: Call, why: impl Fn(&str) -> ToolError) -> Slot {
        let response = Arc::new(self.snapshot.refuse(&call.name, why(&call.name), self.now()));
        let call_id = data.id_of(&call);
        self.audit_unexecuted(data, &call, &call_id, None, &response, &Trace::default(), Some("refused"));
        Slot { call_id, name: call.name.into(), from: From::Refusal(response), trace: None }
    }
}

/// Runs a future to its end whatever becomes of the caller. Most calls end at the first step, which saves a task.
pub(super) fn start(future: impl Future<Output = ()> + Send + 'static) {
    let mut future: Pin<Box<dyn Future<Output = ()> + Send>> = Box::pin(future);
    if future.as_mut().poll(&mut Context::from_waker(Waker::noop())).is_pending() {
        tokio::spawn(future);
    }
}

impl Batch {
    /// A batch whose calls are still being judged.
    pub(super) fn pending(core: &Arc<SessionCore>, batch: oneshot::Receiver<Batch>) -> Self {
        Self { core: core.clone(), slots: VecDeque::new(), pending: Some(batch) }
    }

    /// The next reply, in the order of the calls.
    pub async fn next(&mut self) -> Option<Reply> {
        if let Some(pending) = &mut self.pending {
            let admitted = pending.await;
            self.pending = None;
            self.slots = admitted.map(|mut batch| std::mem::take(&mut batch.slots)).unwrap_or_default();
        }
        let slot = self.slots.front()?;
        let update = match &slot.from {
            From::Refusal(response) => CallUpdate::Answered(response.clone()),
            From::Entry { entry, is_replay } => entry.wait_for_update(*is_replay).await,
        };
        // Taken out only now: a future that is dropped while it waits loses nothing.
        let slot = self.slots.pop_front()?;
        Some(match update {
            CallUpdate::AwaitingConfirmation(request) => {
                Reply::AwaitingConfirmation { call_id: slot.call_id, name: slot.name, request }
            }
            CallUpdate::Answered(response) => Reply::Answer(self.answer(slot, response)),
        })
    }

    /// Every reply, in the order of the calls.
    pub async fn all(mut self) -> Vec<Reply> {
        let mut replies = Vec::with_capacity(self.slots.len().max(1));
        while let Some(reply) = self.next().await {
            replies.push(reply);
        }
        replies
    }

    fn answer(&self, slot: Slot, response: Arc<ToolResponse>) -> Answer {
        let is_wanted = !is_cancelled(&response) && !slot.entry().is_some_and(|entry| entry.is_cancelled());
        let response = match &slot.from {
            From::Entry { entry, is_replay: true } => Arc::new(replayed(&response, entry.turn)),
            _ => response,
        };
        let (call_id, name) = (slot.call_id.clone(), slot.name.clone());
        let trace = match &slot.from {
            From::Entry { entry, is_replay: false } => entry.trace(),
            From::Entry { .. } | From::Refusal(_) => slot.trace.clone(),
        };
        let guard = DeliveryGuard::new(&self.core, slot.pending());
        Answer { call_id, name, response, trace, is_wanted, guard }
    }
}

impl Drop for Batch {
    fn drop(&mut self) {
        for slot in self.slots.drain(..) {
            self.core.keep_undelivered(slot.pending());
        }
    }
}

impl Slot {
    fn entry(&self) -> Option<&Arc<Entry>> {
        match &self.from {
            From::Refusal(_) => None,
            From::Entry { entry, .. } => Some(entry),
        }
    }

    fn pending(self) -> PendingAnswer {
        let what = match self.from {
            From::Refusal(response) => AnswerSource::Refusal(response),
            From::Entry { entry, is_replay: false } => AnswerSource::Call(entry),
            From::Entry { entry, is_replay: true } => AnswerSource::Replay(entry),
        };
        PendingAnswer { call_id: self.call_id, name: self.name, what }
    }
}

/// A recorded answer, given again.
pub(super) fn replayed(response: &ToolResponse, turn: u64) -> ToolResponse {
    let mut copy = response.clone();
    copy.meta.idempotent_cache_hit = Some(true);
    copy.meta.original_turn = Some(turn);
    copy
}
