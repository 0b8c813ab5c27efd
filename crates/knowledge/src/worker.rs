//! The thread on which questions are embedded: an encoder holds its thread for milliseconds, and async callers must not
//! be held.

use std::sync::Arc;
use std::sync::mpsc::{SyncSender, sync_channel};
use std::thread;

use futures_channel::oneshot;
use quarterdeck_contracts::Embedder;

use crate::embed::embed;

/// Questions that wait for the thread.
const MAX_PENDING: usize = 256;

type Answer = Option<Vec<f32>>;

/// One thread; it ends when this is dropped.
pub(crate) struct Worker {
    jobs: SyncSender<(String, oneshot::Sender<Answer>)>,
}

impl Worker {
    pub(crate) fn new(embedder: Arc<dyn Embedder>) -> std::io::Result<Self> {
        let (jobs, pending) = sync_channel::<(String, oneshot::Sender<Answer>)>(MAX_PENDING);
        thread::Builder::new().name("knowledge-embed".to_owned()).spawn(move || {
            for (text, answer) in pending {
                let vectors = embed(embedder.as_ref(), &[&text]);
                // A caller that has gone needs no answer.
                let _ = answer.send(vectors.ok().and_then(|mut vectors| vectors.pop()));
            }
        })?;
        Ok(Self { jobs })
    }

    /// The vector of a text; `None` when the model fails or too many questions are waiting.
    pub(crate) async fn embed(&self, text: String) -> Answer {
        let (answer, vector) = oneshot::channel();
        self.jobs.try_send((text, answer)).ok()?;
        vector.await.ok().flatten()
    }
}
