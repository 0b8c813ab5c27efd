//! Limits the rate of one connection's input.

use tokio::time::Instant;

/// A token bucket without a lock: it belongs to one connection.
#[derive(Debug)]
pub(super) struct TokenBucket {
    per_second: f64,
    capacity: f64,
    tokens: f64,
    updated: Instant,
}

impl TokenBucket {
    pub(super) fn new(per_second: f64, capacity: f64) -> Self {
        Self { per_second, capacity, tokens: capacity, updated: Instant::now() }
    }

    /// Takes the amount if there is enough; otherwise takes nothing and returns false.
    pub(super) fn take(&mut self, amount: f64) -> bool {
        let now = Instant::now();
        let since = now.saturating_duration_since(self.updated).as_secs_f64();
        self.updated = now;
        self.tokens = (self.tokens + since * self.per_second).min(self.capacity);
        if self.tokens < amount {
            return false;
        }
        self.tokens -= amount;
        true
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn a_bucket_refills_with_time_up_to_its_capacity() {
        let mut bucket = TokenBucket::new(10.0, 30.0);
        assert!(bucket.take(30.0));
        assert!(!bucket.take(1.0));
        tokio::time::advance(Duration::from_secs(1)).await;
        assert!(bucket.take(10.0), "a refused amount was not taken");
        assert!(!bucket.take(1.0));
        tokio::time::advance(Duration::from_secs(60)).await;
        assert!(bucket.take(30.0));
        assert!(!bucket.take(0.1));
    }
}
