//! Rate limits: a token bucket for each client or address.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

/// Full buckets are evicted first.
const MAX_BUCKETS: usize = 50_000;

pub(crate) struct RateLimiter {
    per_minute: f64,
    buckets: Mutex<HashMap<String, Bucket>>,
}

struct Bucket {
    tokens: f64,
    updated: Instant,
}

impl RateLimiter {
    pub(crate) fn per_minute(per_minute: u32) -> Self {
        Self { per_minute: f64::from(per_minute.max(1)), buckets: Mutex::default() }
    }

    /// Takes one token, or returns how long to wait for it.
    pub(crate) fn acquire(&self, name: &str, now: Instant) -> Result<(), Duration> {
        let per_second = self.per_minute / 60.0;
        let mut buckets = self.buckets.lock().unwrap_or_else(PoisonError::into_inner);
        if buckets.len() >= MAX_BUCKETS && !buckets.contains_key(name) {
            self.evict(&mut buckets, now);
        }
        let full = || Bucket { tokens: self.per_minute, updated: now };
        let bucket = buckets.entry(name.to_owned()).or_insert_with(full);
        bucket.tokens = self.level(bucket, now);
        bucket.updated = now;
        if bucket.tokens < 1.0 {
            return Err(Duration::from_secs_f64((1.0 - bucket.tokens) / per_second));
        }
        bucket.tokens -= 1.0;
        Ok(())
    }

    fn level(&self, bucket: &Bucket, now: Instant) -> f64 {
        let since = now.saturating_duration_since(bucket.updated).as_secs_f64();
        (bucket.tokens + since * self.per_minute / 60.0).min(self.per_minute)
    }

    /// A full bucket can be dropped without loss. If none is full, all are dropped: better than growing without bound
    /// or refusing new clients.
    fn evict(&self, buckets: &mut HashMap<String, Bucket>, now: Instant) {
        buckets.retain(|_, bucket| self.level(bucket, now) < self.per_minute);
        if buckets.len() >= MAX_BUCKETS {
            buckets.clear();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bucket_refills_with_time_up_to_its_size() {
        let limiter = RateLimiter::per_minute(60);
        let start = Instant::now();
        for _ in 0..60 {
            assert_eq!(limiter.acquire("ann", start), Ok(()));
        }
        assert_eq!(limiter.acquire("ann", start), Err(Duration::from_secs(1)));
        assert_eq!(limiter.acquire("ben", start), Ok(()), "each name has its own bucket");
        assert_eq!(limiter.acquire("ann", start + Duration::from_secs(1)), Ok(()));
        assert!(limiter.acquire("ann", start + Duration::from_secs(1)).is_err());
        let much_later = start + Duration::from_secs(3_600);
        let acquired = (0..100).take_while(|_| limiter.acquire("ann", much_later).is_ok()).count();
        assert_eq!(acquired, 60);
    }

    #[test]
    fn the_number_of_buckets_is_bounded() {
        let limiter = RateLimiter::per_minute(2);
        let now = Instant::now();
        for number in 0..MAX_BUCKETS + 10 {
            assert_eq!(limiter.acquire(&number.to_string(), now), Ok(()));
        }
        assert!(limiter.buckets.lock().unwrap().len() <= MAX_BUCKETS);
    }
}
