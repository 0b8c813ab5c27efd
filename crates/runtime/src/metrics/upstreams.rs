//! Calls to MCP servers elsewhere, what those asked for, and how they are, as metrics.

use std::collections::BTreeMap;
use std::time::Duration;

use metrics::Histogram;
use quarterdeck_contracts::{RefusedRequest, UpstreamOutcome, UpstreamState, UpstreamView};
use serde_json::{Map, Value, json};

use super::Metrics;
use super::prometheus::Exporter;
use super::tool::ms;
use super::window::SampleWindow;

/// How many servers are counted by name. There are as many as are configured; what comes beyond is counted together, so
/// that labels stay few whatever a program does.
const MAX_SERVERS: usize = 64;
/// The name under which the others are counted.
const OTHER_SERVERS: &str = "other";

/// The counters of all upstream servers, by their names in the configuration.
#[derive(Debug, Default)]
pub(super) struct UpstreamMetrics {
    servers: BTreeMap<String, ServerCounts>,
}

/// Milliseconds of calls to an upstream server.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct UpstreamLatency {
    pub p50: f64,
    pub p95: f64,
}

#[derive(Debug)]
struct ServerCounts {
    outcomes: BTreeMap<UpstreamOutcome, u64>,
    refused: BTreeMap<RefusedRequest, u64>,
    duration_ms: SampleWindow,
    durations: Histogram,
}

impl Metrics {
    /// Counts a call to an upstream server. One that was not sent has an outcome, and took no time worth knowing.
    pub(crate) fn record_upstream_call(&self, server: &str, outcome: UpstreamOutcome, duration: Duration) {
        self.lock().upstreams.of(server, &self.exporter).record_call(outcome, duration);
    }

    /// Counts a request of an upstream server that was refused.
    pub(crate) fn record_refused_request(&self, server: &str, request: RefusedRequest) {
        *self.lock().upstreams.of(server, &self.exporter).refused.entry(request).or_default() += 1;
    }

    /// The upstream servers as JSON, for operators and scripts: what was counted here, and how each is.
    pub fn upstreams_json(&self, servers: &[UpstreamView]) -> Value {
        let counts = self.lock();
        let mut all = counts.upstreams.json();
        for server in servers {
            let entry = all.entry(server.name.clone()).or_insert_with(|| ServerCounts::json(None));
            entry["state"] = json!(server.state);
            entry["restarts"] = json!(server.restarts);
            entry["driftedTools"] = json!(server.drifted().count());
        }
        Value::Object(all)
    }

    /// How long the last thousand calls to an upstream server took; zeros for one that was not called.
    pub fn upstream_latency(&self, server: &str) -> UpstreamLatency {
        let counts = self.lock();
        let summary = counts.upstreams.servers.get(server).map(|server| server.duration_ms.summary());
        let summary = summary.unwrap_or_default();
        UpstreamLatency { p50: ms(summary.p50), p95: ms(summary.p95) }
    }

    /// Takes over how the upstream servers are, for [`Metrics::prometheus`].
    pub fn set_upstreams(&self, servers: &[UpstreamView]) {
        for server in servers {
            let name = ("server", &*server.name);
            for (state, word) in [
                (UpstreamState::Idle, "idle"),
                (UpstreamState::Connecting, "connecting"),
                (UpstreamState::Connected, "connected"),
                (UpstreamState::Disconnected, "disconnected"),
            ] {
                let help = "Whether an upstream server is in this state.";
                let value = f64::from(u8::from(server.state == state));
                let labels = [name, ("state", word)];
                self.exporter.gauge("quarterdeck_upstream_state", help, &labels, value);
            }
            let help = "Times that an upstream server was connected again after it was lost.";
            self.exporter.counter("quarterdeck_upstream_restarts_total", help, &[name], server.restarts);
            let help = "Tools that an upstream server does not publish as they were imported.";
            let drifted = server.drifted().count() as f64;
            self.exporter.gauge("quarterdeck_upstream_drifted_tools", help, &[name], drifted);
        }
    }
}

impl UpstreamMetrics {
    fn of(&mut self, server: &str, exporter: &Exporter) -> &mut ServerCounts {
        let is_known = self.servers.contains_key(server) || self.servers.len() < MAX_SERVERS;
        let name = if is_known { server } else { OTHER_SERVERS };
        self.servers.entry(name.to_owned()).or_insert_with(|| ServerCounts::new(name, exporter))
    }

    fn json(&self) -> Map<String, Value> {
        let all =
            self.servers.iter().map(|(server, counts)| (server.clone(), ServerCounts::json(Some(counts))));
        all.collect()
    }

    pub(super) fn export(&self, to: &Exporter) {
        for (server, counts) in &self.servers {
            for (outcome, value) in &counts.outcomes {
                let labels = [("server", &**server), ("outcome", outcome.as_str())];
                let help = "Calls to an upstream server, by how they ended.";
                to.counter("quarterdeck_upstream_calls_total", help, &labels, *value);
            }
            for (request, value) in &counts.refused {
                let labels = [("server", &**server), ("kind", request.as_str())];
                let help = "Requests of an upstream server that were refused, by kind.";
                to.counter("quarterdeck_upstream_refused_requests_total", help, &labels, *value);
            }
        }
    }
}

