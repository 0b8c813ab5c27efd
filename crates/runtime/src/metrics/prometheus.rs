//! The text format of Prometheus.

use std::fmt::Write;

use super::Counts;

pub(super) fn render(counts: &Counts) -> String {
    let mut text = String::new();
    let mut family = |name: &str, kind: &str, help: &str, samples: Vec<(String, f64)>| {
        // Writing to a string cannot fail.
        let _ = writeln!(text, "# HELP quarterdeck_{name} {help}\n# TYPE quarterdeck_{name} {kind}");
        for (labels, value) in samples {
            let _ = writeln!(text, "quarterdeck_{name}{labels} {value}");
        }
    };
    let tools = || counts.tools.iter();
    let label = |tool: &str, more: &str| format!("{{tool=\"{}\"{more}}}", escaped(tool));
    family(
        "tool_calls_total",
        "counter",
        "Calls that a handler has answered.",
        tools().map(|(tool, metrics)| (label(tool, ""), metrics.calls as f64)).collect(),
    );
    family(
        "tool_errors_total",
        "counter",
        "Answers that were failures, by type.",
        tools()
            .flat_map(|(tool, metrics)| {
                metrics.errors.iter().map(move |(kind, count)| {
                    (format!("{{tool=\"{}\",type=\"{kind}\"}}", escaped(tool)), *count as f64)
                })
            })
            .collect(),
    );
    family(
        "tool_refusals_total",
        "counter",
        "Calls that a gate has refused.",
        tools()
            .flat_map(|(tool, metrics)| {
                metrics.refused.iter().map(move |(gate, count)| {
                    (format!("{{tool=\"{}\",gate=\"{}\"}}", escaped(tool), escaped(gate)), *count as f64)
                })
            })
            .collect(),
    );
    family(
        "tool_replays_total",
        "counter",
        "Calls that were answered from the record.",
        tools().map(|(tool, metrics)| (label(tool, ""), metrics.cache_hits as f64)).collect(),
    );
    family(
        "tool_over_budget_total",
        "counter",
        "Calls that took longer than their soft limits.",
        tools().map(|(tool, metrics)| (label(tool, ""), metrics.slow as f64)).collect(),
    );
    for (name, help, window) in [
        ("tool_duration_seconds", "Time of the last thousand calls.", true),
        ("tool_response_characters", "Size of the last thousand responses.", false),
    ] {
        family(
            name,
            "gauge",
            help,
            tools()
                .flat_map(|(tool, metrics)| {
                    let summary = if window { metrics.duration_ms.summary() } else { metrics.size.summary() };
                    let scale = if window { 1_000.0 } else { 1.0 };
                    [("0.5", summary.p50), ("0.95", summary.p95), ("0.99", summary.p99)].map(
                        |(quantile, value)| {
                            (label(tool, &format!(",quantile=\"{quantile}\"")), value / scale)
                        },
                    )
                })
                .collect(),
        );
    }
    family(
        "sessions_active",
        "gauge",
        "Sessions that have not ended.",
        vec![
            ("{mode=\"text\"}".into(), counts.text as f64),
            ("{mode=\"voice\"}".into(), counts.voice as f64),
        ],
    );
    family(
        "sessions_total",
        "counter",
        "Sessions that were opened.",
        vec![(String::new(), counts.total as f64)],
    );
    family("turns_total", "counter", "Turns that were begun.", vec![(String::new(), counts.turns as f64)]);
    family(
        "audit_lost_lines_total",
        "counter",
        "Audit lines that could not be kept.",
        vec![(String::new(), counts.audit_lost as f64)],
    );
    text
}

/// A label's value.
pub(super) fn escaped(value: &str) -> String {
    value.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n")
}
