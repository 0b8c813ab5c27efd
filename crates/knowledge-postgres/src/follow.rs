//! Following: a node notices that another one has built, and loads that while it searches what it has.

use std::time::Duration;

use futures_util::StreamExt;
use quarterdeck_contracts::{Change, ChangeEvent, Changes, Store};
use quarterdeck_knowledge::{KnowledgeBase, ScoreThresholds};
use tokio::time::{Instant, timeout_at};

use crate::{Generation, KnowledgeDatabase, KnowledgeError};

/// The topic of changes of the base.
pub const TOPIC: &str = "knowledge";
/// A notification may be lost.
const POLL_INTERVAL: Duration = Duration::from_secs(10);

/// Tells the other nodes that there is a new base.
pub fn announce(store: &dyn Store, generation: i64) {
    store.notify(Change { topic: TOPIC.to_owned(), key: generation.to_string() });
}

impl KnowledgeDatabase {
    /// Keeps a base up to date for as long as it runs. `loaded` is what the base has already.
    pub async fn follow(self, base: KnowledgeBase, mut loaded: Option<i64>, mut changes: Changes) {
        let mut is_failing = false;
        loop {
            match self.catch_up(&base, loaded).await {
                Ok(Some(generation)) => {
                    tracing::info!(
                        generation = generation.number,
                        records = generation.records,
                        "knowledge base loaded"
                    );
                    loaded = Some(generation.number);
                    is_failing = false;
                }
                Ok(None) => is_failing = false,
                Err(error) if is_failing => tracing::debug!(%error, "knowledge base not loaded"),
                Err(error) => {
                    tracing::warn!(%error, "the new knowledge base cannot be loaded; the old one is searched");
                    is_failing = true;
                }
            }
            wait(&mut changes).await;
        }
    }

    /// Loads the current base if it is another one than `loaded`, and puts it in place.
    pub async fn catch_up(
        &self,
        base: &KnowledgeBase,
        loaded: Option<i64>,
    ) -> Result<Option<Generation>, KnowledgeError> {
        match self.generation().await? {
            Some(current) if Some(current.number) != loaded => {}
            _ => return Ok(None),
        }
        let Some(next) = self.load(ScoreThresholds::default()).await? else { return Ok(None) };
        base.adopt(next.base);
        Ok(Some(next.generation))
    }
}

/// Until something may have changed.
async fn wait(changes: &mut Changes) {
    let until = Instant::now() + POLL_INTERVAL;
    loop {
        match timeout_at(until, changes.next()).await {
            Ok(Some(ChangeEvent::Changed(change))) if change.topic != TOPIC => {}
            // The store was closed; polling goes on until the node ends.
            Ok(None) => return tokio::time::sleep_until(until).await,
            _ => return,
        }
    }
}
