//! What a node does among others: leases, requests that it passes on, notifications, and its store.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use quarterdeck_contracts::StoreHealth;
use serde_json::{Map, Value, json};

use super::Metrics;
use super::prometheus::Exporter;
use crate::cluster_events::NotificationHealth;
use crate::orchestrator::Orchestrator;

/// What has become of the lease of a session.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LeaseEvent {
    /// It was free, or new.
    Taken,
    Released,
    /// Another node took it while this one held it.
    Lost,
    /// It was held by a node that is dead.
    TakenOver,
}

const LEASE_EVENTS: [(LeaseEvent, &str); 4] = [
    (LeaseEvent::Taken, "taken"),
    (LeaseEvent::Released, "released"),
    (LeaseEvent::Lost, "lost"),
    (LeaseEvent::TakenOver, "taken_over"),
];

/// How a request ended that was passed on to the node that has its session.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ForwardOutcome {
    Answered,
    /// It did not reach that node.
    Unreachable,
    /// It was sent, and the answer was lost.
    Lost,
}

const FORWARD_OUTCOMES: [(ForwardOutcome, &str); 3] = [
    (ForwardOutcome::Answered, "answered"),
    (ForwardOutcome::Unreachable, "unreachable"),
    (ForwardOutcome::Lost, "lost"),
];

#[derive(Debug, Default)]
pub(super) struct NodeCounts {
    leases: [AtomicU64; LEASE_EVENTS.len()],
    forwarded: [AtomicU64; FORWARD_OUTCOMES.len()],
}

/// How a node is doing at a moment.
struct NodeState {
    notifications: Option<NotificationHealth>,
    store: Option<StoreHealth>,
    heartbeat_age: Option<Duration>,
    may_write: bool,
}

impl Metrics {
    /// Counts what has become of a lease.
    pub fn record_lease(&self, event: LeaseEvent) {
        self.node_counts.leases[event as usize].fetch_add(1, Ordering::Relaxed);
    }

    /// Counts a request that was passed on to another node.
    pub fn record_forwarded(&self, outcome: ForwardOutcome) {
        self.node_counts.forwarded[outcome as usize].fetch_add(1, Ordering::Relaxed);
    }

    /// Counts a commit, by how long the store took.
    pub(crate) fn record_commit(&self, duration: Duration) {
        self.commits.get_or_init(|| self.exporter.commits()).record(duration.as_secs_f64());
    }
}

impl Orchestrator {
    /// Takes over how this node is doing, for [`Metrics::prometheus`]. Without a node there is nothing to take over.
    pub fn export_node_metrics(&self) {
        if self.node_name().is_some() {
            let metrics = self.metrics();
            metrics.node_counts.export(&metrics.exporter);
            self.node_state().export(&metrics.exporter);
        }
    }

    /// How this node is doing, as JSON; null without a node.
    pub fn node_metrics_json(&self) -> Value {
        match self.node_name() {
            Some(name) => self.node_state().json(name, &self.metrics().node_counts),
            None => Value::Null,
        }
    }

    fn node_state(&self) -> NodeState {
        NodeState {
            notifications: self.notification_health(),
            store: self.store().health(),
            heartbeat_age: self.heartbeat_age(),
            may_write: self.may_write(),
        }
    }
}

impl NodeCounts {
    fn export(&self, to: &Exporter) {
        for ((_, event), count) in LEASE_EVENTS.iter().zip(&self.leases) {
            let help = "Leases of sessions, by what has become of them.";
            let count = count.load(Ordering::Relaxed);
            to.counter("quarterdeck_node_leases_total", help, &[("event", event)], count);
        }
        for ((_, outcome), count) in FORWARD_OUTCOMES.iter().zip(&self.forwarded) {
            let help = "Requests passed on to the node that has their session, by how they ended.";
            let count = count.load(Ordering::Relaxed);
            to.counter("quarterdeck_node_forwarded_requests_total", help, &[("outcome", outcome)], count);
        }
    }

    fn json(&self) -> (Value, Value) {
        let count = |count: &AtomicU64| json!(count.load(Ordering::Relaxed));
        let leases = LEASE_EVENTS.iter().zip(&self.leases);
        let leases: Map<_, _> =
            leases.map(|((_, event), value)| ((*event).to_owned(), count(value))).collect();
        let sent = FORWARD_OUTCOMES.iter().zip(&self.forwarded);
        let sent: Map<_, _> =
            sent.map(|((_, outcome), value)| ((*outcome).to_owned(), count(value))).collect();
        (Value::Object(leases), Value::Object(sent))
    }
}

