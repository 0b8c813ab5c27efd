//! How long the last calls of a tool took, and when that was: what the latency scheduler goes by.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use super::Metrics;
use super::window::percentile;
use crate::latency::{EstimateSource, LatencyEstimate, Schedule};

/// How many calls are kept. They are sorted for every voice call.
const MAX_SAMPLES: usize = 100;
/// From how many calls on their percentiles mean something.
const MIN_SAMPLES: usize = 5;
/// How long a call says something about the next one.
const MAX_AGE_MS: u64 = 10 * 60 * 1_000;

#[derive(Debug, Default)]
pub(super) struct RecentDurations {
    samples: VecDeque<DurationSample>,
}

#[derive(Debug, Clone, Copy)]
struct DurationSample {
    /// In milliseconds since 1970.
    ended_ms: u64,
    duration_ms: f64,
}

impl RecentDurations {
    pub(super) fn add(&mut self, ended_ms: u64, duration: Duration) {
        if self.samples.len() == MAX_SAMPLES {
            self.samples.pop_front();
        }
        let duration_ms = duration.as_secs_f64() * 1_000.0;
        self.samples.push_back(DurationSample { ended_ms, duration_ms });
    }

    /// How long the next call will probably take: as long as those of the last minutes, or else as long as those before
    /// them. Nothing if there were too few.
    fn estimate(&self, now_ms: u64) -> Option<LatencyEstimate> {
        let is_fresh = |sample: &&DurationSample| now_ms.saturating_sub(sample.ended_ms) <= MAX_AGE_MS;
        let sorted = |samples: &mut dyn Iterator<Item = &DurationSample>| {
            let mut durations: Vec<_> = samples.map(|sample| sample.duration_ms).collect();
            durations.sort_by(f64::total_cmp);
            (durations.len() >= MIN_SAMPLES).then_some(durations)
        };
        let fresh = sorted(&mut self.samples.iter().filter(is_fresh));
        let (durations, source) = match fresh {
            Some(durations) => (durations, EstimateSource::Measured),
            None => (sorted(&mut self.samples.iter())?, EstimateSource::Outdated),
        };
        let at = |percent| percentile(&durations, percent).round() as u64;
        Some(LatencyEstimate { p50_ms: at(50), p95_ms: at(95), source })
    }
}

impl Metrics {
    /// How long the next call of a tool will probably take, by its last ones.
    pub(crate) fn estimate_latency(&self, tool: &str, now_ms: u64) -> Option<LatencyEstimate> {
        self.lock().tools.get(tool)?.recent.estimate(now_ms)
    }

    pub(crate) fn record_schedule(&self, tool: &Arc<str>, schedule: Schedule) {
        self.tool(tool, |metrics| *metrics.schedules.entry(schedule).or_default() += 1);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn recent(samples: impl IntoIterator<Item = (u64, u64)>) -> RecentDurations {
        let mut recent = RecentDurations::default();
        for (ended_ms, duration_ms) in samples {
            recent.add(ended_ms, Duration::from_millis(duration_ms));
        }
        recent
    }

    fn estimate(p50_ms: u64, p95_ms: u64, source: EstimateSource) -> Option<LatencyEstimate> {
        Some(LatencyEstimate { p50_ms, p95_ms, source })
    }

    #[test]
    fn a_few_calls_are_no_estimate() {
        assert_eq!(recent([]).estimate(0), None);
        assert_eq!(recent([(0, 10); MIN_SAMPLES - 1]).estimate(0), None);
        let known = recent([(0, 10); MIN_SAMPLES]);
        assert_eq!(known.estimate(0), estimate(10, 10, EstimateSource::Measured));
    }

    #[test]
    fn calls_of_the_last_minutes_count_alone_and_older_ones_when_there_are_none() {
        let old = [(1_000, 20_000); 50];
        let known = recent(old);
        assert_eq!(known.estimate(1_000 + MAX_AGE_MS), estimate(20_000, 20_000, EstimateSource::Measured));
        let later = 1_001 + MAX_AGE_MS;
        assert_eq!(known.estimate(later), estimate(20_000, 20_000, EstimateSource::Outdated));
        let new = [(later, 100), (later, 200), (later, 300), (later, 400), (later, 500)];
        let known = recent(old.into_iter().chain(new));
        assert_eq!(known.estimate(later), estimate(300, 500, EstimateSource::Measured));
    }

    #[test]
    fn a_clock_that_was_set_back_does_not_make_calls_old() {
        assert_eq!(recent([(9_000, 7); 5]).estimate(0), estimate(7, 7, EstimateSource::Measured));
    }

    #[test]
    fn the_last_hundred_calls_are_kept() {
        let known = recent((0..100).map(|_| (0, 1)).chain((0..100).map(|_| (0, 2))));
        assert_eq!(known.samples.len(), MAX_SAMPLES);
        assert_eq!(known.estimate(0), estimate(2, 2, EstimateSource::Measured));
    }
}
