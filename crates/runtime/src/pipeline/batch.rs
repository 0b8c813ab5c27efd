//! The calls of one message: admitted together, run in their order, answered in their order.

use std::collections::VecDeque;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Waker};

use futures_util::future::{Either, join_all};
use quarterdeck_contracts::{ErrorType, ToolError, ToolResponse};
use tokio::sync::oneshot;

use super::admit::{Admission, admit};
use super::call::{Approval, ToolCall};
use super::precheck::{check_beforehand, is_quick};
use super::run;
use super::tool_span::{CallEnd, ToolSpan};
use crate::call::Call;
use crate::confirmation::request;
use crate::envelope::{cancelled, refusal_error, replayed};
use crate::gates::{CheckedArguments, Trace};
use crate::latency::Schedule;
use crate::ledger::CallUpdate;
use crate::session::{
    Answer, AnswerOwner, AnswerSource, AuditRecord, Connection, PendingAnswer, Reply, SessionCore,
    SessionData, UnadmittedMessage, is_cancelled,
};

/// The answers of one message's calls, in the order of the calls. The calls go on when it is dropped, and their answers
/// are handed to the session's next connection.
pub struct Batch {
    core: Arc<SessionCore>,
    answers: VecDeque<PendingAnswer>,
    /// Whether a call of it is expected to take long enough that something should be said meanwhile.
    expects_wait: bool,
    /// The same batch, once the arguments of its calls have been checked and they are admitted.
    pending: Option<oneshot::Receiver<Batch>>,
}

/// A call as it was handed over, with what is known about it before it is admitted.
struct Submission {
    call: Call,
    checked: Option<CheckedArguments>,
    is_cancelled: bool,
}

impl Submission {
    fn unchecked(call: Call) -> Self {
        Self { call, checked: None, is_cancelled: false }
    }
}

impl Connection {
    /// Hands over the calls of one message. They are admitted as a whole, in order, before this returns; if checking
    /// their arguments takes long, as soon as that is done.
    pub fn submit(&self, calls: Vec<Call>) -> Batch {
        let core = &self.core;
        let read = calls.iter().take(core.shared.policy.max_calls_per_message);
        if read.clone().all(|call| is_quick(core, call)) {
            return admit_message(core, calls.into_iter().map(Submission::unchecked));
        }
        let message = UnadmittedMessage::new(&calls);
        core.lock().unadmitted.push(message.clone());
        let (sender, batch) = oneshot::channel();
        tokio::spawn(check_and_admit(core.clone(), calls, message, sender));
        Batch { core: core.clone(), answers: VecDeque::new(), expects_wait: false, pending: Some(batch) }
    }
}

async fn check_and_admit(
    core: Arc<SessionCore>,
    calls: Vec<Call>,
    message: Arc<UnadmittedMessage>,
    sender: oneshot::Sender<Batch>,
) {
    let max_calls = core.shared.policy.max_calls_per_message;
    let mut submissions = Vec::with_capacity(calls.len());
    for (index, call) in calls.into_iter().enumerate() {
        let checked = if index < max_calls { check_beforehand(&core, &call).await } else { None };
        submissions.push(Submission { call, checked, is_cancelled: false });
    }
    core.lock().unadmitted.retain(|other| !Arc::ptr_eq(other, &message));
    for (index, submission) in submissions.iter_mut().enumerate() {
        submission.is_cancelled = message.is_cancelled(index);
    }
    // A batch that is not waited for any more hands its answers to the next connection when it is dropped.
    let _ = sender.send(admit_message(&core, submissions.into_iter()));
}

/// Admits the calls of one message and starts those that may run.
fn admit_message(core: &Arc<SessionCore>, submissions: impl ExactSizeIterator<Item = Submission>) -> Batch {
    let max_calls = core.shared.policy.max_calls_per_message;
    let mut admitted = Vec::new();
    let mut answers = VecDeque::with_capacity(submissions.len());
    let mut data = core.lock();
    for (index, Submission { call, checked, is_cancelled }) in submissions.enumerate() {
        if index >= max_calls {
            let message = format!("A message may hold {max_calls} calls.");
            let error = refusal_error(ErrorType::BudgetExceeded, message);
            answers.push_back(refuse_unread(core, &mut data, call, error));
            continue;
        }
        if is_cancelled {
            let error = cancelled(&call.name);
            answers.push_back(refuse_unread(core, &mut data, call, error));
            continue;
        }
        let call = ToolCall::new(core, &mut data, call, Vec::new());
        match admit(core, &mut data, call, checked.as_ref()) {
            Admission::Answered(answer) => answers.push_back(answer),
            Admission::Admitted(call) => {
                answers.push_back(PendingAnswer::of_call(&call.entry));
                admitted.push(call);
            }
        }
    }
    core.save_soon(&mut data);
    drop(data);
    let expects_wait = admitted.iter().any(|call: &ToolCall| call.schedule == Some(Schedule::Filler));
    if !admitted.is_empty() {
        start(run_all(core.clone(), admitted));
    }
    Batch { core: core.clone(), answers, expects_wait, pending: None }
}

