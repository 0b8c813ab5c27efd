//! Changes that the watchers of one process tell each other.

use std::sync::{Mutex, PoisonError};

use quarterdeck_contracts::{Change, ChangeEvent, Changes};
use tokio::sync::broadcast;
use tokio::sync::broadcast::error::RecvError;

/// A watcher that is further behind is told to read everything again.
const MAX_WAITING: usize = 1_024;

pub(crate) struct LocalChanges {
    /// `None` once the store is closed.
    sender: Mutex<Option<broadcast::Sender<ChangeEvent>>>,
}

impl Default for LocalChanges {
    fn default() -> Self {
        Self { sender: Mutex::new(Some(broadcast::Sender::new(MAX_WAITING))) }
    }
}

impl LocalChanges {
    pub(crate) fn notify(&self, change: Change) {
        self.send(ChangeEvent::Changed(change));
    }

    pub(crate) fn send(&self, event: ChangeEvent) {
        if let Some(sender) = &*self.sender.lock().unwrap_or_else(PoisonError::into_inner) {
            // Without a watcher there is no one to tell.
            drop(sender.send(event));
        }
    }

    pub(crate) fn watch(&self) -> Changes {
        let sender = self.sender.lock().unwrap_or_else(PoisonError::into_inner);
        let Some(receiver) = sender.as_ref().map(broadcast::Sender::subscribe) else {
            return Box::pin(futures_util::stream::empty());
        };
        Box::pin(futures_util::stream::unfold(receiver, async |mut receiver| match receiver.recv().await {
            Ok(event) => Some((event, receiver)),
            Err(RecvError::Lagged(_)) => Some((ChangeEvent::Resync, receiver)),
            Err(RecvError::Closed) => None,
        }))
    }

    /// Ends every watcher's stream.
    #[cfg_attr(not(feature = "postgres"), expect(dead_code, reason = "other engines end with their value"))]
    pub(crate) fn close(&self) {
        self.sender.lock().unwrap_or_else(PoisonError::into_inner).take();
    }
}
