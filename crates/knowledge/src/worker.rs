//! The thread on which questions are embedded: an encoder holds its thread for milliseconds, and async callers must not
//! be held.

use std::future::Future;
use std::pin::Pin;
use std::sync::mpsc::{SyncSender, sync_channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll, Waker};
use std::thread;

use quarterdeck_contracts::{EmbedError, Embedder};

/// Questions that wait for the thread.
const MAX_PENDING: usize = 256;

type Answer = Result<Vec<f32>, EmbedError>;

/// One thread; it ends when this is dropped.
pub(crate) struct Worker {
    jobs: SyncSender<(String, Reply)>,
}

impl Worker {
    pub(crate) fn new(embedder: Arc<dyn Embedder>) -> std::io::Result<Self> {
        let (jobs, waiting) = sync_channel::<(String, Reply)>(MAX_PENDING);
        thread::Builder::new().name("knowledge-embed".to_owned()).spawn(move || {
            for (text, reply) in waiting {
                reply.send(embed(embedder.as_ref(), &text));
            }
        })?;
        Ok(Self { jobs })
    }

    /// The vector of a text, when the thread gets to it.
    pub(crate) fn embed(&self, text: String) -> Pending {
        let slot = Arc::new(Mutex::new(Slot::default()));
        let reply = Reply(Arc::clone(&slot));
        // A full queue drops the reply, and a dropped reply is an answer.
        let _ = self.jobs.try_send((text, reply));
        Pending(slot)
    }
}

fn embed(embedder: &dyn Embedder, text: &str) -> Answer {
    let mut vectors = crate::embed::embed(embedder, &[text])?;
    vectors.pop().ok_or_else(|| EmbedError("it gave no vector".to_owned()))
}

#[derive(Default)]
struct Slot {
    answer: Option<Answer>,
    waker: Option<Waker>,
}

struct Reply(Arc<Mutex<Slot>>);

impl Reply {
    fn send(&self, answer: Answer) {
        let mut slot = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        slot.answer.get_or_insert(answer);
        let waker = slot.waker.take();
        drop(slot);
        if let Some(waker) = waker {
            waker.wake();
        }
    }
}

impl Drop for Reply {
    fn drop(&mut self) {
        // The first answer stands.
        self.send(Err(EmbedError("too many questions are waiting".to_owned())));
    }
}

pub(crate) struct Pending(Arc<Mutex<Slot>>);

impl Future for Pending {
    type Output = Answer;

    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Answer> {
        let mut slot = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        match slot.answer.clone() {
            Some(answer) => Poll::Ready(answer),
            None => {
                slot.waker = Some(context.waker().clone());
                Poll::Pending
            }
        }
    }
}