/// The answer of a call that no gate has seen.
fn refuse_unread(core: &SessionCore, data: &mut SessionData, call: Call, error: ToolError) -> PendingAnswer {
    let response = core.refusal(&call.name, error);
    let call_id = data.next_call_id(&call);
    let end = CallEnd { tool: &call.name, args: &call.args, trace: &Trace::default(), response: &response };
    ToolSpan::begin_unread(core, &call.name, &call_id, call.origin.clone()).record_end(core, end);
    core.audit_call(&AuditRecord {
        call_id: &call_id,
        turn: data.ledger.turn_number(),
        entry: None,
        tool: &call.name,
        args: &call.args,
        trace: &Trace::default(),
        response: &response,
        how: Some("refused"),
    });
    PendingAnswer { call_id, name: call.name.into(), source: AnswerSource::Refusal(response), trace: None }
}

async fn run_all(core: Arc<SessionCore>, mut calls: Vec<ToolCall>) {
    // Most messages hold one call.
    if calls.len() == 1
        && let Some(call) = calls.pop_if(|call| !matches!(call.approval, Approval::Pending { .. }))
    {
        return run(&core, call).await;
    }
    Box::pin(run_in_order(&core, calls)).await;
}

/// Calls that only read run together; one that writes waits for those before it and holds those after it.
async fn run_in_order(core: &Arc<SessionCore>, calls: Vec<ToolCall>) {
    let mut together = Vec::new();
    for call in calls {
        if matches!(call.approval, Approval::Pending { .. }) {
            // What the user decides comes after this message anyway. Until they are asked, the handler only reads.
            together.push(Either::Left(request(core, call)));
        } else if call.entry.writes {
            join_all(std::mem::take(&mut together)).await;
            run(core, call).await;
        } else {
            together.push(Either::Right(run(core, call)));
        }
    }
    join_all(together).await;
}

/// Runs a future to its end even if the caller is dropped. Most calls end at the first poll, which saves a task.
pub(crate) fn start(future: impl Future<Output = ()> + Send + 'static) {
    let mut future: Pin<Box<dyn Future<Output = ()> + Send>> = Box::pin(future);
    if future.as_mut().poll(&mut Context::from_waker(Waker::noop())).is_pending() {
        tokio::spawn(future);
    }
}

impl Batch {
    /// Whether the user is expected to wait so long for a call that something should be said meanwhile. Known as soon as
    /// the calls are admitted, before the first reply; only calls of voice sessions are.
    pub async fn expects_wait(&mut self) -> bool {
        self.wait_for_admission().await;
        self.expects_wait
    }

    /// The next reply, in the order of the calls.
    pub async fn next(&mut self) -> Option<Reply> {
        self.wait_for_admission().await;
        let update = self.answers.front()?.wait_for_update().await;
        // Taken out only now: a future that is dropped while it waits loses nothing.
        let answer = self.answers.pop_front()?;
        Some(match update {
            CallUpdate::AwaitingConfirmation(request) => {
                Reply::AwaitingConfirmation { call_id: answer.call_id, name: answer.name, request }
            }
            CallUpdate::Answered(response) => Reply::Answer(self.answer(answer, response)),
        })
    }

    async fn wait_for_admission(&mut self) {
        let Some(pending) = &mut self.pending else { return };
        let admitted = pending.await;
        self.pending = None;
        if let Ok(mut batch) = admitted {
            self.answers = std::mem::take(&mut batch.answers);
            self.expects_wait = batch.expects_wait;
        }
    }

    /// Every reply, in the order of the calls.
    pub async fn all(mut self) -> Vec<Reply> {
        let mut replies = Vec::with_capacity(self.answers.len().max(1));
        while let Some(reply) = self.next().await {
            replies.push(reply);
        }
        replies
    }

    fn answer(&self, mut pending: PendingAnswer, response: Arc<ToolResponse>) -> Answer {
        let is_wanted =
            !is_cancelled(&response) && !pending.entry().is_some_and(|entry| entry.is_cancelled());
        let (response, trace) = match &pending.source {
            AnswerSource::Replay(entry) => (Arc::new(replayed(&response, entry.turn)), pending.trace.take()),
            AnswerSource::Refusal(_) => (response, pending.trace.take()),
            AnswerSource::Call(entry) | AnswerSource::Confirmed(entry) => (response, entry.trace()),
        };
        Answer::new(&self.core, pending, response, trace, is_wanted)
    }
}

impl Drop for Batch {
    fn drop(&mut self) {
        for answer in self.answers.drain(..) {
            self.core.clone().keep_undelivered(answer);
        }
    }
}
