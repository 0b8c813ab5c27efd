//! Who is told of alarms.

use crate::alarms::AlarmChange;

/// Tells an operator of alarms. It must return at once, and bound what waits.
pub trait AlarmMessenger: Send + Sync {
    fn send(&self, change: &AlarmChange);

    fn counts(&self) -> MessageCounts;
}

/// What has become of messages since the start.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct MessageCounts {
    /// Taken by the other side.
    pub delivered: u64,
    /// Attempts that failed.
    pub failed: u64,
    /// Messages that will not be tried again.
    pub given_up: u64,
    pub waiting: u64,
}
