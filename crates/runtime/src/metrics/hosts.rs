//! Stuck threads and quarantines of hosts, as metrics.

use std::fmt::Write;

use quarterdeck_contracts::handler::HostHealth;
use serde_json::{Value, json};

use super::prometheus::escaped;

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
    let mut text = String::new();
    let mut family = |name: &str, kind: &str, help: &str, samples: Vec<(String, u64)>| {
        // Writing to a string cannot fail.
        let _ = writeln!(text, "# HELP quarterdeck_{name} {help}\n# TYPE quarterdeck_{name} {kind}");
        for (labels, value) in samples {
            let _ = writeln!(text, "quarterdeck_{name}{labels} {value}");
        }
    };
    family(
        "handler_stuck_threads",
        "gauge",
        "Threads that calls hold past their deadline.",
        vec![(String::new(), health.stuck_threads as u64)],
    );
    family(
        "handler_quarantines_total",
        "counter",
        "Times that a handler was taken out of service.",
        vec![(String::new(), health.quarantines_total)],
    );
    let label = |tool: &str| format!("{{tool=\"{}\"}}", escaped(tool));
    family(
        "handler_quarantined",
        "gauge",
        "Handlers that are out of service.",
        health.quarantines.iter().map(|quarantine| (label(&quarantine.tool_id), 1)).collect(),
    );
    text
}
