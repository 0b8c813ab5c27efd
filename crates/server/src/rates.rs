//! How often someone may ask: a bucket that fills with time, for each of them.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

/// How many are remembered. Those whose buckets are full again are forgotten first.
const MOST: usize = 50_000;

/// Buckets by name.
pub(crate) struct Rates {
    per_minute: f64,
    buckets: Mutex<HashMap<String, Bucket>>,
}

struct Bucket {
    left: f64,
    at: Instant,
}

impl Rates {
    pub(crate) fn per_minute(per_minute: u32) -> Self {
        Self { per_minute: f64::from(per_minute.max(1)), buckets: Mutex::default() }
    }

    /// Takes one, or says how long to wait for it.
    pub(crate) fn take(&self, name: &str, now: Instant) -> Result<(), Duration> {
        let per_second = self.per_minute / 60.0;
        let mut buckets = self.buckets.lock().unwrap_or_else(PoisonError::into_inner);
        if buckets.len() >= MOST && !buckets.contains_key(name) {
            self.forget(&mut buckets, now);
        }
        let fresh = || Bucket { left: self.per_minute, at: now };
        let bucket = buckets.entry(name.to_owned()).or_insert_with(fresh);
        bucket.left = self.level(bucket, now);
        bucket.at = now;
        if bucket.left < 1.0 {
            return Err(Duration::from_secs_f64((1.0 - bucket.left) / per_second));
        }
        bucket.left -= 1.0;
        Ok(())
    }

    fn level(&self, bucket: &Bucket, now: Instant) -> f64 {
        let since = now.saturating_duration_since(bucket.at).as_secs_f64();
        (bucket.left + since * self.per_minute / 60.0).min(self.per_minute)
    }

    /// Whoever has a full bucket loses nothing by being forgotten. If nobody has, everybody starts anew: better than
    /// to grow without end, or to lock out whoever comes next.
    fn forget(&self, buckets: &mut HashMap<String, Bucket>, now: Instant) {
        buckets.retain(|_, bucket| self.level(bucket, now) < self.per_minute);
        if buckets.len() >= MOST {
            buckets.clear();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bucket_fills_with_time_and_never_beyond_its_size() {
        let rates = Rates::per_minute(60);
        let start = Instant::now();
        for _ in 0..60 {
            assert_eq!(rates.take("ann", start), Ok(()));
        }
        assert_eq!(rates.take("ann", start), Err(Duration::from_secs(1)));
        assert_eq!(rates.take("ben", start), Ok(()), "another's bucket is another's");
        assert_eq!(rates.take("ann", start + Duration::from_secs(1)), Ok(()));
        assert!(rates.take("ann", start + Duration::from_secs(1)).is_err());
        let much_later = start + Duration::from_secs(3_600);
        let taken = (0..100).take_while(|_| rates.take("ann", much_later).is_ok()).count();
        assert_eq!(taken, 60);
    }

    #[test]
    fn the_number_of_buckets_is_bounded() {
        let rates = Rates::per_minute(2);
        let now = Instant::now();
        for number in 0..MOST + 10 {
            assert_eq!(rates.take(&number.to_string(), now), Ok(()));
        }
        assert!(rates.buckets.lock().unwrap().len() <= MOST);
    }
}
