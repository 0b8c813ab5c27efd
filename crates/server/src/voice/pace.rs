//! How fast something may come.

use tokio::time::Instant;

/// A bucket that fills with time. It belongs to one connection, so nobody waits for it and it has no lock.
#[derive(Debug)]
pub(super) struct Pace {
    per_second: f64,
    most: f64,
    left: f64,
    at: Instant,
}

impl Pace {
    pub(super) fn new(per_second: f64, most: f64) -> Self {
        Self { per_second, most, left: most, at: Instant::now() }
    }

    /// Takes as much as this, or nothing if it is too much.
    pub(super) fn take(&mut self, amount: f64) -> bool {
        let now = Instant::now();
        let since = now.saturating_duration_since(self.at).as_secs_f64();
        self.at = now;
        self.left = (self.left + since * self.per_second).min(self.most);
        if self.left < amount {
            return false;
        }
        self.left -= amount;
        true
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn it_fills_with_time_and_never_beyond_its_size() {
        let mut pace = Pace::new(10.0, 30.0);
        assert!(pace.take(30.0));
        assert!(!pace.take(1.0));
        tokio::time::advance(Duration::from_secs(1)).await;
        assert!(pace.take(10.0), "what was too much has not been taken");
        assert!(!pace.take(1.0));
        tokio::time::advance(Duration::from_secs(60)).await;
        assert!(pace.take(30.0));
        assert!(!pace.take(0.1));
    }
}
