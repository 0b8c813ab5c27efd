use super::*;
use crate::rule::Severity;

fn rule(when: &str) -> Rule {
    Rule {
        id: "rule".into(),
        severity: Severity::Warning,
        summary: "s".into(),
        remedy: "r.".into(),
        when: serde_json::from_str(when).unwrap(),
        for_seconds: 0,
    }
}

/// What holds after texts that were sampled at these seconds.
fn holding(when: &str, texts: &[(u64, &str)]) -> Vec<(String, f64)> {
    let rule = rule(when);
    let mut history = History::new(std::slice::from_ref(&rule));
    for (second, text) in texts {
        history.add(second * 1_000, text);
    }
    let text = |labels: Labels| labels.into_values().collect::<Vec<_>>().join(" ");
    history.holding(&rule.when).into_iter().map(|(labels, value)| (text(labels), value)).collect()
}

#[test]
fn a_gauge_counts_as_it_is_and_with_its_labels() {
    let above = r#"{ "kind": "gauge", "series": "g", "where": { "state": "waiting" }, "above": 2 }"#;
    let text = "g{state=\"waiting\"} 3\ng{state=\"in_use\"} 9\n";
    assert_eq!(holding(above, &[(0, text)]), [("waiting".to_owned(), 3.0)]);
    let below = r#"{ "kind": "gauge", "series": "g", "below": 1 }"#;
    assert_eq!(holding(below, &[(0, "g 1")]), []);
    assert_eq!(holding(below, &[(0, "g 0")]), [(String::new(), 0.0)]);
    assert_eq!(holding(below, &[(0, "")]), [], "what is not there says nothing");
}

#[test]
fn an_increase_is_of_its_window_only() {
    let when = r#"{ "kind": "increase", "series": "c", "withinSeconds": 60, "above": 0 }"#;
    assert_eq!(holding(when, &[(0, "c 5")]), [], "what was there at the beginning");
    assert_eq!(holding(when, &[(0, "c 5"), (30, "c 7")]), [(String::new(), 2.0)]);
    assert_eq!(holding(when, &[(0, "c 5"), (30, "c 7"), (60, "c 7"), (95, "c 7")]), []);
    assert_eq!(holding(when, &[(0, ""), (30, "c 7")]), [(String::new(), 7.0)], "it began at zero");
}

#[test]
fn a_ratio_is_summed_over_other_labels_and_needs_enough() {
    let when = r#"{ "kind": "ratio", "part": "e", "of": "c", "by": ["tool"], "withinSeconds": 60, "above": 0.2, "least": 10 }"#;
    let begin = (0, "c{tool=\"a\"} 100\nc{tool=\"b\"} 100");
    let now = "c{tool=\"a\"} 110\ne{tool=\"a\",type=\"TIMEOUT\"} 2\ne{tool=\"a\",type=\"INTERNAL\"} 1\n\
               c{tool=\"b\"} 109\ne{tool=\"b\",type=\"TIMEOUT\"} 9";
    assert_eq!(holding(when, &[begin, (30, now)]), [("a".to_owned(), 0.3)], "b has had nine calls");
}

#[test]
fn a_quantile_is_within_its_bucket() {
    let when = r#"{ "kind": "quantile", "histogram": "h", "quantile": 0.95, "withinSeconds": 60, "above": 0.25, "least": 20 }"#;
    let text = |slow: u32| {
        format!(
            "h_bucket{{le=\"0.1\"}} 80\nh_bucket{{le=\"1\"}} {}\nh_bucket{{le=\"+Inf\"}} {}",
            80 + slow,
            80 + slow
        )
    };
    let values = holding(when, &[(0, ""), (30, &text(20))]);
    let [(_, value)] = &values[..] else { panic!("{values:?}") };
    // 15 of the 20 between 0.1 and 1.
    assert!((value - 0.775).abs() < 1e-9, "{value}");
    assert_eq!(holding(when, &[(0, ""), (30, &text(4))]), [], "80 of 84 are fast: the p95 is at 0.1");
    assert_eq!(holding(when, &[(0, "h_bucket{le=\"0.1\"} 0"), (30, "h_bucket{le=\"+Inf\"} 5")]), []);
}

#[test]
fn only_what_rules_look_at_is_kept_and_no_longer_than_they_do() {
    let rule = rule(r#"{ "kind": "increase", "series": "c", "withinSeconds": 60, "above": 0 }"#);
    let mut history = History::new(std::slice::from_ref(&rule));
    for second in 0..100_000 {
        history.add(second * 15_000, "c 1\nother 2\n");
    }
    assert!(history.samples.len() <= 6, "{}", history.samples.len());
    assert_eq!(history.samples[0].1.of("other").count(), 0);
}
