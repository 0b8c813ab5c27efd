//! The metrics for Prometheus. Times and sizes are histograms, so that percentiles can be computed over several nodes.

use std::fmt;
use std::sync::OnceLock;

use metrics::{Histogram, Key, KeyName, Label, Level, Metadata, Recorder};
use metrics_exporter_prometheus::{Matcher, PrometheusBuilder, PrometheusRecorder};

use super::Counts;

const DURATION: &str = "quarterdeck_tool_duration_seconds";
const RESPONSE_CHARACTERS: &str = "quarterdeck_tool_response_characters";
const FIRST_TOKEN: &str = "quarterdeck_model_first_token_seconds";
const FIRST_AUDIO: &str = "quarterdeck_voice_first_audio_seconds";
const UPSTREAM_DURATION: &str = "quarterdeck_upstream_call_duration_seconds";
const COMMIT_DURATION: &str = "quarterdeck_store_commit_duration_seconds";
const COMMIT_BUCKETS_SECONDS: [f64; 13] =
    [0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 10.0];
/// A model that is loaded first may take five minutes.
const FIRST_TOKEN_BUCKETS_SECONDS: [f64; 12] =
    [0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 20.0, 30.0, 60.0, 120.0, 300.0];
/// People notice from a few hundred milliseconds on.
const FIRST_AUDIO_BUCKETS_SECONDS: [f64; 12] =
    [0.1, 0.2, 0.3, 0.5, 0.75, 1.0, 1.5, 2.0, 3.0, 5.0, 10.0, 30.0];
const DURATION_BUCKETS_SECONDS: [f64; 14] =
    [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0];
/// 1,500 is the size from which responses are warned about.
const SIZE_BUCKETS_CHARACTERS: [f64; 8] =
    [100.0, 250.0, 500.0, 1_500.0, 5_000.0, 15_000.0, 50_000.0, 150_000.0];

static METADATA: Metadata<'static> = Metadata::new(module_path!(), Level::INFO, None);

/// Holds what is exported. Nothing is registered process-wide: a test, or a program with two orchestrators, has two.
#[derive(Default)]
pub(super) struct Exporter {
    recorder: OnceLock<PrometheusRecorder>,
    /// The label of every series, where there are several nodes.
    node: OnceLock<String>,
}

fn new_recorder(node: Option<&String>) -> PrometheusRecorder {
    let with_buckets = |builder: PrometheusBuilder, name: &str, buckets: &[f64]| {
        builder
            .set_buckets_for_metric(Matcher::Full(name.into()), buckets)
            .expect("a histogram has at least one bucket")
    };
    let builder = with_buckets(PrometheusBuilder::new(), DURATION, &DURATION_BUCKETS_SECONDS);
    let builder = with_buckets(builder, RESPONSE_CHARACTERS, &SIZE_BUCKETS_CHARACTERS);
    let builder = with_buckets(builder, FIRST_TOKEN, &FIRST_TOKEN_BUCKETS_SECONDS);
    let builder = with_buckets(builder, FIRST_AUDIO, &FIRST_AUDIO_BUCKETS_SECONDS);
    let builder = with_buckets(builder, UPSTREAM_DURATION, &DURATION_BUCKETS_SECONDS);
    let mut builder = with_buckets(builder, COMMIT_DURATION, &COMMIT_BUCKETS_SECONDS);
    if let Some(node) = node {
        builder = builder.add_global_label("node", node);
    }
    let recorder = builder.build_recorder();
    let describe = |name: &'static str, help: &'static str| {
        recorder.describe_histogram(KeyName::from_const_str(name), None, help.into());
    };
    describe(DURATION, "Time that calls took.");
    describe(RESPONSE_CHARACTERS, "Size of responses.");
    describe(FIRST_TOKEN, "Time from a request to a model to its first output.");
    describe(FIRST_AUDIO, "Time from the end of the user's speech to the first audio of the answer.");
    describe(UPSTREAM_DURATION, "Time that calls to an upstream server took.");
    describe(COMMIT_DURATION, "Time that commits of sessions took.");
    recorder
}

