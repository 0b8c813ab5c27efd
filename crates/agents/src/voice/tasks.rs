//! Futures that a call waits for: answers of tool calls, and confirmations being resolved.

use std::collections::VecDeque;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;

use futures_util::stream::{self, BoxStream, FuturesUnordered, SelectAll, StreamExt};
use quarterdeck_runtime::{Answer, Batch, ConfirmationDecision, Reply, Session};

use super::question_tasks::QuestionTasks;
use super::state::RequestedCall;

/// Everything that a call waits for besides its links and the clock.
#[derive(Default)]
pub(super) struct CallTasks {
    pub(super) batches: SelectAll<BoxStream<'static, BatchEvent>>,
    pub(super) confirmations: FuturesUnordered<ConfirmationTask>,
    pub(super) question: QuestionTasks,
}

pub(super) type ConfirmationTask = Pin<Box<dyn Future<Output = ResolvedConfirmation> + Send>>;

pub(super) struct ResolvedConfirmation {
    pub(super) token: String,
    pub(super) answer: Option<Answer>,
}

/// Resolves a confirmation in a task of its own: the decision was made, whatever becomes of the call.
pub(super) fn resolve_confirmation(
    session: Session,
    token: String,
    decision: ConfirmationDecision,
) -> ConfirmationTask {
    let redeemed = token.clone();
    let task = tokio::spawn(async move { session.resolve_confirmation(&redeemed, decision).await });
    Box::pin(async move { ResolvedConfirmation { token, answer: task.await.ok() } })
}

/// What is heard of the tool calls of one message.
pub(super) enum BatchEvent {
    /// The user is expected to wait for one of them. It comes first.
    LongWait {
        calls: Vec<Arc<RequestedCall>>,
    },
    Reply(BatchReply),
}

/// The reply to one tool call of a batch.
pub(super) struct BatchReply {
    pub(super) call: Arc<RequestedCall>,
    pub(super) reply: Reply,
    /// The connection that asked.
    pub(super) generation: u64,
    /// Whether every other call of the batch has its reply.
    pub(super) is_last: bool,
}

/// What becomes of the tool calls of one message: the replies in their order.
pub(super) fn follow_batch(
    mut batch: Batch,
    calls: Vec<Arc<RequestedCall>>,
    generation: u64,
) -> BoxStream<'static, BatchEvent> {
    let waiting = calls.clone();
    let begin = async move {
        let wait = batch.expects_wait().await.then_some(BatchEvent::LongWait { calls: waiting });
        let replies =
            stream::unfold((batch, VecDeque::from(calls)), move |(mut batch, mut calls)| async move {
                let (reply, call) = (batch.next().await?, calls.pop_front()?);
                let is_last = calls.is_empty();
                Some((BatchEvent::Reply(BatchReply { call, reply, generation, is_last }), (batch, calls)))
            });
        stream::iter(wait).chain(replies)
    };
    stream::once(begin).flatten().boxed()
}
