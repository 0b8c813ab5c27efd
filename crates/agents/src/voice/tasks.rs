//! Futures that a call waits for: answers of tool calls, and confirmations being resolved.

use std::collections::VecDeque;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use futures_util::StreamExt;
use futures_util::stream::FuturesUnordered;
use quarterdeck_contracts::ConfirmationAnswer;
use quarterdeck_runtime::{Answer, Batch, Reply, Session};

use super::state::RequestedCall;

/// Resolves a confirmation.
pub(super) type ConfirmationTask = Pin<Box<dyn Future<Output = ResolvedConfirmation> + Send>>;

pub(super) struct ResolvedConfirmation {
    pub(super) token: String,
    pub(super) answer: Option<Answer>,
}

/// Resolves a confirmation in a task of its own: the decision was made, whatever becomes of the call.
pub(super) fn resolve_confirmation(
    session: Session,
    token: String,
    answer: ConfirmationAnswer,
) -> ConfirmationTask {
    let redeemed = token.clone();
    let task = tokio::spawn(async move { session.resolve_confirmation(&redeemed, answer).await });
    Box::pin(async move { ResolvedConfirmation { token, answer: task.await.ok() } })
}

/// The batches of tool calls that are running.
#[derive(Default)]
pub(super) struct RunningBatches {
    waiting: FuturesUnordered<NextReply>,
}

type NextReply = Pin<Box<dyn Future<Output = (RunningBatch, Option<Reply>)> + Send>>;

/// The calls of one message.
struct RunningBatch {
    batch: Batch,
    generation: u64,
    calls: VecDeque<Arc<RequestedCall>>,
}

pub(super) struct BatchReply {
    pub(super) call: Arc<RequestedCall>,
    pub(super) reply: Reply,
    /// The connection that asked.
    pub(super) generation: u64,
    /// Whether every other call of the message has its answer.
    pub(super) is_last: bool,
}

impl RunningBatches {
    pub(super) fn add(&mut self, batch: Batch, calls: Vec<Arc<RequestedCall>>, generation: u64) {
        self.wait_for(RunningBatch { batch, generation, calls: calls.into() });
    }

    fn wait_for(&mut self, mut running: RunningBatch) {
        self.waiting.push(Box::pin(async move {
            let reply = running.batch.next().await;
            (running, reply)
        }));
    }

    pub(super) fn is_empty(&self) -> bool {
        self.waiting.is_empty()
    }

    pub(super) fn poll_reply(&mut self, context: &mut Context<'_>) -> Poll<BatchReply> {
        while let Poll::Ready(Some((mut running, reply))) = self.waiting.poll_next_unpin(context) {
            let (Some(reply), Some(call)) = (reply, running.calls.pop_front()) else { continue };
            let (generation, is_last) = (running.generation, running.calls.is_empty());
            if !is_last {
                self.wait_for(running);
            }
            return Poll::Ready(BatchReply { call, reply, generation, is_last });
        }
        Poll::Pending
    }
}
