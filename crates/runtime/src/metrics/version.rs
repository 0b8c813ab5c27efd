//! What the sessions of one version of the registry have come to, so that variants can be compared.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde::Serialize;
use serde_json::{Value, json};

use super::tool::{ms, tokens};
use super::window::SampleWindow;
use super::{Metrics, Sample};

/// How many versions are counted. More are activated only over a long time; the one that was counted last the longest ago
/// makes room.
const MAX_VERSIONS: usize = 32;

/// The counters of all versions, by their labels.
#[derive(Debug, Default)]
pub(super) struct VersionMetrics {
    versions: BTreeMap<Arc<str>, VersionCounts>,
    /// Numbers what is counted, to find the version that was last counted the longest ago.
    ticks: u64,
}

#[derive(Debug, Default)]
struct VersionCounts {
    sessions: u64,
    calls: u64,
    errors: u64,
    refused: u64,
    confirmations: BTreeMap<&'static str, u64>,
    feedback: BTreeMap<&'static str, u64>,
    response_tokens: u64,
    size: SampleWindow,
    duration_ms: SampleWindow,
    last_tick: u64,
}

/// One version's counters. Counts are since the start; durations, in milliseconds, and tokens per answer are of the last
/// thousand answers.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct VersionCounters {
    /// Sessions that were opened or resumed.
    pub sessions: u64,
    /// How often a handler has answered.
    pub calls: u64,
    /// How many of those were failures.
    pub errors: u64,
    /// How often a gate has refused a call.
    pub refused: u64,
    /// Requests for approval, and what came of them: `requested`, `approved`, `denied`, `expired`, `used`, `invalid`.
    pub confirmations: BTreeMap<&'static str, u64>,
    /// Ratings of answers that stand: `up` and `down`.
    pub feedback: BTreeMap<&'static str, u64>,
    pub average: f64,
    pub p50: f64,
    pub p95: f64,
    pub p99: f64,
    /// The tokens of all answers.
    pub tokens: u64,
    pub tokens_average: u64,
    pub tokens_p95: u64,
}

impl VersionMetrics {
    fn count(&mut self, version: &str, count: impl FnOnce(&mut VersionCounts)) {
        self.ticks += 1;
        if !self.versions.contains_key(version) {
            self.make_room();
            self.versions.insert(version.into(), VersionCounts::default());
        }
        if let Some(counts) = self.versions.get_mut(version) {
            counts.last_tick = self.ticks;
            count(counts);
        }
    }

    fn make_room(&mut self) {
        if self.versions.len() < MAX_VERSIONS {
            return;
        }
        let oldest = self.versions.iter().min_by_key(|(_, counts)| counts.last_tick);
        if let Some(oldest) = oldest.map(|(version, _)| version.clone()) {
            self.versions.remove(&oldest);
        }
    }

    pub(super) fn json(&self) -> Value {
        let each =
            self.versions.iter().map(|(version, counts)| (version.to_string(), json!(counts.counters())));
        Value::Object(each.collect())
    }

    pub(super) fn all(&self) -> impl Iterator<Item = (&Arc<str>, VersionCounters)> {
        self.versions.iter().map(|(version, counts)| (version, counts.counters()))
    }
}

impl VersionCounts {
    fn counters(&self) -> VersionCounters {
        let (duration, size) = (self.duration_ms.summary(), self.size.summary());
        VersionCounters {
            sessions: self.sessions,
            calls: self.calls,
            errors: self.errors,
            refused: self.refused,
            confirmations: self.confirmations.clone(),
            feedback: self.feedback.clone(),
            average: ms(duration.average),
            p50: ms(duration.p50),
            p95: ms(duration.p95),
            p99: ms(duration.p99),
            tokens: self.response_tokens,
            tokens_average: tokens(size.average),
            tokens_p95: tokens(size.p95),
        }
    }
}

impl Metrics {
    pub(crate) fn version_pinned(&self, version: &str) {
        self.lock().versions.count(version, |counts| counts.sessions += 1);
    }

    pub(crate) fn record_version_execution(&self, version: &str, sample: Sample) {
        self.lock().versions.count(version, |counts| {
            counts.calls += 1;
            // What is wrong with the request is no fault of the version.
            counts.errors += u64::from(sample.error.is_some_and(|kind| !kind.is_about_request()));
            counts.response_tokens += tokens(sample.size as f64);
            counts.size.add(sample.size as f64);
            counts.duration_ms.add(sample.duration.as_secs_f64() * 1_000.0);
        });
    }

