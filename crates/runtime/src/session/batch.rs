//! The calls of one message.

use std::collections::VecDeque;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Waker};

use futures_util::future::join_all;
use quarterdeck_contracts::{ErrorType, ToolError, ToolResponse};
use tokio::sync::oneshot;

use super::admit::{Plan, Planned, Work};
use super::answer::{Answer, Orphan, OrphanOf, Receipt, Reply, is_cancelled};
use super::beforehand::Submitted;
use super::carry_out::cancelled_error;
use super::{Desk, Inner};
use crate::call::Call;
use crate::envelope::before_the_handler;
use crate::gates::Trace;
use crate::ledger::{Entry, News};

/// The answers of one message's calls, in the order of the calls. The calls go on when it is dropped, and their answers
/// are handed to the session's next connection.
pub struct Batch {
    inner: Arc<Inner>,
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
    Run(Work),
    Ask(Work),
}

impl Inner {
    /// Admits the calls of one message and starts them.
    pub(super) fn admit_message(self: &Arc<Self>, calls: impl ExactSizeIterator<Item = Submitted>) -> Batch {
        let mut jobs = Vec::new();
        let mut slots = VecDeque::with_capacity(calls.len());
        let mut desk = self.lock();
        for (index, Submitted { call, judged, is_cancelled }) in calls.enumerate() {
            if index >= self.shared.policy.max_calls_per_message {
                slots.push_back(self.too_many(&mut desk, call));
                continue;
            }
            if is_cancelled {
                slots.push_back(self.unadmitted(&mut desk, call, cancelled_error));
                continue;
            }
            let Planned { call_id, name, plan, trace } =
                self.admit(&mut desk, call, judged.as_ref(), Vec::new());
            let from = match plan {
                Plan::Refused(response) => From::Refusal(response),
                Plan::Joined(entry) => From::Entry { entry, is_replay: true },
                Plan::Run(work) => {
                    let entry = work.entry.clone();
                    jobs.push(Job::Run(work));
                    From::Entry { entry, is_replay: false }
                }
                Plan::Ask(work) => {
                    let entry = self.suspend(&mut desk, &work.entry);
                    jobs.push(Job::Ask(work));
                    From::Entry { entry, is_replay: false }
                }
            };
            slots.push_back(Slot { call_id, name, from, trace });
        }
        self.save_soon(&mut desk);
        drop(desk);
        if !jobs.is_empty() {
            start(self.clone().work_through(jobs));
        }
        Batch { inner: self.clone(), slots, pending: None }
    }

    /// Calls that only read run together; one that writes waits for those before it and holds those after it.
    async fn work_through(self: Arc<Self>, mut jobs: Vec<Job>) {
        // Most messages hold one call.
        if jobs.len() == 1
            && let Some(Job::Run(work)) = jobs.pop_if(|job| matches!(job, Job::Run(_)))
        {
            return self.carry_out(work).await;
        }
        Box::pin(self.work_through_many(jobs)).await;
    }

    async fn work_through_many(self: Arc<Self>, jobs: Vec<Job>) {
        let mut together = Vec::new();
        for job in jobs {
            match job {
                Job::Run(work) if work.entry.writes => {
                    join_all(std::mem::take(&mut together)).await;
                    self.carry_out(work).await;
                }
                Job::Run(work) => together.push(self.carry_out(work)),
                // Asking is quick, and what a person decides comes after this message anyway.
                Job::Ask(work) => self.ask(work).await,
            }
        }
        join_all(together).await;
    }

    fn too_many(&self, desk: &mut Desk, call: Call) -> Slot {
        let most = self.shared.policy.max_calls_per_message;
        self.unadmitted(desk, call, |_| {
            before_the_handler(ErrorType::BudgetExceeded, format!("A message may hold {most} calls."))
        })
    }

    /// The answer of a call that no gate has seen.
    fn unadmitted(&self, desk: &mut Desk, call: Call, why: impl Fn(&str) -> ToolError) -> Slot {
        let response = Arc::new(self.snapshot.refuse(&call.name, why(&call.name), self.now()));
        let call_id = desk.id_of(&call);
        self.tell_call(desk, &call, &call_id, None, &response, &Trace::default(), Some("refused"));
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
    pub(super) fn pending(inner: &Arc<Inner>, batch: oneshot::Receiver<Batch>) -> Self {
        Self { inner: inner.clone(), slots: VecDeque::new(), pending: Some(batch) }
    }

    /// The next reply, in the order of the calls.
    pub async fn next(&mut self) -> Option<Reply> {
        if let Some(pending) = &mut self.pending {
            let admitted = pending.await;
            self.pending = None;
            self.slots = admitted.map(|mut batch| std::mem::take(&mut batch.slots)).unwrap_or_default();
        }
        let slot = self.slots.front()?;
        let news = match &slot.from {
            From::Refusal(response) => News::Answered(response.clone()),
            From::Entry { entry, is_replay } => entry.wait_for_news(*is_replay).await,
        };
        // Taken out only now: a future that is dropped while it waits loses nothing.
        let slot = self.slots.pop_front()?;
        Some(match news {
            News::Asked(request) => {
                Reply::AwaitingConfirmation { call_id: slot.call_id, name: slot.name, request }
            }
            News::Answered(response) => Reply::Answer(self.answer(slot, response)),
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
        let receipt = Receipt::new(&self.inner, slot.orphan());
        Answer { call_id, name, response, trace, is_wanted, receipt }
    }
}

impl Drop for Batch {
    fn drop(&mut self) {
        for slot in self.slots.drain(..) {
            self.inner.adopt(slot.orphan());
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

    fn orphan(self) -> Orphan {
        let what = match self.from {
            From::Refusal(response) => OrphanOf::Refusal(response),
            From::Entry { entry, is_replay: false } => OrphanOf::Call(entry),
            From::Entry { entry, is_replay: true } => OrphanOf::Replay(entry),
        };
        Orphan { call_id: self.call_id, name: self.name, what }
    }
}

/// A recorded answer, given again.
pub(super) fn replayed(response: &ToolResponse, turn: u64) -> ToolResponse {
    let mut copy = response.clone();
    copy.meta.idempotent_cache_hit = Some(true);
    copy.meta.original_turn = Some(turn);
    copy
}
