//! Whether notifications arrive, and how long they take: each node tells itself something now and then.

use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use super::topic;
use crate::ids::random_hex;
use crate::orchestrator::Orchestrator;

/// How the key of a notification begins that a node sends to itself.
const ECHO: &str = "echo/";
/// Topics that are counted by name; others are counted together.
const TOPICS: [&str; 7] = [
    topic::BLOCK,
    topic::SESSION_END,
    topic::CONFIRMATION,
    topic::REGISTRY,
    topic::KNOWLEDGE,
    topic::TASK,
    topic::NODE,
];
const OTHER_TOPICS: &str = "other";

/// How notifications of other nodes arrive.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct NotificationHealth {
    /// How many have come, by topic.
    pub received: BTreeMap<&'static str, u64>,
    /// How many changes were found in the tables that no notification had told of.
    pub missed: u64,
    /// How often the connection for notifications was made anew, so that some may have been missed.
    pub resyncs: u64,
    /// How long the last notification to itself took; `None` before the first has come back.
    pub lag: Option<Duration>,
    /// Whether the last one has not come back until the next was due: notifications do not arrive.
    pub is_deaf: bool,
}

#[derive(Default)]
pub(super) struct NotificationStats(Mutex<Stats>);

#[derive(Default)]
struct Stats {
    health: NotificationHealth,
    /// The one that is on its way, and when it was sent.
    echo: Option<(String, Duration)>,
}

impl NotificationStats {
    pub(super) fn count_received(&self, topic: &str) {
        let name = TOPICS.into_iter().find(|known| *known == topic).unwrap_or(OTHER_TOPICS);
        *self.lock().health.received.entry(name).or_default() += 1;
    }

    pub(super) fn count_missed(&self, found: usize) {
        self.lock().health.missed += found as u64;
    }

    pub(super) fn count_resync(&self) {
        self.lock().health.resyncs += 1;
    }

    fn lock(&self) -> MutexGuard<'_, Stats> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Orchestrator {
    /// How notifications of other nodes arrive; `None` in a process that follows none.
    pub fn notification_health(&self) -> Option<NotificationHealth> {
        let events = &self.shared().events;
        events.is_following().then(|| events.stats.lock().health.clone())
    }

    /// Sends a notification to this node itself. One that is still on its way was lost.
    pub(super) fn send_echo(&self) {
        let Some(id) = random_hex(8) else { return };
        let now = self.shared().clock.monotonic();
        {
            let mut stats = self.shared().events.stats.lock();
            let is_lost = stats.echo.replace((id.clone(), now)).is_some();
            if is_lost && !stats.health.is_deaf {
                tracing::warn!("notifications do not arrive; changes of other nodes are found by polling");
            }
            stats.health.is_deaf = is_lost;
        }
        self.shared().announce(topic::NODE, format!("{ECHO}{id}"));
    }

    pub(super) fn hear_echo(&self, key: &str) {
        let now = self.shared().clock.monotonic();
        let mut stats = self.shared().events.stats.lock();
        let heard = key.strip_prefix(ECHO);
        if let Some((_, sent)) = stats.echo.take_if(|(id, _)| heard == Some(id.as_str())) {
            stats.health.lag = Some(now.saturating_sub(sent));
            stats.health.is_deaf = false;
        }
    }
}
