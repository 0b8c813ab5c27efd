//! Room for so many at once, and for so many of each client.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::{OwnedSemaphorePermit, Semaphore};

/// Counts what is open.
pub(crate) struct Places {
    all: Arc<Semaphore>,
    most: usize,
    each: usize,
    of: Arc<Counts>,
}

#[derive(Default)]
struct Counts(Mutex<HashMap<String, usize>>);

/// Why there is no room.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Full {
    /// For nobody.
    All,
    /// For this client, who has as much as one may have.
    Yours,
}

/// Room for one, given back when it is dropped.
pub(crate) struct Place {
    client: String,
    of: Arc<Counts>,
    _permit: OwnedSemaphorePermit,
    _beside: Option<Box<Place>>,
}

impl Places {
    pub(crate) fn new(most: usize, each: usize) -> Self {
        let most = most.min(Semaphore::MAX_PERMITS);
        Self { all: Arc::new(Semaphore::new(most)), most, each, of: Arc::default() }
    }

    /// Room for one more of a client.
    pub(crate) fn admit(&self, client: &str) -> Result<Place, Full> {
        let permit = self.all.clone().try_acquire_owned().map_err(|_| Full::All)?;
        let mut of = self.of.lock();
        let mine = of.get(client).copied().unwrap_or_default();
        if mine >= self.each {
            return Err(Full::Yours);
        }
        of.insert(client.to_owned(), mine + 1);
        Ok(Place { client: client.to_owned(), of: self.of.clone(), _permit: permit, _beside: None })
    }

    /// How many are taken.
    pub(crate) fn taken(&self) -> usize {
        self.most - self.all.available_permits()
    }

    /// Waits until all are free. Nobody is let in meanwhile, and afterwards they are.
    pub(crate) async fn all_free(&self) {
        let all = u32::try_from(self.most).unwrap_or(u32::MAX);
        drop(self.all.acquire_many(all).await);
    }
}

impl Counts {
    fn lock(&self) -> MutexGuard<'_, HashMap<String, usize>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Place {
    /// Holds another place as long as this one.
    pub(crate) fn with(mut self, other: Self) -> Self {
        self._beside = Some(Box::new(other));
        self
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        let mut of = self.of.lock();
        if let Some(mine) = of.get_mut(&self.client) {
            *mine -= 1;
            if *mine == 0 {
                of.remove(&self.client);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn there_is_room_for_so_many_and_for_so_many_of_each() {
        let places = Places::new(3, 2);
        let first = places.admit("ann").unwrap();
        let _second = places.admit("ann").unwrap();
        assert_eq!(places.admit("ann").err(), Some(Full::Yours));
        let third = places.admit("ben").unwrap();
        assert_eq!(places.taken(), 3, "who was refused takes nothing");
        assert_eq!(places.admit("cleo").err(), Some(Full::All));
        drop(first);
        let fourth = places.admit("ann").unwrap();
        drop((third, fourth, _second));
        places.all_free().await;
        assert!(places.of.lock().is_empty(), "nobody is remembered who is not there");
    }
}
