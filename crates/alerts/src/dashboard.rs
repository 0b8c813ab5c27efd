//! A dashboard for Grafana with every series that the server has.

use serde_json::{Value, json};

/// One series, as docs/METRICS.md declares it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MetricFamily {
    pub name: String,
    pub labels: Vec<String>,
    /// What it counts.
    pub help: String,
}

/// Reads the tables of series from the page that declares them: a test holds that page against what the server sends.
pub fn metric_families(page: &str) -> Vec<MetricFamily> {
    let rows = page.lines().filter_map(|line| {
        let cells: Vec<_> =
            line.strip_prefix("| `quarterdeck_").map(|_| line.split('|').map(str::trim).collect())?;
        let [_, name, labels, help, _] = cells[..] else { return None };
        let bare = |text: &str| text.trim().trim_matches('`').to_owned();
        let labels = labels.split(',').map(bare).filter(|label| !label.is_empty()).collect();
        Some(MetricFamily { name: bare(name), labels, help: help.to_owned() })
    });
    rows.collect()
}

/// The dashboard, with a row for each part of the server and a panel for each series.
pub fn grafana_dashboard(families: &[MetricFamily]) -> Value {
    let mut panels = Vec::new();
    let (mut part, mut row, mut column) = ("", 0, 0);
    for family in families {
        if part_of(&family.name) != part {
            part = part_of(&family.name);
            row += if column > 0 { 8 } else { 0 };
            column = 0;
            let place = json!({ "x": 0, "y": row, "w": 24, "h": 1 });
            panels.push(json!({ "type": "row", "title": part, "gridPos": place, "panels": [], "id": panels.len() + 1 }));
            row += 1;
        }
        let place = json!({ "x": column * 8, "y": row, "w": 8, "h": 8 });
        panels.push(panel(family, place, panels.len() + 1));
        column = (column + 1) % 3;
        row += if column == 0 { 8 } else { 0 };
    }
    json!({
        "title": "Quarterdeck", "uid": "quarterdeck", "tags": ["quarterdeck"], "schemaVersion": 41, "editable": true,
        "refresh": "30s", "time": { "from": "now-6h", "to": "now" }, "timezone": "browser",
        "templating": { "list": [{
            "name": "datasource", "label": "Data source", "type": "datasource", "query": "prometheus", "hide": 0,
        }] },
        "panels": panels,
    })
}

/// The first word after ours: `tool`, `model`, `store`.
fn part_of(name: &str) -> &str {
    name.trim_start_matches("quarterdeck_").split('_').next().unwrap_or_default()
}

fn panel(family: &MetricFamily, place: Value, id: usize) -> Value {
    let MetricFamily { name, labels, help } = family;
    let by = labels.join(", ");
    let legend: Vec<_> = labels.iter().map(|label| format!("{{{{{label}}}}}")).collect();
    let is_histogram = help.starts_with("a histogram");
    let targets: Vec<Value> = if is_histogram {
        let by = ["le"].into_iter().chain(labels.iter().map(String::as_str)).collect::<Vec<_>>().join(", ");
        let quantile = |share: f64| {
            format!("histogram_quantile({share}, sum by ({by}) (rate({name}_bucket[$__rate_interval])))")
        };
        let target =
            |share: f64, name: &str| target(&quantile(share), &format!("{name} {}", legend.join(" ")));
        vec![target(0.5, "p50"), target(0.95, "p95")]
    } else if name.ends_with("_total") {
        vec![target(&format!("sum by ({by}) (rate({name}[$__rate_interval]))"), &legend.join(" "))]
    } else {
        vec![target(&format!("sum by ({by}) ({name})"), &legend.join(" "))]
    };
    let unit = match name {
        name if name.contains("_seconds") => "s",
        name if name.ends_with("_bytes") => "bytes",
        name if name.ends_with("_total") => "ops",
        _ => "short",
    };
    json!({
        "id": id, "type": "timeseries", "title": title(name), "description": help, "gridPos": place,
        "datasource": { "type": "prometheus", "uid": "${datasource}" },
        "fieldConfig": { "defaults": { "unit": unit, "min": 0 }, "overrides": [] },
        "options": { "legend": { "displayMode": "list", "placement": "bottom" } },
        "targets": targets,
    })
}

fn target(expression: &str, legend: &str) -> Value {
    json!({ "expr": expression, "legendFormat": legend.trim(), "range": true })
}

/// `Tool duration` for `quarterdeck_tool_duration_seconds`.
fn title(name: &str) -> String {
    let name =
        name.trim_start_matches("quarterdeck_").trim_end_matches("_total").trim_end_matches("_seconds");
    let words = name.replace('_', " ");
    words[..1].to_uppercase() + &words[1..]
}

#[cfg(test)]
mod tests {
    use super::*;

    const PAGE: &str = "| series | labels | counts |\n| --- | --- | --- |\n\
                        | `quarterdeck_tool_calls_total` | `tool` | calls |\n\
                        | `quarterdeck_tool_duration_seconds` | `tool` | a histogram of the time |\n\
                        | `quarterdeck_sessions_active` | `mode`, `node` | open sessions |\n\
                        | `quarterdeck_turns_total` | | turns |\n";

    #[test]
    fn series_are_read_from_the_page() {
        let families = metric_families(PAGE);
        let labels: Vec<_> = families.iter().map(|family| family.labels.join(" ")).collect();
        assert_eq!(labels, ["tool", "tool", "mode node", ""]);
    }

    #[test]
    fn each_kind_has_its_expression() {
        let dashboard = grafana_dashboard(&metric_families(PAGE));
        let panels = dashboard["panels"].as_array().unwrap();
        let expressions: Vec<_> = panels
            .iter()
            .flat_map(|panel| panel["targets"].as_array().into_iter().flatten())
            .map(|target| target["expr"].as_str().unwrap())
            .collect();
        assert_eq!(
            expressions,
            [
                "sum by (tool) (rate(quarterdeck_tool_calls_total[$__rate_interval]))",
                "histogram_quantile(0.5, sum by (le, tool) (rate(quarterdeck_tool_duration_seconds_bucket[$__rate_interval])))",
                "histogram_quantile(0.95, sum by (le, tool) (rate(quarterdeck_tool_duration_seconds_bucket[$__rate_interval])))",
                "sum by (mode, node) (quarterdeck_sessions_active)",
                "sum by () (rate(quarterdeck_turns_total[$__rate_interval]))",
            ]
        );
        let rows: Vec<_> =
            panels.iter().filter(|panel| panel["type"] == "row").map(|row| &row["title"]).collect();
        assert_eq!(rows, ["tool", "sessions", "turns"]);
    }
}
