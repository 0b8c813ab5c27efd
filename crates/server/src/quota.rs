//! Limits on what is open at the same time, in total and per client.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::{OwnedSemaphorePermit, Semaphore};

/// A semaphore with a second limit for each client.
pub(crate) struct Quota {
    total: Arc<Semaphore>,
    max_total: usize,
    max_per_client: usize,
    held: Arc<HeldCounts>,
}

#[derive(Default)]
struct HeldCounts(Mutex<HashMap<String, usize>>);

/// Which limit was reached.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum QuotaExceeded {
    Total,
    PerClient,
}

/// One slot of a [`Quota`], given back on drop.
pub(crate) struct Permit {
    client: String,
    held: Arc<HeldCounts>,
    _total: OwnedSemaphorePermit,
    _other: Option<Box<Permit>>,
}

impl Quota {
    pub(crate) fn new(max_total: usize, max_per_client: usize) -> Self {
        let max_total = max_total.min(Semaphore::MAX_PERMITS);
        let total = Arc::new(Semaphore::new(max_total));
        Self { total, max_total, max_per_client, held: Arc::default() }
    }

    pub(crate) fn acquire(&self, client: &str) -> Result<Permit, QuotaExceeded> {
        let total = self.total.clone().try_acquire_owned().map_err(|_| QuotaExceeded::Total)?;
        let mut held = self.held.lock();
        let count = held.get(client).copied().unwrap_or_default();
        if count >= self.max_per_client {
            return Err(QuotaExceeded::PerClient);
        }
        held.insert(client.to_owned(), count + 1);
        Ok(Permit { client: client.to_owned(), held: self.held.clone(), _total: total, _other: None })
    }

    pub(crate) fn in_use(&self) -> usize {
        self.max_total - self.total.available_permits()
    }

    /// Waits until no permit is held. Acquiring fails meanwhile.
    pub(crate) async fn wait_until_unused(&self) {
        let all = u32::try_from(self.max_total).unwrap_or(u32::MAX);
        drop(self.total.acquire_many(all).await);
    }
}

impl HeldCounts {
    fn lock(&self) -> MutexGuard<'_, HashMap<String, usize>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Permit {
    /// Holds another permit as long as this one.
    pub(crate) fn with(mut self, other: Self) -> Self {
        self._other = Some(Box::new(other));
        self
    }
}

impl Drop for Permit {
    fn drop(&mut self) {
        let mut held = self.held.lock();
        if let Some(count) = held.get_mut(&self.client) {
            *count -= 1;
            if *count == 0 {
                held.remove(&self.client);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_quota_limits_the_total_and_each_client() {
        let quota = Quota::new(3, 2);
        let first = quota.acquire("ann").unwrap();
        let _second = quota.acquire("ann").unwrap();
        assert_eq!(quota.acquire("ann").err(), Some(QuotaExceeded::PerClient));
        let third = quota.acquire("ben").unwrap();
        assert_eq!(quota.in_use(), 3, "a refused client holds nothing");
        assert_eq!(quota.acquire("cleo").err(), Some(QuotaExceeded::Total));
        drop(first);
        let fourth = quota.acquire("ann").unwrap();
        drop((third, fourth, _second));
        quota.wait_until_unused().await;
        assert!(quota.held.lock().is_empty(), "clients without permits are forgotten");
    }
}
