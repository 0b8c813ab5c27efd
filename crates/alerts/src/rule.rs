//! What an alert rule says.

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};

/// The rules that every server has.
const OWN_RULES: &str = include_str!("../rules.json");
/// More are a mistake.
const MAX_RULES: usize = 200;
/// For how long samples are kept.
pub(crate) const MAX_WINDOW_SECONDS: u64 = 3_600;

/// One rule: when it holds for each set of labels, there is an alarm.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Rule {
    /// Names it: lower-case letters, digits and underscores.
    pub id: String,
    pub severity: Severity,
    /// What is wrong, in one sentence without a full stop.
    pub summary: String,
    /// What to do about it.
    pub remedy: String,
    pub when: Condition,
    /// For how long it must hold.
    #[serde(default)]
    pub for_seconds: u64,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Severity {
    /// To be looked at in the morning.
    Warning,
    /// Users notice, or something is lost.
    Critical,
}

impl Severity {
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Warning => "warning",
            Self::Critical => "critical",
        }
    }
}

/// What a rule compares.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "camelCase", rename_all_fields = "camelCase", deny_unknown_fields)]
pub enum Condition {
    /// A value as it is.
    Gauge {
        series: String,
        /// Labels that it must have.
        #[serde(default, rename = "where", skip_serializing_if = "BTreeMap::is_empty")]
        labels: BTreeMap<String, String>,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        above: Option<f64>,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        below: Option<f64>,
    },
    /// What was added to a counter within a time.
    Increase { series: String, within_seconds: u64, above: f64 },
    /// The same of one counter as a part of another.
    Ratio {
        part: String,
        of: String,
        /// The labels that are kept apart; over others it is summed.
        by: Vec<String>,
        within_seconds: u64,
        above: f64,
        /// With fewer, nothing is concluded.
        least: f64,
    },
    /// A quantile of a histogram's samples within a time.
    Quantile { histogram: String, quantile: f64, within_seconds: u64, above: f64, least: f64 },
}

impl Condition {
    /// How far back it looks.
    pub(crate) fn window_seconds(&self) -> u64 {
        match self {
            Self::Gauge { .. } => 0,
            Self::Increase { within_seconds, .. }
            | Self::Ratio { within_seconds, .. }
            | Self::Quantile { within_seconds, .. } => *within_seconds,
        }
    }

    /// The series that it reads, as they are named in the text format.
    pub(crate) fn series(&self) -> Vec<String> {
        match self {
            Self::Gauge { series, .. } | Self::Increase { series, .. } => vec![series.clone()],
            Self::Ratio { part, of, .. } => vec![part.clone(), of.clone()],
            Self::Quantile { histogram, .. } => vec![format!("{histogram}_bucket")],
        }
    }
}

/// All rules of a server.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Rules {
    pub rules: Vec<Rule>,
    /// Rules of ours that are not wanted.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub without: Vec<String>,
}