impl NodeState {
    fn export(&self, to: &Exporter) {
        let flag = |is: bool| f64::from(u8::from(is));
        let help =
            "Whether the node may write: its row was renewed lately, and no other process has its name.";
        to.gauge("quarterdeck_node_may_write", help, &[], flag(self.may_write));
        if let Some(age) = self.heartbeat_age {
            let help = "Time since the node renewed its row.";
            to.gauge("quarterdeck_node_heartbeat_age_seconds", help, &[], age.as_secs_f64());
        }
        if let Some(health) = &self.notifications {
            for (topic, count) in &health.received {
                let help = "Notifications of nodes that have come, by topic.";
                to.counter("quarterdeck_notifications_received_total", help, &[("topic", topic)], *count);
            }
            let help = "Changes of other nodes that were found by polling.";
            to.counter("quarterdeck_notifications_missed_total", help, &[], health.missed);
            let help = "Times that notifications may have been missed.";
            to.counter("quarterdeck_notification_resyncs_total", help, &[], health.resyncs);
            let help = "Time that the last notification of the node to itself took.";
            let lag = health.lag.unwrap_or_default().as_secs_f64();
            to.gauge("quarterdeck_notification_lag_seconds", help, &[], lag);
            let help = "Whether notifications do not arrive.";
            to.gauge("quarterdeck_notifications_deaf", help, &[], flag(health.is_deaf));
        }
        if let Some(store) = &self.store {
            export_store(store, to);
        }
    }

    fn json(&self, name: &str, counts: &NodeCounts) -> Value {
        let (leases, forwarded) = counts.json();
        let notifications = self.notifications.as_ref().map(|health| {
            json!({
                "received": health.received, "missed": health.missed, "resyncs": health.resyncs,
                "lagMs": health.lag.map(|lag| lag.as_secs_f64() * 1_000.0), "isDeaf": health.is_deaf,
            })
        });
        let store = self.store.as_ref().map(|store| {
            json!({
                "poolMax": store.pool.max, "poolInUse": store.pool.in_use, "poolWaiting": store.pool.waiting,
                "retries": store.retries, "unknownOutcomes": store.unknown_outcomes,
            })
        });
        json!({
            "name": name, "mayWrite": self.may_write,
            "heartbeatAgeMs": self.heartbeat_age.map(|age| age.as_millis() as u64),
            "leases": leases, "forwardedRequests": forwarded, "notifications": notifications, "store": store,
        })
    }
}

fn export_store(store: &StoreHealth, to: &Exporter) {
    let help = "Connections to the database, by what they do.";
    for (state, count) in
        [("max", store.pool.max), ("in_use", store.pool.in_use), ("waiting", store.pool.waiting)]
    {
        to.gauge("quarterdeck_store_connections", help, &[("state", state)], count as f64);
    }
    let help = "Commits that were tried again.";
    to.counter("quarterdeck_store_retries_total", help, &[], store.retries);
    let help = "Commits whose outcome is not known.";
    to.counter("quarterdeck_store_unknown_outcomes_total", help, &[], store.unknown_outcomes);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_event_is_counted_where_its_name_is() {
        for (place, (event, _)) in LEASE_EVENTS.iter().enumerate() {
            assert_eq!(*event as usize, place);
        }
        for (place, (outcome, _)) in FORWARD_OUTCOMES.iter().enumerate() {
            assert_eq!(*outcome as usize, place);
        }
    }

    #[test]
    fn every_series_of_a_node_has_its_name() {
        let metrics = Metrics::default();
        metrics.name_node("one");
        metrics.set_counter("quarterdeck_connections_refused_total", "Refused.", 3);
        metrics.record_commit(Duration::from_millis(2));
        let text = metrics.prometheus();
        for line in text.lines().filter(|line| !line.starts_with('#') && !line.is_empty()) {
            assert!(line.contains("node=\"one\""), "{line}");
        }
        assert!(text.contains("quarterdeck_store_commit_duration_seconds_count{node=\"one\"} 1"), "{text}");
        assert!(!Metrics::default().prometheus().contains("node="));
    }
}
