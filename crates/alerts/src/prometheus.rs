//! The rules for Prometheus.

use std::fmt::Write;

use crate::rule::{Condition, Rule};

/// A file of rules for Prometheus, in YAML.
pub fn prometheus_rules(rules: &[Rule]) -> String {
    let mut text = String::from(
        "# Written by `quarterdeck alerts prometheus`: the rules that the server evaluates itself.\n\
         groups:\n  - name: quarterdeck\n    rules:\n",
    );
    for rule in rules {
        // Strings of JSON are strings of YAML.
        let quoted = |text: &str| serde_json::Value::from(text).to_string();
        let _ = writeln!(text, "      - alert: {}", quoted(&alert_name(&rule.id)));
        let _ = writeln!(text, "        expr: {}", quoted(&expression(&rule.when)));
        if rule.for_seconds > 0 {
            let _ = writeln!(text, "        for: {}s", rule.for_seconds);
        }
        let _ = writeln!(text, "        labels:\n          severity: {}", rule.severity.as_str());
        let _ = writeln!(text, "          rule: {}", rule.id);
        let _ = writeln!(text, "        annotations:\n          summary: {}", quoted(&rule.summary));
        let _ = writeln!(text, "          remedy: {}", quoted(&rule.remedy));
    }
    text
}

/// `QuarterdeckToolErrors` for `tool_errors`: what Prometheus calls an alert by custom.
fn alert_name(id: &str) -> String {
    let words = id.split('_').filter(|word| !word.is_empty());
    let words = words.map(|word| word[..1].to_uppercase() + &word[1..]);
    format!("Quarterdeck{}", words.collect::<String>())
}

fn expression(condition: &Condition) -> String {
    match condition {
        Condition::Gauge { series, labels, above, below } => {
            let labels: Vec<_> = labels
                .iter()
                .map(|(name, value)| format!("{name}={}", serde_json::Value::from(&**value)))
                .collect();
            let labels = if labels.is_empty() { String::new() } else { format!("{{{}}}", labels.join(",")) };
            match (above, below) {
                (Some(limit), _) => format!("{series}{labels} > {limit}"),
                (None, limit) => format!("{series}{labels} < {}", limit.unwrap_or(0.0)),
            }
        }
        Condition::Increase { series, within_seconds, above } => {
            format!("increase({series}[{within_seconds}s]) > {above}")
        }
        Condition::Ratio { part, of, by, within_seconds, above, least } => {
            let by: Vec<_> = ["instance", "node"].into_iter().chain(by.iter().map(String::as_str)).collect();
            let sum =
                |series: &str| format!("sum by ({}) (increase({series}[{within_seconds}s]))", by.join(", "));
            let (part, of) = (sum(part), sum(of));
            format!("{part} / {of} > {above} and {of} >= {least}")
        }
        Condition::Quantile { histogram, quantile, within_seconds, above, least } => {
            let buckets =
                format!("sum by (instance, node, le) (rate({histogram}_bucket[{within_seconds}s]))");
            let count = format!("sum by (instance, node) (increase({histogram}_count[{within_seconds}s]))");
            format!("histogram_quantile({quantile}, {buckets}) > {above} and {count} >= {least}")
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rule::Rules;

    fn expression_of(id: &str) -> String {
        let rules = Rules::default().rules;
        expression(&rules.iter().find(|rule| rule.id == id).unwrap().when)
    }

    #[test]
    fn conditions_are_written_as_expressions() {
        assert_eq!(expression_of("model_failing"), "quarterdeck_model_failing > 0");
        assert_eq!(expression_of("node_cannot_write"), "quarterdeck_node_may_write < 1");
        assert_eq!(expression_of("store_pool_full"), r#"quarterdeck_store_connections{state="waiting"} > 0"#);
        assert_eq!(
            expression_of("tool_errors"),
            "sum by (instance, node, tool) (increase(quarterdeck_tool_errors_total[600s])) / \
             sum by (instance, node, tool) (increase(quarterdeck_tool_calls_total[600s])) > 0.2 and \
             sum by (instance, node, tool) (increase(quarterdeck_tool_calls_total[600s])) >= 10"
        );
        assert!(
            expression_of("store_slow")
                .starts_with("histogram_quantile(0.95, sum by (instance, node, le) (rate(")
        );
    }

    #[test]
    fn alerts_are_named_as_is_the_custom() {
        assert_eq!(alert_name("tool_errors"), "QuarterdeckToolErrors");
    }
}
