//! Rate limits that hold over all nodes, counted in the store that they share.
//!
//! A message is counted in a commit of its own. Requests are more: a node takes places for several of them at a time, more
//! at once the faster an address uses them up, and places that were not used are lost after a while. The bound over all
//! nodes is never exceeded; an address that comes in bursts may meet it a little early.

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use quarterdeck_contracts::{Commit, CommitError, Store, StoreError, Take};

const WINDOW: Duration = Duration::from_secs(60);
/// For how long places that were taken can be used.
const PLACES_LIFETIME: Duration = Duration::from_secs(10);
/// The most that a node takes at once is this fraction of the limit.
const MAX_BLOCK_FRACTION: u64 = 8;
/// How long an address that was refused is refused without asking again, at most.
const REFUSAL_TIME: Duration = Duration::from_secs(1);
/// How long the store may take, and for how long it is not asked after it has failed. Meanwhile each node counts alone.
const STORE_TIMEOUT: Duration = Duration::from_secs(1);
const MAX_ADDRESSES: usize = 50_000;

/// Why a place was not given.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum NoPlace {
    /// How long to wait.
    Exhausted(Duration),
    /// The store did not say.
    Store(StoreError),
}

/// Counts a message of a client.
pub(crate) async fn count_message(
    store: &dyn Store,
    client: &str,
    per_minute: u32,
    now_ms: u64,
) -> Result<(), NoPlace> {
    let key = format!("server/messages/{client}");
    take(store, key, 1, (u64::from(per_minute.max(1)), WINDOW), now_ms).await
}

/// The places that this node has taken for requests, by address.
pub(crate) struct RequestPlaces {
    per_minute: u64,
    by_address: Mutex<HashMap<String, Places>>,
    /// When the store is asked again after it has failed.
    store_is_back: Mutex<Option<Instant>>,
}

/// Places of one address.
#[derive(Debug)]
struct Places {
    left: u64,
    /// How many were taken at once, the last time.
    block: u64,
    /// When the oldest of them were asked for.
    since: Instant,
    refused_until: Option<Instant>,
}

/// What is known before the store is asked.
enum Known {
    Place,
    Refused(Duration),
    /// So many are to be taken.
    Ask(u64),
}

impl RequestPlaces {
    pub(crate) fn per_minute(per_minute: u32) -> Self {
        let per_minute = u64::from(per_minute.max(1));
        Self { per_minute, by_address: Mutex::default(), store_is_back: Mutex::default() }
    }

    /// Takes one place for a request of an address.
    pub(crate) async fn acquire(&self, store: &dyn Store, address: &str, now_ms: u64) -> Result<(), NoPlace> {
        self.acquire_at(store, address, Instant::now(), now_ms).await
    }

    async fn acquire_at(
        &self,
        store: &dyn Store,
        address: &str,
        now: Instant,
        now_ms: u64,
    ) -> Result<(), NoPlace> {
        let mut block = match self.look(address, now) {
            Known::Place => return Ok(()),
            Known::Refused(wait) => return Err(NoPlace::Exhausted(wait)),
            Known::Ask(block) => block,
        };
        if lock(&self.store_is_back).is_some_and(|back| now < back) {
            return Err(NoPlace::Store(StoreError::Unavailable("it failed a moment ago".into())));
        }
        loop {
            match self.take(store, address, block, now_ms).await {
                Ok(()) => {
                    self.add(address, block, now);
                    return Ok(());
                }
                // A few may be left.
                Err(NoPlace::Exhausted(_)) if block > 1 => block = 1,
                Err(NoPlace::Exhausted(wait)) => {
                    self.refuse(address, wait, now);
                    return Err(NoPlace::Exhausted(wait));
                }
                Err(error) => {
                    *lock(&self.store_is_back) = Some(Instant::now() + STORE_TIMEOUT);
                    return Err(error);
                }
            }
        }
    }

    /// A place counts for longer than it can be used, so that no minute has more requests than the limit, whenever the
    /// places for them were taken.
    async fn take(&self, store: &dyn Store, address: &str, count: u64, now_ms: u64) -> Result<(), NoPlace> {
        let key = format!("server/requests/{address}");
        let taken = take(store, key, count, (self.per_minute, WINDOW + PLACES_LIFETIME), now_ms);
        let late = |_| NoPlace::Store(StoreError::Unavailable("it did not answer in time".into()));
        tokio::time::timeout(STORE_TIMEOUT, taken).await.map_err(late)?
    }

    fn look(&self, address: &str, now: Instant) -> Known {
        let mut all = lock(&self.by_address);
        let Some(places) = all.get_mut(address) else { return Known::Ask(1) };
        if let Some(until) = places.refused_until.filter(|until| now < *until) {
            return Known::Refused(until - now);
        }
        let is_valid = now < places.since + PLACES_LIFETIME;
        if is_valid && places.left > 0 {
            places.left -= 1;
            return Known::Place;
        }
        let used = places.block - places.left.min(places.block);
        let wanted = if is_valid { places.block.saturating_mul(2) } else { used };
        places.left = 0;
        Known::Ask(wanted.clamp(1, (self.per_minute / MAX_BLOCK_FRACTION).max(1)))
    }

    /// Keeps what was taken, but for the place that is used at once.
    fn add(&self, address: &str, block: u64, asked: Instant) {
        let mut all = lock(&self.by_address);
        make_room(&mut all, address, asked);
        let none = || Places { left: 0, block, since: asked, refused_until: None };
        let places = all.entry(address.to_owned()).or_insert_with(none);
        // Another request may have taken some meanwhile. The older ones decide how long all can be used.
        places.since = if places.left > 0 { places.since.min(asked) } else { asked };
        places.left += block - 1;
        places.block = block;
        places.refused_until = None;
    }

    fn refuse(&self, address: &str, wait: Duration, now: Instant) {
        let mut all = lock(&self.by_address);
        make_room(&mut all, address, now);
        let none = || Places { left: 0, block: 1, since: now, refused_until: None };
        let places = all.entry(address.to_owned()).or_insert_with(none);
        places.refused_until = Some(now + wait.min(REFUSAL_TIME));
    }
}

/// What is dropped are places, so that no address gets more for it.
fn make_room(all: &mut HashMap<String, Places>, address: &str, now: Instant) {
    if all.len() < MAX_ADDRESSES || all.contains_key(address) {
        return;
    }
    all.retain(|_, places| now < places.since + PLACES_LIFETIME);
    if all.len() >= MAX_ADDRESSES {
        all.clear();
    }
}

async fn take(
    store: &dyn Store,
    key: String,
    count: u64,
    (limit, window): (u64, Duration),
    now_ms: u64,
) -> Result<(), NoPlace> {
    let take = Take { key, count, limit, window_ms: window.as_millis() as u64, now_ms };
    match store.commit(Commit::default().take(take)).await {
        Ok(_) => Ok(()),
        Err(CommitError::Exhausted { retry_after_ms, .. }) => {
            Err(NoPlace::Exhausted(Duration::from_millis(retry_after_ms)))
        }
        Err(error) => Err(NoPlace::Store(error.into_store_error())),
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests;
