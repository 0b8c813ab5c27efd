//! One tool's counters.

use std::collections::BTreeMap;

use metrics::Histogram;
use quarterdeck_contracts::{ErrorType, estimate_tokens};
use serde_json::{Value, json};

use super::Sample;
use super::prometheus::Exporter;
use super::recent::RecentDurations;
use super::window::SampleWindow;
use crate::latency::Schedule;

/// A p95 beyond this many characters is warned about.
const LARGE_RESPONSE_CHARS: f64 = 1_500.0;
/// From how many responses on a p95 means something.
const MIN_RESPONSES: u64 = 20;

#[derive(Debug)]
pub(super) struct ToolMetrics {
    pub(super) calls: u64,
    /// Every answer that was an error, whether it counts as a failure or not.
    pub(super) errors: BTreeMap<ErrorType, u64>,
    pub(super) cache_hits: u64,
    pub(super) refused: BTreeMap<String, u64>,
    pub(super) slow: u64,
    /// How its voice calls were waited for.
    pub(super) schedules: BTreeMap<Schedule, u64>,
    pub(super) recent: RecentDurations,
    pub(super) size: SampleWindow,
    pub(super) duration_ms: SampleWindow,
    has_warned: bool,
    durations: Histogram,
    sizes: Histogram,
}

impl ToolMetrics {
    pub(super) fn new(exporter: &Exporter, tool: &str) -> Self {
        Self {
            calls: 0,
            errors: BTreeMap::new(),
            cache_hits: 0,
            refused: BTreeMap::new(),
            slow: 0,
            schedules: BTreeMap::new(),
            recent: RecentDurations::default(),
            size: SampleWindow::default(),
            duration_ms: SampleWindow::default(),
            has_warned: false,
            durations: exporter.durations(tool),
            sizes: exporter.sizes(tool),
        }
    }

    /// Counts an answer; the p95 of the sizes when it is time to warn about it, which is once.
    pub(super) fn record_execution(&mut self, sample: Sample) -> Option<u64> {
        self.calls += 1;
        self.slow += u64::from(sample.slow);
        if let Some(error) = sample.error {
            *self.errors.entry(error).or_default() += 1;
        }
        // A call that was interrupted says nothing of how long it takes.
        if sample.error != Some(ErrorType::Cancelled) {
            self.recent.add(sample.ended_ms, sample.duration);
        }
        self.sizes.record(sample.size as f64);
        self.durations.record(sample.duration.as_secs_f64());
        self.size.add(sample.size as f64);
        self.duration_ms.add(sample.duration.as_secs_f64() * 1_000.0);
        if self.has_warned || sample.size as f64 <= LARGE_RESPONSE_CHARS || self.calls < MIN_RESPONSES {
            return None;
        }
        let p95 = self.size.summary().p95;
        self.has_warned = p95 > LARGE_RESPONSE_CHARS;
        self.has_warned.then_some(p95 as u64)
    }

    /// How many answers were failures of the tool, rather than about what it was asked for.
    pub(super) fn failures(&self) -> u64 {
        self.errors.iter().filter(|(kind, _)| !kind.is_about_request()).map(|(_, count)| count).sum()
    }

    pub(super) fn record_refusal(&mut self, gate: &str) {
        match self.refused.get_mut(gate) {
            Some(count) => *count += 1,
            None => drop(self.refused.insert(gate.to_owned(), 1)),
        }
    }

    pub(super) fn sizes(&self) -> Value {
        let sizes = self.size.summary();
        json!({ "p50": sizes.p50 as u64, "p95": sizes.p95 as u64, "p99": sizes.p99 as u64 })
    }

    pub(super) fn tokens(&self) -> Value {
        let sizes = self.size.summary();
        json!({ "avg": tokens(sizes.average), "p95": tokens(sizes.p95) })
    }

    pub(super) fn latency(&self) -> Value {
        let duration = self.duration_ms.summary();
        json!({ "avg": ms(duration.average), "p50": ms(duration.p50), "p95": ms(duration.p95), "p99": ms(duration.p99) })
    }

    pub(super) fn totals(&self) -> Value {
        let duration = self.duration_ms.summary();
        json!({
            "calls": self.calls,
            "errors": self.failures(),
            "errorTypes": self.errors,
            "avgDuration": ms(duration.average), "p50": ms(duration.p50), "p95": ms(duration.p95), "p99": ms(duration.p99),
            "cacheHits": self.cache_hits,
            "overBudget": self.slow,
            "refused": self.refused,
            "scheduled": self.schedules,
        })
    }
}

pub(super) fn tokens(characters: f64) -> u64 {
    estimate_tokens(characters.ceil() as usize) as u64
}

/// Milliseconds to three places.
pub(super) fn ms(value: f64) -> f64 {
    (value * 1_000.0).round() / 1_000.0
}