    pub(crate) fn record_version_refusal(&self, version: &str) {
        self.lock().versions.count(version, |counts| counts.refused += 1);
    }

    pub(crate) fn record_version_confirmation(&self, version: &str, step: &'static str) {
        self.lock().versions.count(version, |counts| *counts.confirmations.entry(step).or_default() += 1);
    }

    /// Counts a rating that was given, changed or taken back. One from before the start was not counted here.
    pub(crate) fn record_version_feedback(
        &self,
        version: &str,
        previous: Option<&'static str>,
        rating: Option<&'static str>,
    ) {
        if previous == rating {
            return;
        }
        self.lock().versions.count(version, |counts| {
            if let Some(counted) = previous.and_then(|previous| counts.feedback.get_mut(previous)) {
                *counted = counted.saturating_sub(1);
            }
            if let Some(rating) = rating {
                *counts.feedback.entry(rating).or_default() += 1;
            }
        });
    }

    /// What the sessions of each version have come to, by the versions' labels.
    pub fn versions(&self) -> BTreeMap<String, VersionCounters> {
        self.lock().versions.all().map(|(version, counters)| (version.to_string(), counters)).collect()
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use quarterdeck_contracts::ErrorType;

    use super::*;

    #[test]
    fn versions_are_counted_apart() {
        let metrics = Metrics::default();
        let sample =
            Sample { size: 400, duration: Duration::from_millis(20), error: None, slow: false, ended_ms: 0 };
        metrics.version_pinned("1.0.a");
        for _ in 0..3 {
            metrics.record_version_execution("1.0.a", sample);
        }
        metrics.record_version_execution("1.0.b", Sample { error: Some(ErrorType::Internal), ..sample });
        metrics.record_version_execution("1.0.a", Sample { error: Some(ErrorType::NotFound), ..sample });
        metrics.record_version_refusal("1.0.b");
        metrics.record_version_confirmation("1.0.b", "requested");
        metrics.record_version_confirmation("1.0.b", "approved");
        let versions = metrics.versions();
        let (a, b) = (&versions["1.0.a"], &versions["1.0.b"]);
        assert_eq!((a.sessions, a.calls, a.errors, a.tokens, a.p95), (1, 4, 0, 400, 20.0));
        assert_eq!((b.sessions, b.calls, b.errors, b.refused, b.tokens_average), (0, 1, 1, 1, 100));
        assert_eq!(b.confirmations, BTreeMap::from([("approved", 1), ("requested", 1)]));
        assert_eq!(metrics.json()["versions"]["1.0.a"]["calls"], 4);
        let text = metrics.prometheus();
        assert!(text.contains("quarterdeck_version_calls_total{version=\"1.0.a\"} 4"), "{text}");
        assert!(text.contains("quarterdeck_version_errors_total{version=\"1.0.b\"} 1"), "{text}");
    }

    #[test]
    fn a_rating_counts_once_however_often_it_is_changed() {
        let metrics = Metrics::default();
        metrics.record_version_feedback("1.0.a", None, Some("up"));
        metrics.record_version_feedback("1.0.a", Some("up"), Some("up"));
        metrics.record_version_feedback("1.0.a", Some("up"), Some("down"));
        metrics.record_version_feedback("1.0.a", None, Some("down"));
        metrics.record_version_feedback("1.0.a", Some("down"), None);
        metrics.record_version_feedback("1.0.b", Some("up"), None);
        let versions = metrics.versions();
        assert_eq!(versions["1.0.a"].feedback, BTreeMap::from([("down", 1), ("up", 0)]));
        assert!(versions["1.0.b"].feedback.is_empty());
        let text = metrics.prometheus();
        assert!(text.contains("quarterdeck_version_feedback{version=\"1.0.a\",rating=\"down\"} 1"), "{text}");
    }

    #[test]
    fn the_number_of_counted_versions_is_bounded() {
        let metrics = Metrics::default();
        for number in 0..100 {
            metrics.version_pinned(&format!("1.0.{number}"));
            metrics.version_pinned("1.0.kept");
        }
        let versions = metrics.versions();
        assert_eq!((versions.len(), versions["1.0.kept"].sessions), (MAX_VERSIONS, 100));
        assert!(versions.contains_key("1.0.99") && !versions.contains_key("1.0.0"));
    }
}
