//! The metrics for Prometheus. Times and sizes are histograms, so that percentiles can be computed over several nodes.

use std::fmt;

use metrics::{Histogram, Key, KeyName, Label, Level, Metadata, Recorder};
use metrics_exporter_prometheus::{Matcher, PrometheusBuilder, PrometheusRecorder};

use super::Counts;

const DURATION: &str = "quarterdeck_tool_duration_seconds";
const RESPONSE_CHARACTERS: &str = "quarterdeck_tool_response_characters";
const DURATION_BUCKETS_SECONDS: [f64; 14] =
    [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0];
/// 1,500 is the size from which responses are warned about.
const SIZE_BUCKETS_CHARACTERS: [f64; 8] =
    [100.0, 250.0, 500.0, 1_500.0, 5_000.0, 15_000.0, 50_000.0, 150_000.0];

static METADATA: Metadata<'static> = Metadata::new(module_path!(), Level::INFO, None);

/// Holds what is exported. Nothing is registered process-wide: a test, or a program with two orchestrators, has two.
pub(super) struct Exporter {
    recorder: PrometheusRecorder,
}

impl Default for Exporter {
    fn default() -> Self {
        let with_buckets = |builder: PrometheusBuilder, name: &str, buckets: &[f64]| {
            builder
                .set_buckets_for_metric(Matcher::Full(name.into()), buckets)
                .expect("a histogram has at least one bucket")
        };
        let builder = with_buckets(PrometheusBuilder::new(), DURATION, &DURATION_BUCKETS_SECONDS);
        let builder = with_buckets(builder, RESPONSE_CHARACTERS, &SIZE_BUCKETS_CHARACTERS);
        let recorder = builder.build_recorder();
        let describe = |name: &'static str, help: &'static str| {
            recorder.describe_histogram(KeyName::from_const_str(name), None, help.into());
        };
        describe(DURATION, "Time that calls took.");
        describe(RESPONSE_CHARACTERS, "Size of responses.");
        Self { recorder }
    }
}

impl fmt::Debug for Exporter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Exporter").finish_non_exhaustive()
    }
}

impl Exporter {
    pub(super) fn durations(&self, tool: &str) -> Histogram {
        self.recorder.register_histogram(&key(DURATION, &[("tool", tool)]), &METADATA)
    }

    pub(super) fn sizes(&self, tool: &str) -> Histogram {
        self.recorder.register_histogram(&key(RESPONSE_CHARACTERS, &[("tool", tool)]), &METADATA)
    }

    pub(super) fn counter(
        &self,
        name: &'static str,
        help: &'static str,
        labels: &[(&'static str, &str)],
        value: u64,
    ) {
        self.recorder.describe_counter(KeyName::from_const_str(name), None, help.into());
        self.recorder.register_counter(&key(name, labels), &METADATA).absolute(value);
    }

    pub(super) fn gauge(
        &self,
        name: &'static str,
        help: &'static str,
        labels: &[(&'static str, &str)],
        value: f64,
    ) {
        self.recorder.describe_gauge(KeyName::from_const_str(name), None, help.into());
        self.recorder.register_gauge(&key(name, labels), &METADATA).set(value);
    }

    /// Puts the samples since the last time into their buckets. Until then each takes its bytes.
    pub(super) fn run_upkeep(&self) {
        self.recorder.handle().run_upkeep();
    }

    pub(super) fn render(&self) -> String {
        self.recorder.handle().render()
    }
}

fn key(name: &'static str, labels: &[(&'static str, &str)]) -> Key {
    let labels: Vec<_> = labels.iter().map(|(name, value)| Label::new(*name, (*value).to_owned())).collect();
    Key::from_parts(name, labels)
}

/// Hands on the counters of tools and sessions as they stand.
pub(super) fn export(counts: &Counts, to: &Exporter) {
    for (tool, metrics) in &counts.tools {
        let tool = [("tool", &**tool)];
        let count = |name, help, value| to.counter(name, help, &tool, value);
        count("quarterdeck_tool_calls_total", "Calls that a handler has answered.", metrics.calls);
        count(
            "quarterdeck_tool_replays_total",
            "Calls that were answered from the record.",
            metrics.cache_hits,
        );
        count(
            "quarterdeck_tool_over_budget_total",
            "Calls that took longer than their soft limits.",
            metrics.slow,
        );
        for (kind, value) in &metrics.errors {
            let labels = [tool[0], ("type", kind.as_str())];
            let (name, help) = match kind.is_about_request() {
                false => ("quarterdeck_tool_errors_total", "Answers that were failures, by type."),
                true => (
                    "quarterdeck_tool_request_errors_total",
                    "Answers that something is wrong with the request, by type. They are no failures of the tool.",
                ),
            };
            to.counter(name, help, &labels, *value);
        }
        for (gate, value) in &metrics.refused {
            let labels = [tool[0], ("gate", gate.as_str())];
            to.counter("quarterdeck_tool_refusals_total", "Calls that a gate has refused.", &labels, *value);
        }
    }
    export_versions(counts, to);
    for (mode, open) in [("text", counts.text), ("voice", counts.voice)] {
        let help = "Sessions that have not ended.";
        to.gauge("quarterdeck_sessions_active", help, &[("mode", mode)], open as f64);
    }
    to.counter("quarterdeck_sessions_total", "Sessions that were opened.", &[], counts.total);
    to.counter("quarterdeck_turns_total", "Turns that were begun.", &[], counts.turns);
    let help = "Audit lines that could not be kept.";
    to.counter("quarterdeck_audit_lost_lines_total", help, &[], counts.audit_lost);
}

fn export_versions(counts: &Counts, to: &Exporter) {
    for (version, counters) in counts.versions.all() {
        let version = [("version", &**version)];
        let count = |name, help, value| to.counter(name, help, &version, value);
        let help = "Sessions that were opened or resumed, by version of the registry.";
        count("quarterdeck_version_sessions_total", help, counters.sessions);
        let help = "Calls that a handler has answered, by version of the registry.";
        count("quarterdeck_version_calls_total", help, counters.calls);
        let help = "Answers that were failures, by version of the registry.";
        count("quarterdeck_version_errors_total", help, counters.errors);
        let help = "Tokens of answers, by version of the registry.";
        count("quarterdeck_version_response_tokens_total", help, counters.tokens);
        for (step, value) in counters.confirmations {
            let help = "Steps of confirmations, by version of the registry.";
            let labels = [version[0], ("step", step)];
            to.counter("quarterdeck_version_confirmations_total", help, &labels, value);
        }
    }
}
