//! The time of day, and the time that passes. Sessions read both here, so that tests can hold them still.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

/// The time of day, and the time that passes.
pub trait Clock: Send + Sync {
    /// The time of day. It can be set, also backwards.
    fn now(&self) -> SystemTime;

    /// How much time has passed since some moment of this process. It cannot be set, and never goes back.
    fn monotonic(&self) -> Duration {
        static START: OnceLock<Instant> = OnceLock::new();
        START.get_or_init(Instant::now).elapsed()
    }

    /// The same, but counting the time that the machine has slept, where the system can tell.
    fn uptime(&self) -> Duration {
        self.monotonic()
    }
}

#[derive(Debug, Clone, Copy, Default)]
pub struct SystemClock;

impl Clock for SystemClock {
    #[allow(clippy::disallowed_methods, reason = "this is the clock that everything else reads")]
    fn now(&self) -> SystemTime {
        SystemTime::now()
    }

    #[cfg(target_os = "linux")]
    fn uptime(&self) -> Duration {
        let time = rustix::time::clock_gettime(rustix::time::ClockId::Boottime);
        let seconds = u64::try_from(time.tv_sec).unwrap_or_default();
        Duration::new(seconds, u32::try_from(time.tv_nsec).unwrap_or_default())
    }
}

/// Milliseconds since 1970; a clock before that shows zero.
pub(crate) fn epoch_ms(time: SystemTime) -> u64 {
    time.duration_since(UNIX_EPOCH).map_or(0, |since| since.as_millis() as u64)
}

/// The time of day for deadlines: it follows the clock forwards, and goes on by itself while the clock
/// is behind. What has expired in this process therefore stays expired, whatever is done to the clock.
pub(crate) struct SteadyClock {
    clock: Arc<dyn Clock>,
    /// The latest time that was given out, in milliseconds since 1970. It never goes back.
    latest_ms: AtomicU64,
    /// A time of day not long ago, and when that was by the clock that cannot be set.
    anchor: Mutex<(u64, Duration)>,
    /// The time of day of the anchor, to be read without the lock.
    anchor_ms: AtomicU64,
}

/// How long an anchor is good for. Within it, one clock is read instead of two.
const ANCHOR_LIFETIME_MS: u64 = 1_000;

impl SteadyClock {
    pub(crate) fn new(clock: Arc<dyn Clock>) -> Self {
        let now_ms = epoch_ms(clock.now());
        let anchor = Mutex::new((now_ms, clock.monotonic()));
        Self { clock, latest_ms: AtomicU64::new(now_ms), anchor, anchor_ms: AtomicU64::new(now_ms) }
    }

    pub(crate) fn now_ms(&self) -> u64 {
        let wall = epoch_ms(self.clock.now());
        let since = wall.checked_sub(self.anchor_ms.load(Ordering::Relaxed));
        let steady = match since {
            Some(since) if since < ANCHOR_LIFETIME_MS => wall,
            _ => self.anchored(wall),
        };
        self.latest_ms.fetch_max(steady, Ordering::Relaxed).max(steady)
    }

    /// The time by the anchor, which is moved when the time of day is past it.
    fn anchored(&self, wall: u64) -> u64 {
        let passed = self.clock.monotonic();
        let mut anchor = self.anchor.lock().unwrap_or_else(PoisonError::into_inner);
        let (seen, at) = *anchor;
        let steady = seen + passed.saturating_sub(at).as_millis() as u64;
        if wall >= steady {
            *anchor = (wall, passed);
            self.anchor_ms.store(wall, Ordering::Relaxed);
        }
        wall.max(steady)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    struct ManualClock(Mutex<(u64, u64)>);

    impl Clock for ManualClock {
        fn now(&self) -> SystemTime {
            UNIX_EPOCH + Duration::from_secs(self.0.lock().unwrap().0)
        }

        fn monotonic(&self) -> Duration {
            Duration::from_secs(self.0.lock().unwrap().1)
        }
    }

    #[test]
    fn uptime_passes() {
        let before = SystemClock.uptime();
        std::thread::sleep(Duration::from_millis(2));
        let passed = SystemClock.uptime() - before;
        assert!((Duration::from_millis(2)..Duration::from_secs(60)).contains(&passed), "{passed:?}");
    }

    #[test]
    fn steady_time_never_goes_back_and_never_stands_still() {
        let clock = Arc::new(ManualClock(Mutex::new((1_000, 0))));
        let steady = SteadyClock::new(clock.clone());
        for ((wall, passed), expected) in [
            ((1_010, 10), 1_010),
            // Set back by an hour: it goes on from where it was.
            ((0, 11), 1_011),
            ((9, 20), 1_020),
            // Set forward: it follows, and then stays ahead.
            ((5_000, 21), 5_000),
            ((1_022, 22), 5_001),
            ((1_122, 122), 5_101),
            // Less than a second ahead of what was given out, and back again.
            ((5_101, 122), 5_101),
            ((5_102, 123), 5_102),
            ((5_000, 123), 5_102),
        ] {
            *clock.0.lock().unwrap() = (wall, passed);
            assert_eq!(steady.now_ms(), expected * 1_000, "{wall} {passed}");
        }
    }
}
