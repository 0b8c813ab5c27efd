//! Stuck threads and quarantines of hosts, as metrics.

use quarterdeck_contracts::handler::HostHealth;
use serde_json::{Value, json};

use super::prometheus::{Page, label};

/// As JSON, for operators and scripts.
pub fn host_health_json(health: &HostHealth) -> Value {
    json!({
        "stuckThreads": health.stuck_threads,
        "quarantined": health.quarantines.len(),
        "quarantinesTotal": health.quarantines_total,
    })
}

/// In the text format of Prometheus.
pub fn host_health_prometheus(health: &HostHealth) -> String {
    let mut page = Page::default();
    let total = |value: u64| [(String::new(), value as f64)];
    let stuck = total(health.stuck_threads as u64);
    page.family("handler_stuck_threads", "gauge", "Threads that calls hold past their deadline.", stuck);
    let quarantines = total(health.quarantines_total);
    let help = "Times that a handler was taken out of service.";
    page.family("handler_quarantines_total", "counter", help, quarantines);
    let quarantined = health.quarantines.iter().map(|quarantine| (label(&quarantine.tool_id, ""), 1.0));
    page.family("handler_quarantined", "gauge", "Handlers that are out of service.", quarantined);
    page.text
}