impl fmt::Debug for Exporter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Exporter").finish_non_exhaustive()
    }
}

impl Exporter {
    fn recorder(&self) -> &PrometheusRecorder {
        self.recorder.get_or_init(|| new_recorder(self.node.get()))
    }

    pub(super) fn name_node(&self, name: &str) {
        if self.node.set(name.to_owned()).is_err() || self.recorder.get().is_some() {
            tracing::warn!(node = name, "metrics were counted before the node had its name");
        }
    }

    pub(super) fn commits(&self) -> Histogram {
        self.recorder().register_histogram(&key(COMMIT_DURATION, &[]), &METADATA)
    }

    pub(super) fn durations(&self, tool: &str) -> Histogram {
        self.recorder().register_histogram(&key(DURATION, &[("tool", tool)]), &METADATA)
    }

    pub(super) fn sizes(&self, tool: &str) -> Histogram {
        self.recorder().register_histogram(&key(RESPONSE_CHARACTERS, &[("tool", tool)]), &METADATA)
    }

    pub(super) fn first_tokens(&self, provider: &str, model: &str) -> Histogram {
        let labels = [("provider", provider), ("model", model)];
        self.recorder().register_histogram(&key(FIRST_TOKEN, &labels), &METADATA)
    }

    pub(super) fn first_audio(&self, provider: &str, model: &str) -> Histogram {
        let labels = [("provider", provider), ("model", model)];
        self.recorder().register_histogram(&key(FIRST_AUDIO, &labels), &METADATA)
    }

    pub(super) fn upstream_durations(&self, server: &str) -> Histogram {
        self.recorder().register_histogram(&key(UPSTREAM_DURATION, &[("server", server)]), &METADATA)
    }

    pub(super) fn counter(
        &self,
        name: &'static str,
        help: &'static str,
        labels: &[(&'static str, &str)],
        value: u64,
    ) {
        self.recorder().describe_counter(KeyName::from_const_str(name), None, help.into());
        self.recorder().register_counter(&key(name, labels), &METADATA).absolute(value);
    }

    pub(super) fn gauge(
        &self,
        name: &'static str,
        help: &'static str,
        labels: &[(&'static str, &str)],
        value: f64,
    ) {
        self.recorder().describe_gauge(KeyName::from_const_str(name), None, help.into());
        self.recorder().register_gauge(&key(name, labels), &METADATA).set(value);
    }

    /// Puts the samples since the last time into their buckets. Until then each takes its bytes.
    pub(super) fn run_upkeep(&self) {
        self.recorder().handle().run_upkeep();
    }

    pub(super) fn render(&self) -> String {
        self.recorder().handle().render()
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
        for (schedule, value) in &metrics.schedules {
            let labels = [tool[0], ("decision", schedule.as_str())];
            let help = "Voice calls by how they were waited for.";
            to.counter("quarterdeck_tool_schedules_total", help, &labels, *value);
        }
    }
    counts.models.export(to);
    counts.upstreams.export(to);
    export_versions(counts, to);
    for (mode, open) in [("text", counts.text), ("voice", counts.voice)] {
        let help = "Sessions that have not ended.";
        to.gauge("quarterdeck_sessions_active", help, &[("mode", mode)], open as f64);
    }
    to.counter("quarterdeck_sessions_total", "Sessions that were opened.", &[], counts.total);
    to.counter("quarterdeck_turns_total", "Turns that were begun.", &[], counts.turns);
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
        for (rating, value) in counters.feedback {
            let help =
                "Ratings of answers that stand, of those given since the start, by version of the registry.";
            let labels = [version[0], ("rating", rating)];
            // A rating that is changed or taken back goes down.
            to.gauge("quarterdeck_version_feedback", help, &labels, value as f64);
        }
    }
}
