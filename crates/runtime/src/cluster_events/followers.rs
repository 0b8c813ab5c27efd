//! Parts outside of the orchestrator that follow a topic: the registry's versions, the knowledge base.
//!
//! Each has a task of its own, so that loading a version holds up no block. A part that is busy hears of everything that
//! came meanwhile as one change.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use quarterdeck_contracts::Change;
use quarterdeck_contracts::handler::BoxFuture;
use tokio::sync::Notify;
use tokio::task::JoinSet;

use crate::orchestrator::Orchestrator;

type Follow = dyn Fn(Option<String>) -> BoxFuture<()> + Send + Sync;

/// Those who follow a topic.
#[derive(Default)]
pub(super) struct Followers(Mutex<Vec<Arc<Follower>>>);

struct Follower {
    topic: &'static str,
    follow: Box<Follow>,
    pending: Mutex<Pending>,
    is_pending: Notify,
}

/// What a follower has not been told yet.
#[derive(Debug, Default, PartialEq, Eq)]
enum Pending {
    #[default]
    Nothing,
    Key(String),
    /// Several, or it is not known which.
    Any,
}

impl Pending {
    fn add(&mut self, key: &str) {
        match self {
            Self::Nothing => *self = Self::Key(key.to_owned()),
            Self::Key(known) if known == key => {}
            Self::Key(_) | Self::Any => *self = Self::Any,
        }
    }
}

impl Orchestrator {
    /// Has a part follow a topic of [`crate::topic`]: it is called with the key of a change, or with nothing when some may
    /// have been missed, and then reads what there is. To be called before [`Orchestrator::follow_changes`].
    pub fn on_change(
        &self,
        topic: &'static str,
        follow: impl Fn(Option<String>) -> BoxFuture<()> + Send + Sync + 'static,
    ) {
        self.shared().events.followers.lock().push(Arc::new(Follower {
            topic,
            follow: Box::new(follow),
            pending: Mutex::default(),
            is_pending: Notify::new(),
        }));
    }
}

impl Followers {
    /// Runs the followers until what is returned is dropped.
    pub(super) fn start(&self) -> JoinSet<()> {
        self.lock().iter().map(|follower| follower.clone().run()).collect()
    }

    pub(super) fn tell(&self, change: &Change) {
        for follower in self.lock().iter().filter(|follower| follower.topic == change.topic) {
            follower.pending().add(&change.key);
            follower.is_pending.notify_one();
        }
    }

    /// Some changes may have been missed.
    pub(super) fn tell_all(&self) {
        for follower in self.lock().iter() {
            *follower.pending() = Pending::Any;
            follower.is_pending.notify_one();
        }
    }

    fn lock(&self) -> MutexGuard<'_, Vec<Arc<Follower>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Follower {
    async fn run(self: Arc<Self>) {
        loop {
            self.is_pending.notified().await;
            let pending = std::mem::take(&mut *self.pending());
            match pending {
                Pending::Nothing => {}
                Pending::Key(key) => (self.follow)(Some(key)).await,
                Pending::Any => (self.follow)(None).await,
            }
        }
    }

    fn pending(&self) -> MutexGuard<'_, Pending> {
        self.pending.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn changes_that_come_while_a_follower_is_busy_become_one() {
        let mut pending = Pending::default();
        pending.add("1");
        pending.add("1");
        assert_eq!(pending, Pending::Key("1".into()));
        pending.add("2");
        assert_eq!(pending, Pending::Any);
        pending.add("1");
        assert_eq!(pending, Pending::Any);
    }
}
