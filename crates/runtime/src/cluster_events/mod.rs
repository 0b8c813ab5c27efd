//! What other nodes do: blocks, ended sessions, decisions of users, tasks, versions of the registry, records.
//!
//! A node commits a change and tells the others afterwards. What it tells is a hint that may be lost: when some may have
//! been, and every ten seconds besides, what matters to the sessions of this process is read from the tables again.

mod blocks;
mod confirmations;
mod ends;
mod followers;
mod health;
mod tasks;

use std::pin::pin;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use futures_util::StreamExt;
use futures_util::future::{Either, select};
use quarterdeck_contracts::{Change, ChangeEvent, StoreError};
use tokio::sync::Notify;
use tokio::time::MissedTickBehavior;

use crate::orchestrator::Orchestrator;
use crate::shared::Shared;

pub(crate) use ends::{announce_end, request_end};
use followers::Followers;
pub use health::NotificationHealth;
use health::NotificationStats;

/// How often the tables are read although nothing was told.
pub(crate) const POLL_INTERVAL: Duration = Duration::from_secs(10);

/// The kinds of changes that nodes tell each other.
pub mod topic {
    /// A client was blocked; the key is the client.
    pub const BLOCK: &str = "block";
    /// An operator wants a session to end; the key is the session.
    pub const SESSION_END: &str = "session-end";
    /// A user has decided; the key is the session.
    pub const CONFIRMATION: &str = "confirmation";
    /// The loaded versions or the rollout have changed.
    pub const REGISTRY: &str = "registry";
    /// The knowledge base has changed; the key is its generation.
    pub const KNOWLEDGE: &str = "knowledge";
    /// A task has ended, or is to stop; the key is `client/task`.
    pub const TASK: &str = "task";
    /// A node has something to say of itself; the key begins with its kind.
    pub const NODE: &str = "node";
}

/// What a process keeps of the changes of others.
#[derive(Default)]
pub(crate) struct ClusterEvents {
    is_following: AtomicBool,
    followers: Followers,
    stats: NotificationStats,
    /// Wakes those who wait for a task of another node.
    task_changed: Notify,
}

impl ClusterEvents {
    /// Whether this process follows the changes of others, and so is one of several nodes.
    pub(crate) fn is_following(&self) -> bool {
        self.is_following.load(Ordering::Relaxed)
    }
}

impl Shared {
    /// Tells the other nodes of a change that is committed.
    pub(crate) fn announce(&self, topic: &str, key: impl Into<String>) {
        self.store.notify(Change { topic: topic.to_owned(), key: key.into() });
    }
}

impl Orchestrator {
    /// Follows what other nodes change, until the store is closed or the future is dropped. To be run once, by a process
    /// that shares its store.
    pub async fn follow_changes(&self) {
        let events = &self.shared().events;
        events.is_following.store(true, Ordering::Relaxed);
        let mut changes = self.store().watch();
        let _followers = events.followers.start();
        let mut polls = tokio::time::interval(POLL_INTERVAL);
        polls.set_missed_tick_behavior(MissedTickBehavior::Delay);
        loop {
            let next = match select(changes.next(), pin!(polls.tick())).await {
                Either::Left((event, _)) => Some(event),
                Either::Right(_) => None,
            };
            match next {
                Some(Some(ChangeEvent::Changed(change))) => self.apply(&change).await,
                Some(Some(ChangeEvent::Resync)) => {
                    events.stats.count_resync();
                    self.catch_up().await;
                }
                Some(None) => return,
                None => {
                    self.catch_up().await;
                    self.send_echo();
                }
            }
        }
    }

    /// Does what a change means for this process.
    async fn apply(&self, change: &Change) {
        let events = &self.shared().events;
        events.stats.count_received(&change.topic);
        let applied = match change.topic.as_str() {
            topic::BLOCK => self.apply_block(&change.key).await,
            topic::SESSION_END => self.apply_end(&change.key).await,
            topic::CONFIRMATION => self.apply_decisions(&change.key).await,
            topic::TASK => self.apply_task_change(&change.key).await,
            topic::NODE => {
                self.hear_echo(&change.key);
                Ok(0)
            }
            _ => Ok(0),
        };
        if let Err(error) = applied {
            tracing::warn!(topic = change.topic, error = %error, "change of another node could not be read; it is read again");
        }
        events.followers.tell(change);
    }

    /// Reads everything again that another node may have changed. What is found was missed.
    async fn catch_up(&self) {
        let events = &self.shared().events;
        events.followers.tell_all();
        let found = async {
            let mut found = self.apply_all_blocks().await?;
            found += self.apply_all_ends().await?;
            found += self.apply_all_decisions().await?;
            found += self.apply_all_task_changes().await?;
            Ok::<usize, StoreError>(found)
        };
        match found.await {
            Ok(found) => events.stats.count_missed(found),
            Err(error) => tracing::warn!(error = %error, "changes of other nodes could not be read"),
        }
    }
}
