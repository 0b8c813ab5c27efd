//! Requests of MCP clients, by method and outcome.

use std::sync::atomic::{AtomicU64, Ordering};

use serde_json::{Map, Value, json};

use super::Metrics;
use super::prometheus::Exporter;

/// The methods that are counted by name. A client may send any other; those are counted together.
const METHODS: [&str; 15] = [
    "initialize",
    "server/discover",
    "ping",
    "tools/list",
    "tools/call",
    "resources/list",
    "resources/templates/list",
    "resources/read",
    "prompts/list",
    "prompts/get",
    "completion/complete",
    "tasks/get",
    "tasks/update",
    "tasks/cancel",
    OTHER_METHODS,
];
const OTHER_METHODS: &str = "other";

/// How a request of an MCP client ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum McpOutcome {
    /// With a result.
    Ok,
    /// With a result that says that the tool failed, or that a gate refused the call.
    ToolError,
    /// With a question that the client answers before the call goes on.
    InputRequired,
    /// With an error of the protocol.
    Error,
    /// The client did not wait for it.
    Cancelled,
}

const OUTCOMES: [(McpOutcome, &str); 5] = [
    (McpOutcome::Ok, "ok"),
    (McpOutcome::ToolError, "tool_error"),
    (McpOutcome::InputRequired, "input_required"),
    (McpOutcome::Error, "error"),
    (McpOutcome::Cancelled, "cancelled"),
];

/// Counters that take no lock: every request of a busy client passes here.
#[derive(Debug, Default)]
pub(super) struct McpRequests([[AtomicU64; OUTCOMES.len()]; METHODS.len()]);

impl Metrics {
    /// Counts a request of an MCP client.
    pub fn record_mcp_request(&self, method: &str, outcome: McpOutcome) {
        let method = METHODS.iter().position(|known| *known == method).unwrap_or(METHODS.len() - 1);
        self.mcp_requests.0[method][outcome as usize].fetch_add(1, Ordering::Relaxed);
    }
}

impl McpRequests {
    /// What was counted, without zeros.
    fn counts(&self) -> impl Iterator<Item = (&'static str, &'static str, u64)> {
        METHODS
            .iter()
            .zip(&self.0)
            .flat_map(|(method, counts)| {
                let counts = OUTCOMES.iter().zip(counts);
                counts.map(|((_, outcome), count)| (*method, *outcome, count.load(Ordering::Relaxed)))
            })
            .filter(|(_, _, count)| *count > 0)
    }

    pub(super) fn json(&self) -> Value {
        let mut requests = Map::new();
        for (method, outcome, count) in self.counts() {
            requests.entry(method).or_insert_with(|| json!({}))[outcome] = json!(count);
        }
        json!({ "requests": requests })
    }

    pub(super) fn export(&self, to: &Exporter) {
        for (method, outcome, count) in self.counts() {
            let labels = [("method", method), ("outcome", outcome)];
            let help = "Requests of MCP clients, by method and how they ended.";
            to.counter("quarterdeck_mcp_requests_total", help, &labels, count);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn requests_are_counted_by_method_and_outcome_and_unknown_methods_together() {
        let metrics = Metrics::default();
        metrics.record_mcp_request("tools/call", McpOutcome::Ok);
        metrics.record_mcp_request("tools/call", McpOutcome::Ok);
        metrics.record_mcp_request("tools/call", McpOutcome::Cancelled);
        for number in 0..1_000 {
            metrics.record_mcp_request(&format!("made/up/{number}"), McpOutcome::Error);
        }
        let requests = metrics.json()["mcp"]["requests"].take();
        assert_eq!(
            requests,
            json!({ "tools/call": { "ok": 2, "cancelled": 1 }, "other": { "error": 1_000 } })
        );
        let text = metrics.prometheus();
        let line = "quarterdeck_mcp_requests_total{method=\"tools/call\",outcome=\"ok\"} 2";
        assert!(text.contains(line), "{text}");
    }

    #[test]
    fn every_outcome_is_counted_where_its_name_is() {
        for (place, (outcome, _)) in OUTCOMES.iter().enumerate() {
            assert_eq!(*outcome as usize, place);
        }
    }
}
