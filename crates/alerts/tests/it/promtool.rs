//! Prometheus's own tool takes the rules, and they fire there when they fire here.

use std::path::{Path, PathBuf};
use std::process::Command;

use quarterdeck_alerts::{AlarmEvent, Alarms, Rules, prometheus_rules};

/// `None` where the tool is not there, which is said.
#[expect(
    clippy::disallowed_methods,
    clippy::print_stderr,
    reason = "where programs are required, and saying that one is not there"
)]
fn promtool() -> Option<PathBuf> {
    let fetched = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../target/promtool/usr/bin/promtool");
    if fetched.exists() {
        return Some(fetched);
    }
    let is_required = std::env::var("QUARTERDECK_REQUIRE_CLIENTS").is_ok_and(|value| value == "1");
    assert!(!is_required, "promtool is missing; run scripts/promtool");
    eprintln!("SKIPPED: promtool is missing; run scripts/promtool");
    None
}

fn run(program: &Path, arguments: &[&str], folder: &Path) {
    let output = Command::new(program).args(arguments).current_dir(folder).output().expect("it can be run");
    let text =
        [output.stdout, output.stderr].map(|bytes| String::from_utf8_lossy(&bytes).into_owned()).concat();
    assert!(output.status.success(), "{text}");
}

#[test]
fn prometheus_takes_the_rules() {
    let Some(program) = promtool() else { return };
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("rules.yaml"), prometheus_rules(&Rules::default().rules)).unwrap();
    run(&program, &["check", "rules", "rules.yaml"], folder.path());
}

/// A series, and its value by minute.
type Series = (&'static str, fn(u64) -> u64);

/// Series by minute, and which rules they make fire after fifteen minutes, here and there.
struct Story {
    series: &'static [Series],
    fires: &'static [&'static str],
}

const STORIES: [Story; 5] = [
    Story {
        series: &[("quarterdeck_model_failing{provider=\"p\",model=\"m\"}", |_| 1)],
        fires: &["model_failing"],
    },
    Story {
        series: &[("quarterdeck_model_failing{provider=\"p\",model=\"m\"}", |minute| minute % 2)],
        fires: &[],
    },
    Story {
        series: &[
            ("quarterdeck_tool_calls_total{tool=\"a\"}", |minute| 10 * minute),
            ("quarterdeck_tool_errors_total{tool=\"a\",type=\"TIMEOUT\"}", |minute| 2 * minute),
            ("quarterdeck_tool_errors_total{tool=\"a\",type=\"INTERNAL\"}", |minute| 2 * minute),
            ("quarterdeck_tool_calls_total{tool=\"b\"}", |minute| 10 * minute),
            ("quarterdeck_tool_errors_total{tool=\"b\",type=\"TIMEOUT\"}", |minute| minute),
        ],
        fires: &["tool_errors"],
    },
    Story {
        series: &[
            ("quarterdeck_store_commit_duration_seconds_bucket{le=\"0.1\"}", |minute| 80 * minute),
            ("quarterdeck_store_commit_duration_seconds_bucket{le=\"1\"}", |minute| 100 * minute),
            ("quarterdeck_store_commit_duration_seconds_bucket{le=\"+Inf\"}", |minute| 100 * minute),
            ("quarterdeck_store_commit_duration_seconds_count", |minute| 100 * minute),
        ],
        fires: &["store_slow"],
    },
    Story {
        series: &[("quarterdeck_audit_lost_lines_total", |minute| u64::from(minute > 12))],
        fires: &["audit_gap"],
    },
];

const MINUTES: u64 = 15;

fn firing_here(story: &Story) -> Vec<String> {
    let alarms = Alarms::default();
    let mut firing = Vec::new();
    for minute in 0..=MINUTES {
        let lines = story.series.iter().map(|(series, value)| format!("{series} {}\n", value(minute)));
        for change in alarms.evaluate(minute * 60_000, &lines.collect::<String>()) {
            match change.event {
                AlarmEvent::Fired => firing.push(change.alarm.rule),
                AlarmEvent::Resolved | AlarmEvent::Lifted => firing.retain(|rule| *rule != change.alarm.rule),
            }
        }
    }
    firing
}

/// A test for the tool: it fails unless exactly these alerts fire.
fn promtool_test(story: &Story) -> serde_json::Value {
    let series = story.series.iter().map(|(series, value)| {
        let values: Vec<_> = (0..=MINUTES).map(|minute| value(minute).to_string()).collect();
        serde_json::json!({ "series": series, "values": values.join(" ") })
    });
    // The tool has no way to ask for all alerts, but for the series that it writes of them.
    let firing = story
        .fires
        .iter()
        .map(|rule| serde_json::json!({ "labels": format!("{{rule=\"{rule}\"}}"), "value": 1 }));
    let expression = "count by (rule) (ALERTS{alertstate=\"firing\"})";
    serde_json::json!({
        "interval": "1m",
        "input_series": series.collect::<Vec<_>>(),
        "promql_expr_test": [{ "expr": expression, "eval_time": format!("{MINUTES}m"), "exp_samples": firing.collect::<Vec<_>>() }],
    })
}

#[test]
fn rules_fire_in_the_server_as_they_do_in_prometheus() {
    for story in &STORIES {
        assert_eq!(firing_here(story), story.fires, "{:?}", story.series[0].0);
    }
    let Some(program) = promtool() else { return };
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("rules.yaml"), prometheus_rules(&Rules::default().rules)).unwrap();
    let tests: Vec<_> = STORIES.iter().map(promtool_test).collect();
    // JSON is YAML.
    let test =
        serde_json::json!({ "rule_files": ["rules.yaml"], "evaluation_interval": "1m", "tests": tests });
    std::fs::write(folder.path().join("test.yaml"), test.to_string()).unwrap();
    run(&program, &["test", "rules", "test.yaml"], folder.path());
}
