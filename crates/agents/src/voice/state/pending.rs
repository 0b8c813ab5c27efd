//! Calls that are under way, and what becomes of them.

use std::collections::{HashSet, VecDeque};
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use futures_util::StreamExt;
use futures_util::stream::FuturesUnordered;
use quarterdeck_runtime::{Batch, Reply};
use tokio::time::Instant;

/// After how long a page is told that a call takes its time.
const SLOW: Duration = Duration::from_millis(1_500);

/// Calls that are under way.
#[derive(Default)]
pub(super) struct Flights {
    waiting: FuturesUnordered<NextReply>,
    /// Calls without an answer.
    open: Vec<Open>,
    /// Those that the provider has taken back, of the present connection.
    cancelled: HashSet<String>,
}

type NextReply = Pin<Box<dyn Future<Output = (Flight, Option<Reply>)> + Send>>;

/// The calls of one message.
struct Flight {
    batch: Batch,
    generation: u64,
    calls: VecDeque<Arc<AskedCall>>,
}

/// A call as the model made it.
#[derive(Debug)]
pub(super) struct AskedCall {
    /// The id that the provider gave it, if it did.
    pub(super) id: Option<String>,
    pub(super) name: String,
    /// What the page knows it by.
    pub(super) shown: String,
}

struct Open {
    call: Arc<AskedCall>,
    since: Instant,
    is_told: bool,
}

/// A call that has its answer.
pub(super) struct Landed {
    pub(super) call: Arc<AskedCall>,
    pub(super) reply: Reply,
    /// The connection that asked.
    pub(super) generation: u64,
    /// Whether every other call of the message has its answer.
    pub(super) is_last: bool,
}

impl Flights {
    /// Follows the calls of a message.
    pub(super) fn add(&mut self, batch: Batch, calls: Vec<Arc<AskedCall>>, generation: u64) {
        let since = Instant::now();
        self.open.extend(calls.iter().map(|call| Open { call: call.clone(), since, is_told: false }));
        self.follow(Flight { batch, generation, calls: calls.into() });
    }

    fn follow(&mut self, mut flight: Flight) {
        self.waiting.push(Box::pin(async move {
            let reply = flight.batch.next().await;
            (flight, reply)
        }));
    }

    pub(super) fn is_empty(&self) -> bool {
        self.open.is_empty()
    }

    /// The next call that has its answer.
    pub(super) fn poll_landed(&mut self, context: &mut Context<'_>) -> Poll<Landed> {
        while let Poll::Ready(Some((mut flight, reply))) = self.waiting.poll_next_unpin(context) {
            let (Some(reply), Some(call)) = (reply, flight.calls.pop_front()) else { continue };
            self.open.retain(|open| !Arc::ptr_eq(&open.call, &call));
            let (generation, is_last) = (flight.generation, flight.calls.is_empty());
            if !is_last {
                self.follow(flight);
            }
            return Poll::Ready(Landed { call, reply, generation, is_last });
        }
        Poll::Pending
    }

    /// The provider takes calls back: it wants no answer.
    pub(super) fn cancel(&mut self, ids: &[String]) {
        let open = |id: &&String| self.open.iter().any(|open| open.call.id.as_ref() == Some(id));
        let cancelled: Vec<_> = ids.iter().filter(open).cloned().collect();
        self.cancelled.extend(cancelled);
    }

    /// Whether the provider has taken a call back. It is asked once.
    pub(super) fn was_cancelled(&mut self, call: &AskedCall) -> bool {
        call.id.as_ref().is_some_and(|id| self.cancelled.remove(id))
    }

    /// Nobody is there any more who could have taken calls back.
    pub(super) fn forget_cancelled(&mut self) {
        self.cancelled.clear();
    }

    /// Calls that have become slow, each once.
    pub(super) fn slow(&mut self, now: Instant) -> Vec<Arc<AskedCall>> {
        let slow = self.open.iter_mut().filter(|open| !open.is_told && now - open.since >= SLOW);
        slow.map(|open| {
            open.is_told = true;
            open.call.clone()
        })
        .collect()
    }
}
