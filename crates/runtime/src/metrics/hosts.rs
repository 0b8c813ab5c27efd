//! Stuck threads and quarantines of hosts, as metrics.

use quarterdeck_contracts::handler::HostHealth;
use serde_json::{Value, json};

use super::Metrics;

/// As JSON, for operators and scripts.
pub fn host_health_json(health: &HostHealth) -> Value {
    json!({
        "stuckThreads": health.stuck_threads,
        "quarantined": health.quarantines.len(),
        "quarantinesTotal": health.quarantines_total,
    })
}

impl Metrics {
    /// Takes over how the hosts are, for [`Metrics::prometheus`].
    pub fn set_host_health(&self, health: &HostHealth) {
        let help = "Threads that calls hold past their deadline.";
        self.set_gauge("quarterdeck_handler_stuck_threads", help, health.stuck_threads as f64);
        let help = "Times that a handler was taken out of service.";
        self.set_counter("quarterdeck_handler_quarantines_total", help, health.quarantines_total);
        let quarantined: Vec<_> = health.quarantines.iter().map(|quarantine| &*quarantine.tool_id).collect();
        let called: Vec<_> = self.lock().tools.keys().cloned().collect();
        // A tool that is back in service is said to be: a gauge that is no longer set keeps its value.
        let others = called.iter().map(|tool| &**tool).filter(|tool| !quarantined.contains(tool));
        let all = quarantined.iter().map(|tool| (*tool, 1.0)).chain(others.map(|tool| (tool, 0.0)));
        for (tool, value) in all {
            let help = "Whether a handler is out of service.";
            self.exporter.gauge("quarterdeck_handler_quarantined", help, &[("tool", tool)], value);
        }
    }
}