impl ServerCounts {
    fn new(server: &str, exporter: &Exporter) -> Self {
        Self {
            outcomes: BTreeMap::new(),
            refused: BTreeMap::new(),
            duration_ms: SampleWindow::default(),
            durations: exporter.upstream_durations(server),
        }
    }

    fn record_call(&mut self, outcome: UpstreamOutcome, duration: Duration) {
        *self.outcomes.entry(outcome).or_default() += 1;
        if outcome.is_sent() {
            self.durations.record(duration.as_secs_f64());
            self.duration_ms.add(duration.as_secs_f64() * 1_000.0);
        }
    }

    /// A server that was never called has zeros.
    fn json(counts: Option<&Self>) -> Value {
        let duration = counts.map(|counts| counts.duration_ms.summary()).unwrap_or_default();
        let calls = counts.into_iter().flat_map(|counts| &counts.outcomes);
        let refused = counts.into_iter().flat_map(|counts| &counts.refused);
        json!({
            "calls": calls.map(|(outcome, value)| (outcome.as_str().to_owned(), json!(value))).collect::<Map<_, _>>(),
            "refusedRequests":
                refused.map(|(kind, value)| (kind.as_str().to_owned(), json!(value))).collect::<Map<_, _>>(),
            "latency": {
                "avg": ms(duration.average), "p50": ms(duration.p50), "p95": ms(duration.p95), "p99": ms(duration.p99),
            },
        })
    }
}

#[cfg(test)]
mod tests {
    use quarterdeck_contracts::{PinState, UpstreamTool, UpstreamTransport};

    use super::*;

    fn view(name: &str) -> UpstreamView {
        let tool = |id: &str, state| UpstreamTool {
            tool_id: id.into(),
            name: id.into(),
            state,
            pinned: "sha256:00".into(),
            live: None,
            difference: None,
        };
        UpstreamView {
            name: name.into(),
            transport: UpstreamTransport::Stdio,
            address: "weather-server".into(),
            state: UpstreamState::Disconnected,
            since_ms: 0,
            trouble: None,
            server: None,
            restarts: 2,
            calls: 3,
            failures: 1,
            refused_requests: 1,
            tools: vec![
                tool("a", PinState::Matches),
                tool("b", PinState::Drifted),
                tool("c", PinState::Missing),
                tool("d", PinState::Unchecked),
            ],
            not_imported: Vec::new(),
        }
    }

    #[test]
    fn calls_are_counted_by_outcome_and_only_those_that_were_sent_are_timed() {
        let metrics = Metrics::default();
        metrics.record_upstream_call("weather", UpstreamOutcome::Answered, Duration::from_millis(40));
        metrics.record_upstream_call("weather", UpstreamOutcome::TimedOut, Duration::from_millis(60));
        metrics.record_upstream_call("weather", UpstreamOutcome::Unavailable, Duration::from_secs(9));
        metrics.record_refused_request("weather", RefusedRequest::Sampling);
        let servers = [view("weather"), view("quiet")];
        let json = metrics.upstreams_json(&servers);
        assert_eq!(
            json["weather"],
            json!({
                "calls": { "answered": 1, "timed_out": 1, "unavailable": 1 },
                "refusedRequests": { "sampling": 1 },
                "latency": { "avg": 50.0, "p50": 40.0, "p95": 60.0, "p99": 60.0 },
                "state": "disconnected", "restarts": 2, "driftedTools": 2,
            })
        );
        assert_eq!(json["quiet"]["calls"], json!({}), "a server that was never called is listed");
        metrics.set_upstreams(&servers);
        let text = metrics.prometheus();
        for line in [
            "quarterdeck_upstream_calls_total{server=\"weather\",outcome=\"unavailable\"} 1",
            "quarterdeck_upstream_refused_requests_total{server=\"weather\",kind=\"sampling\"} 1",
            "quarterdeck_upstream_call_duration_seconds_count{server=\"weather\"} 2",
            "quarterdeck_upstream_state{server=\"weather\",state=\"disconnected\"} 1",
            "quarterdeck_upstream_state{server=\"weather\",state=\"connected\"} 0",
            "quarterdeck_upstream_restarts_total{server=\"quiet\"} 2",
            "quarterdeck_upstream_drifted_tools{server=\"quiet\"} 2",
        ] {
            assert!(text.contains(line), "{line} in\n{text}");
        }
    }

    #[test]
    fn a_server_that_comes_back_is_no_longer_shown_as_disconnected() {
        let metrics = Metrics::default();
        metrics.set_upstreams(&[view("weather")]);
        metrics.set_upstreams(&[UpstreamView { state: UpstreamState::Connected, ..view("weather") }]);
        let text = metrics.prometheus();
        assert!(
            text.contains("quarterdeck_upstream_state{server=\"weather\",state=\"disconnected\"} 0"),
            "{text}"
        );
        assert!(
            text.contains("quarterdeck_upstream_state{server=\"weather\",state=\"connected\"} 1"),
            "{text}"
        );
    }

    #[test]
    fn more_servers_than_are_sensible_are_counted_together() {
        let metrics = Metrics::default();
        for number in 0..200 {
            metrics.record_refused_request(&format!("s{number}"), RefusedRequest::Other);
        }
        let all = metrics.upstreams_json(&[]);
        assert_eq!(all.as_object().unwrap().len(), MAX_SERVERS + 1);
        assert_eq!(all[OTHER_SERVERS]["refusedRequests"]["other"], 200 - MAX_SERVERS);
    }
}
