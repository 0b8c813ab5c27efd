//! The counters for programs.

use std::sync::Arc;

use serde::Serialize;

use super::Metrics;
use super::tool::{ToolMetrics, ms, tokens};
use super::window::SampleWindow;
use crate::latency::Schedule;

#[derive(Debug, Clone, Default, PartialEq)]
pub struct Counters {
    /// Open text sessions.
    pub text: u64,
    /// Open voice sessions.
    pub voice: u64,
    /// Sessions since the start.
    pub total: u64,
    /// Turns since the start.
    pub turns: u64,
    pub audit_lost: u64,
    /// The tools that were called, by their ids.
    pub tools: Vec<(Arc<str>, ToolCounters)>,
}

/// One tool's counters. Counts are since the start; durations, in milliseconds, and tokens are of the last
/// thousand answers.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ToolCounters {
    /// How often its handler has answered.
    pub calls: u64,
    /// How many of those were failures. An answer about the request, such as NOT_FOUND, is none.
    pub errors: u64,
    /// How often a gate has refused it.
    pub refused: u64,
    /// How often a recorded answer was given again.
    pub cache_hits: u64,
    /// How often it took longer than its soft limit.
    pub over_budget: u64,
    /// How often a voice call was waited for in silence.
    pub scheduled_inline: u64,
    /// How often something was to be said meanwhile.
    pub scheduled_filler: u64,
    /// How often a voice call was answered at once and went on in the background.
    pub scheduled_background: u64,
    /// How often a voice call was refused because it takes too long.
    pub scheduled_refuse: u64,
    pub average: f64,
    pub p50: f64,
    pub p95: f64,
    pub p99: f64,
    pub tokens_average: u64,
    pub tokens_p95: u64,
}

/// Durations, in milliseconds, and tokens of some answers of a tool.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Percentiles {
    pub p50: f64,
    pub p95: f64,
    pub tokens_average: u64,
    pub tokens_p95: u64,
}

/// The counters at one moment, with the samples behind them.
#[derive(Debug)]
pub struct MetricsSnapshot {
    pub counters: Counters,
    answers: Vec<ToolSamples>,
}

impl MetricsSnapshot {
    /// Percentiles of the last answers of a tool; of more than a thousand, the last thousand count. Nothing for none.
    pub fn percentiles(&self, tool: &str, answers: u64) -> Option<Percentiles> {
        let place = self.counters.tools.binary_search_by(|(known, _)| (**known).cmp(tool)).ok()?;
        (answers > 0).then(|| self.answers[place].percentiles_of_last(answers))
    }
}

impl Metrics {
    pub fn counters(&self) -> Counters {
        self.snapshot().counters
    }

    /// What has been counted so far, with samples, so that a caller can compute what came since the last time.
    pub fn snapshot(&self) -> MetricsSnapshot {
        let counts = self.lock();
        // Sorting thousands of samples takes its time, and every call that ends wants the lock.
        let (names, answers): (Vec<_>, Vec<_>) =
            counts.tools.iter().map(|(tool, metrics)| (tool.clone(), metrics.copy())).unzip();
        let (text, voice, total) = (counts.text, counts.voice, counts.total);
        let (turns, audit_lost) = (counts.turns, self.lost_audit_lines());
        drop(counts);
        let tools = names.into_iter().zip(answers.iter().map(ToolSamples::counters)).collect();
        MetricsSnapshot { counters: Counters { text, voice, total, turns, audit_lost, tools }, answers }
    }
}

/// A tool's counts, and samples that are not sorted yet.
#[derive(Debug)]
struct ToolSamples {
    counted: ToolCounters,
    duration_ms: SampleWindow,
    size: SampleWindow,
}

impl ToolMetrics {
    fn copy(&self) -> ToolSamples {
        let scheduled = |schedule| self.schedules.get(&schedule).copied().unwrap_or_default();
        let counted = ToolCounters {
            calls: self.calls,
            errors: self.failures(),
            refused: self.refused.values().sum(),
            cache_hits: self.cache_hits,
            over_budget: self.slow,
            scheduled_inline: scheduled(Schedule::Inline),
            scheduled_filler: scheduled(Schedule::Filler),
            scheduled_background: scheduled(Schedule::Background),
            scheduled_refuse: scheduled(Schedule::Refuse),
            ..ToolCounters::default()
        };
        ToolSamples { counted, duration_ms: self.duration_ms.clone(), size: self.size.clone() }
    }
}

impl ToolSamples {
    fn percentiles_of_last(&self, answers: u64) -> Percentiles {
        let last = usize::try_from(answers).unwrap_or(usize::MAX);
        let (duration, size) = (self.duration_ms.summary_of(last), self.size.summary_of(last));
        Percentiles {
            p50: ms(duration.p50),
            p95: ms(duration.p95),
            tokens_average: tokens(size.average),
            tokens_p95: tokens(size.p95),
        }
    }

    fn counters(&self) -> ToolCounters {
        let (duration, size) = (self.duration_ms.summary(), self.size.summary());
        ToolCounters {
            average: ms(duration.average),
            p50: ms(duration.p50),
            p95: ms(duration.p95),
            p99: ms(duration.p99),
            tokens_average: tokens(size.average),
            tokens_p95: tokens(size.p95),
            ..self.counted
        }
    }
}
