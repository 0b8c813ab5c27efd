//! The text format of Prometheus.

use std::fmt::Write;

use super::Counts;
use super::tool::ToolMetrics;
use super::window::Summary;

const COUNTER: &str = "counter";
const GAUGE: &str = "gauge";

pub(super) fn render(counts: &Counts) -> String {
    let mut page = Page::default();
    let total = |value: u64| [(String::new(), value as f64)];
    let of_tools = |value: fn(&ToolMetrics) -> u64| {
        counts.tools.iter().map(move |(tool, metrics)| (label(tool, ""), value(metrics) as f64))
    };
    let calls = of_tools(|metrics| metrics.calls);
    page.family("tool_calls_total", COUNTER, "Calls that a handler has answered.", calls);
    let errors = counts.tools.iter().flat_map(|(tool, metrics)| {
        let by_type = metrics.errors.iter();
        by_type.map(move |(kind, count)| (label(tool, &format!(",type=\"{kind}\"")), *count as f64))
    });
    page.family("tool_errors_total", COUNTER, "Answers that were failures, by type.", errors);
    let refusals = counts.tools.iter().flat_map(|(tool, metrics)| {
        let by_gate = metrics.refused.iter();
        by_gate
            .map(move |(gate, count)| (label(tool, &format!(",gate=\"{}\"", escaped(gate))), *count as f64))
    });
    page.family("tool_refusals_total", COUNTER, "Calls that a gate has refused.", refusals);
    let replays = of_tools(|metrics| metrics.cache_hits);
    page.family("tool_replays_total", COUNTER, "Calls that were answered from the record.", replays);
    let slow = of_tools(|metrics| metrics.slow);
    page.family("tool_over_budget_total", COUNTER, "Calls that took longer than their soft limits.", slow);
    let durations = quantiles(counts, 1_000.0, |metrics| metrics.duration_ms.summary());
    page.family("tool_duration_seconds", GAUGE, "Time of the last thousand calls.", durations);
    let sizes = quantiles(counts, 1.0, |metrics| metrics.size.summary());
    page.family("tool_response_characters", GAUGE, "Size of the last thousand responses.", sizes);
    let active = [("text", counts.text), ("voice", counts.voice)];
    let active = active.map(|(mode, count)| (format!("{{mode=\"{mode}\"}}"), count as f64));
    page.family("sessions_active", GAUGE, "Sessions that have not ended.", active);
    page.family("sessions_total", COUNTER, "Sessions that were opened.", total(counts.total));
    page.family("turns_total", COUNTER, "Turns that were begun.", total(counts.turns));
    let lost = total(counts.audit_lost);
    page.family("audit_lost_lines_total", COUNTER, "Audit lines that could not be kept.", lost);
    page.text
}

fn quantiles(
    counts: &Counts,
    scale: f64,
    summary: fn(&ToolMetrics) -> Summary,
) -> impl Iterator<Item = (String, f64)> {
    counts.tools.iter().flat_map(move |(tool, metrics)| {
        let summary = summary(metrics);
        let values = [("0.5", summary.p50), ("0.95", summary.p95), ("0.99", summary.p99)];
        values.map(|(quantile, value)| (label(tool, &format!(",quantile=\"{quantile}\"")), value / scale))
    })
}

#[derive(Default)]
pub(super) struct Page {
    pub(super) text: String,
}

impl Page {
    /// Writes one metric: each sample has its labels, in braces, and its value.
    pub(super) fn family(
        &mut self,
        name: &str,
        kind: &str,
        help: &str,
        samples: impl IntoIterator<Item = (String, f64)>,
    ) {
        // Writing to a string cannot fail.
        let _ = writeln!(self.text, "# HELP quarterdeck_{name} {help}\n# TYPE quarterdeck_{name} {kind}");
        for (labels, value) in samples {
            let _ = writeln!(self.text, "quarterdeck_{name}{labels} {value}");
        }
    }
}

pub(super) fn label(tool: &str, more: &str) -> String {
    format!("{{tool=\"{}\"{more}}}", escaped(tool))
}

fn escaped(value: &str) -> String {
    value.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n")
}