/// Why a file of rules is not one.
#[derive(Debug, thiserror::Error)]
pub enum RuleError {
    #[error("{0}")]
    Json(#[from] serde_json::Error),
    #[error("there are more than {MAX_RULES} rules")]
    TooMany,
    #[error("rule {0:?}: {1}")]
    Invalid(String, &'static str),
    #[error("`without` names {0:?}, which is no rule of ours; `quarterdeck alerts rules` lists them")]
    Unknown(String),
}

impl Default for Rules {
    fn default() -> Self {
        serde_json::from_str(OWN_RULES).expect("a test reads it")
    }
}

impl Rules {
    /// Our rules with an operator's: one with the id of ours takes its place.
    pub fn extended(text: &str) -> Result<Self, RuleError> {
        let theirs: Self = serde_json::from_str(text)?;
        theirs.check()?;
        let mut rules = Self::default().rules;
        for id in &theirs.without {
            let place = rules.iter().position(|rule| rule.id == *id);
            rules.remove(place.ok_or_else(|| RuleError::Unknown(id.clone()))?);
        }
        for rule in theirs.rules {
            match rules.iter_mut().find(|own| own.id == rule.id) {
                Some(own) => *own = rule,
                None => rules.push(rule),
            }
        }
        if rules.len() > MAX_RULES {
            return Err(RuleError::TooMany);
        }
        Ok(Self { rules, without: Vec::new() })
    }

    fn check(&self) -> Result<(), RuleError> {
        let mut seen = BTreeSet::new();
        for rule in &self.rules {
            let problem = rule.problem().or((!seen.insert(&rule.id)).then_some("the id is used twice"));
            if let Some(problem) = problem {
                return Err(RuleError::Invalid(rule.id.chars().take(80).collect(), problem));
            }
        }
        Ok(())
    }
}

impl Rule {
    fn problem(&self) -> Option<&'static str> {
        let is_name = |text: &str| {
            let is_named = |char: char| char.is_ascii_lowercase() || char.is_ascii_digit() || char == '_';
            (1..=80).contains(&text.len()) && text.chars().all(is_named)
        };
        if !is_name(&self.id) {
            return Some("`id` is 1 to 80 lower-case letters, digits and underscores");
        }
        if !self.when.series().iter().all(|series| is_name(series)) {
            return Some("a series is named as in /metrics, such as quarterdeck_tool_calls_total");
        }
        match &self.when {
            Condition::Gauge { above, below, .. } if above.is_some() == below.is_some() => {
                Some("a gauge is compared with either `above` or `below`")
            }
            Condition::Quantile { quantile, .. } if !(0.0..=1.0).contains(quantile) => {
                Some("`quantile` is between 0 and 1")
            }
            Condition::Gauge { .. } => None,
            other if !(30..=MAX_WINDOW_SECONDS).contains(&other.window_seconds()) => {
                Some("`withinSeconds` is 30 to 3600")
            }
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn our_own_rules_are_rules() {
        let own = Rules::default();
        own.check().unwrap();
        assert!(own.rules.len() >= 10);
        for rule in &own.rules {
            assert!(!rule.summary.ends_with('.') && rule.remedy.ends_with('.'), "{}", rule.id);
        }
    }

    fn invalid(text: &str) -> String {
        Rules::extended(text).unwrap_err().to_string()
    }

    #[test]
    fn an_operator_replaces_adds_and_leaves_out() {
        let rules = Rules::extended(
            r#"{ "without": ["store_slow"], "rules": [
                { "id": "audit_gap", "severity": "warning", "summary": "s", "remedy": "r.",
                  "when": { "kind": "increase", "series": "quarterdeck_audit_lost_lines_total", "withinSeconds": 60, "above": 5 } },
                { "id": "many_calls", "severity": "warning", "summary": "s", "remedy": "r.",
                  "when": { "kind": "gauge", "series": "quarterdeck_sessions_active", "where": { "mode": "voice" }, "above": 90 } }
            ] }"#,
        )
        .unwrap()
        .rules;
        let find = |id: &str| rules.iter().find(|rule| rule.id == id);
        assert!(find("store_slow").is_none() && find("many_calls").is_some());
        assert_eq!(find("audit_gap").unwrap().when.window_seconds(), 60);
        assert_eq!(rules.len(), Rules::default().rules.len());
    }

    #[test]
    fn mistakes_are_named() {
        let rule = |id: &str, when: &str| {
            format!(
                r#"{{ "rules": [{{ "id": "{id}", "severity": "warning", "summary": "s", "remedy": "r.", "when": {when} }}] }}"#
            )
        };
        let gauge = r#"{ "kind": "gauge", "series": "a", "above": 1 }"#;
        assert_eq!(
            invalid(&rule("A b", gauge)),
            "rule \"A b\": `id` is 1 to 80 lower-case letters, digits and underscores"
        );
        let both = r#"{ "kind": "gauge", "series": "a", "above": 1, "below": 2 }"#;
        assert!(invalid(&rule("a", both)).contains("either `above` or `below`"));
        let short = r#"{ "kind": "increase", "series": "a", "withinSeconds": 1, "above": 1 }"#;
        assert!(invalid(&rule("a", short)).contains("30 to 3600"));
        let odd = r#"{ "kind": "increase", "series": "a{}", "withinSeconds": 60, "above": 1 }"#;
        assert!(invalid(&rule("a", odd)).contains("named as in /metrics"));
        assert!(invalid(r#"{ "rules": [], "without": ["nothing"] }"#).contains("\"nothing\""));
        assert!(invalid(r#"{ "rules": [], "more": 1 }"#).contains("unknown field `more`"));
    }
}
