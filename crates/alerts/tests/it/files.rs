//! The files under `deploy` are what the program prints. `UPDATE_EXPECT=1` writes them.

use expect_test::expect_file;
use quarterdeck_alerts::{Rules, grafana_dashboard, metric_families, prometheus_rules};

#[test]
fn the_rules_for_prometheus_are_those_of_the_server() {
    expect_file!["../../../../deploy/prometheus/quarterdeck.rules.yaml"]
        .assert_eq(&prometheus_rules(&Rules::default().rules));
}

#[test]
fn the_dashboard_has_every_series() {
    let page = include_str!("../../../../docs/METRICS.md");
    let dashboard = grafana_dashboard(&metric_families(page));
    expect_file!["../../../../deploy/grafana/quarterdeck.json"].assert_eq(&format!("{dashboard:#}\n"));
}

#[test]
fn every_series_of_a_rule_is_declared() {
    let families = metric_families(include_str!("../../../../docs/METRICS.md"));
    let rules = serde_json::to_value(Rules::default()).unwrap();
    for rule in rules["rules"].as_array().unwrap() {
        for key in ["series", "part", "of", "histogram"] {
            let Some(series) = rule["when"][key].as_str() else { continue };
            assert!(families.iter().any(|family| family.name == series), "{}: {series}", rule["id"]);
        }
    }
}
