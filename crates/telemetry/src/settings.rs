//! What an operator chooses about telemetry.

use std::collections::HashMap;
use std::time::Duration;

/// Where telemetry goes, how much of it, and what it may hold.
#[derive(Clone, PartialEq)]
pub struct TelemetrySettings {
    /// The collector's base URL; `/v1/traces`, `/v1/metrics` and `/v1/logs` are appended.
    pub endpoint: String,
    /// Headers of every request, such as a key. Never printed.
    pub headers: HashMap<String, String>,
    pub service_name: String,
    pub service_version: String,
    /// The share of traces that are kept, from 0 to 1. Those with an error or a refusal are kept in any case.
    pub sampling: f64,
    /// Whether what users, models and tools say is in spans and log lines.
    pub content: bool,
    /// Whether requests with a `traceparent` go on with that trace.
    pub accepts_parents: bool,
    pub traces: bool,
    pub metrics: bool,
    pub logs: bool,
    /// How often spans and lines are sent.
    pub interval: Duration,
    /// How often metrics are sent.
    pub metrics_interval: Duration,
    /// How long one request to the collector may take.
    pub timeout: Duration,
}

impl TelemetrySettings {
    /// The defaults, to a collector.
    pub fn new(endpoint: impl Into<String>) -> Self {
        Self {
            endpoint: endpoint.into(),
            headers: HashMap::new(),
            service_name: "quarterdeck".into(),
            service_version: env!("CARGO_PKG_VERSION").into(),
            sampling: 1.0,
            content: false,
            accepts_parents: true,
            traces: true,
            metrics: true,
            logs: true,
            interval: Duration::from_secs(5),
            metrics_interval: Duration::from_secs(60),
            timeout: Duration::from_secs(10),
        }
    }

    pub(crate) fn url(&self, signal: &str) -> String {
        format!("{}/v1/{signal}", self.endpoint.trim_end_matches('/'))
    }
}

impl std::fmt::Debug for TelemetrySettings {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("TelemetrySettings").field("endpoint", &self.endpoint).finish_non_exhaustive()
    }
}
