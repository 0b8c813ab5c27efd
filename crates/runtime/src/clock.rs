//! The time of day, and the time that passes. Sessions read both here, so that tests can hold them still.

use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

/// Tells the time.
pub trait Clock: Send + Sync {
    /// The time of day. It can be set, also backwards.
    fn now(&self) -> SystemTime;

    /// How much time has passed since some moment of this process. It cannot be set, and never goes back.
    fn monotonic(&self) -> Duration {
        static START: OnceLock<Instant> = OnceLock::new();
        START.get_or_init(Instant::now).elapsed()
    }
}

/// The machine's clock.
#[derive(Debug, Clone, Copy, Default)]
pub struct SystemClock;

impl Clock for SystemClock {
    fn now(&self) -> SystemTime {
        SystemTime::now()
    }
}

/// Milliseconds since 1970; a clock before that shows zero.
pub(crate) fn epoch_ms(time: SystemTime) -> u64 {
    time.duration_since(UNIX_EPOCH).map_or(0, |since| since.as_millis() as u64)
}

/// The time of day as deadlines are judged by it: it follows the clock forwards, and goes on by itself while the clock
/// stands further back. What has expired in this process therefore stays expired, whatever is done to the clock.
pub(crate) struct SteadyClock {
    clock: Arc<dyn Clock>,
    /// The latest time of day that was seen, and when.
    latest: Mutex<(u64, Duration)>,
}

impl SteadyClock {
    pub(crate) fn new(clock: Arc<dyn Clock>) -> Self {
        let latest = Mutex::new((epoch_ms(clock.now()), clock.monotonic()));
        Self { clock, latest }
    }

    /// Milliseconds since 1970.
    pub(crate) fn now_ms(&self) -> u64 {
        let (wall, passed) = (epoch_ms(self.clock.now()), self.clock.monotonic());
        let mut latest = self.latest.lock().unwrap_or_else(PoisonError::into_inner);
        let (seen, at) = *latest;
        let steady = seen + passed.saturating_sub(at).as_millis() as u64;
        if wall > steady {
            *latest = (wall, passed);
        }
        wall.max(steady)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Hand(Mutex<(u64, u64)>);

    impl Clock for Hand {
        fn now(&self) -> SystemTime {
            UNIX_EPOCH + Duration::from_secs(self.0.lock().unwrap().0)
        }

        fn monotonic(&self) -> Duration {
            Duration::from_secs(self.0.lock().unwrap().1)
        }
    }

    #[test]
    fn steady_time_never_goes_back_and_never_stands_still() {
        let hand = Arc::new(Hand(Mutex::new((1_000, 0))));
        let steady = SteadyClock::new(hand.clone());
        for ((wall, passed), expected) in [
            ((1_010, 10), 1_010),
            // Set back by an hour: it goes on from where it was.
            ((0, 11), 1_011),
            ((9, 20), 1_020),
            // Set forward: it follows, and then stays ahead.
            ((5_000, 21), 5_000),
            ((1_022, 22), 5_001),
            ((1_122, 122), 5_101),
        ] {
            *hand.0.lock().unwrap() = (wall, passed);
            assert_eq!(steady.now_ms(), expected * 1_000, "{wall} {passed}");
        }
    }
}
