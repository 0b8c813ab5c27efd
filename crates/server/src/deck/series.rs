//! Metrics over time: samples in two ring buffers, for the last hour and the last two days.
//!
//! Counters since the start become differences between samples, and percentiles are those of the answers between them,
//! so that a chart shows the current load. Samples outlive a restart (`history.rs`): counters go on from where they were.

use std::collections::{BTreeMap, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use quarterdeck_runtime::{Counters, MetricsSnapshot, Percentiles, ToolCounters};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::history::{History, SavedSample};

pub(crate) const SAMPLE_INTERVAL: Duration = Duration::from_secs(10);
const HOUR_SAMPLES: usize = 360;
const HOUR_MS: u64 = 3_600_000;
/// Samples per sample of the longer ring: five minutes.
const COARSE_FACTOR: u64 = 30;
/// Two days of coarse samples.
const DAYS_SAMPLES: usize = 576;
const DAYS_MS: u64 = 48 * HOUR_MS;
/// Tools per sample; the busiest are kept.
const MAX_TOOLS: usize = 200;

#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
#[schemars(inline)]
pub(crate) enum Range {
    /// The last hour, every ten seconds.
    Hour,
    /// The last two days, every five minutes.
    Days,
}

/// Samples in columns.
#[derive(Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(rename = "Series")]
pub(crate) struct Columns {
    /// The sample interval.
    every_ms: u64,
    /// Milliseconds since 1970.
    at: Vec<u64>,
    text: Vec<u64>,
    voice: Vec<u64>,
    /// Each tool's columns since the previous sample: calls, errors, refusals, and percentiles, which are null where
    /// there were no answers.
    tools: BTreeMap<String, ToolColumns>,
}

#[derive(Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct ToolColumns {
    calls: Vec<u64>,
    errors: Vec<u64>,
    refused: Vec<u64>,
    p50: Vec<Option<f64>>,
    p95: Vec<Option<f64>>,
    tokens: Vec<Option<f64>>,
    tokens_p95: Vec<Option<f64>>,
}

#[derive(Default)]
pub(crate) struct Series {
    rings: Mutex<Rings>,
}

#[derive(Default)]
struct Rings {
    taken: u64,
    /// What earlier processes had counted, which this one begins at zero again.
    before: Option<Sample>,
    hour: VecDeque<Sample>,
    days: VecDeque<Sample>,
}

#[derive(Clone)]
struct Sample {
    at_ms: u64,
    text: u64,
    voice: u64,
    /// By tool, in order.
    tools: Vec<(Arc<str>, ToolSample)>,
}

/// A tool's counters at a sample.
#[derive(Clone, Copy, Default)]
struct ToolSample {
    calls: u64,
    errors: u64,
    refused: u64,
    /// Of the answers since the previous sample, if there were any.
    percentiles: Option<Percentiles>,
}

/// Calls of a tool within the last hour.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, JsonSchema)]
#[schemars(inline)]
pub(crate) struct RecentCalls {
    pub(crate) calls: u64,
    pub(crate) errors: u64,
}

impl Series {
    pub(crate) fn sample(&self, at_ms: u64, snapshot: &MetricsSnapshot) {
        self.record(at_ms, &snapshot.counters, |tool, answers| snapshot.percentiles(tool, answers));
    }

    /// `last` gives the percentiles of a tool's latest answers.
    fn record(&self, at_ms: u64, counters: &Counters, last: impl Fn(&str, u64) -> Option<Percentiles>) {
        let mut tools: Vec<&(Arc<str>, ToolCounters)> = counters.tools.iter().collect();
        if tools.len() > MAX_TOOLS {
            tools.sort_by_key(|(_, counters)| std::cmp::Reverse(counters.calls));
            tools.truncate(MAX_TOOLS);
            tools.sort_by(|one, other| one.0.cmp(&other.0));
        }
        let mut rings = self.lock();
        let before = rings.before.clone();
        let sample = |previous: Option<&Sample>| {
            let points = tools.iter().map(|(tool, counters)| {
                let ToolSample { calls, errors, refused, .. } = counted(tool, counters, before.as_ref());
                // Nothing is known before the very first sample.
                let new = previous.map_or(0, |previous| calls.saturating_sub(previous.of(tool).calls));
                (tool.clone(), ToolSample { calls, errors, refused, percentiles: last(tool, new) })
            });
            Sample { at_ms, text: counters.text, voice: counters.voice, tools: points.collect() }
        };
        if rings.taken.is_multiple_of(COARSE_FACTOR) {
            let coarse = sample(rings.days.back());
            push(&mut rings.days, coarse, DAYS_SAMPLES, DAYS_MS);
        }
        let fine = sample(rings.hour.back());
        push(&mut rings.hour, fine, HOUR_SAMPLES, HOUR_MS);
        rings.taken += 1;
    }

    /// Calls within the last hour, or since the first sample.
    pub(crate) fn recent_calls(&self, now: &Counters) -> BTreeMap<Arc<str>, RecentCalls> {
        let rings = self.lock();
        let first = rings.hour.front();
        let each = now.tools.iter().map(|(tool, counters)| {
            let before = first.map(|first| first.of(tool)).unwrap_or_default();
            let now = counted(tool, counters, rings.before.as_ref());
            let calls = now.calls.saturating_sub(before.calls);
            (tool.clone(), RecentCalls { calls, errors: now.errors.saturating_sub(before.errors) })
        });
        each.collect()
    }

    /// Goes on with the samples of an earlier process, but for those that are too old, or from a clock that was ahead.
    pub(super) fn restore(&self, history: History, now_ms: u64) {
        let mut rings = self.lock();
        let ring = |saved: Vec<SavedSample>, max: usize, max_age: u64| {
            let recent = saved.into_iter().filter(|sample| {
                sample.at_ms <= now_ms && now_ms - sample.at_ms <= max_age && sample.tools.len() <= MAX_TOOLS
            });
            let mut ring: VecDeque<Sample> = recent.map(Sample::from).collect();
            ring.drain(..ring.len().saturating_sub(max));
            ring
        };
        rings.hour = ring(history.hour, HOUR_SAMPLES, HOUR_MS);
        rings.days = ring(history.days, DAYS_SAMPLES, DAYS_MS);
        let latest =
            [rings.hour.back(), rings.days.back()].into_iter().flatten().max_by_key(|last| last.at_ms);
        rings.before = latest.cloned();
    }

    /// Whether the sample that was just taken is a coarse one, with which samples are saved.
    pub(super) fn is_coarse(&self) -> bool {
        self.lock().taken % COARSE_FACTOR == 1
    }

    pub(super) fn history(&self) -> History {
        let rings = self.lock();
        let saved = |ring: &VecDeque<Sample>| ring.iter().map(SavedSample::from).collect();
        History::new(saved(&rings.hour), saved(&rings.days))
    }

    /// The samples of a range after a time, in columns.
    pub(crate) fn columns(&self, range: Range, after_ms: u64) -> Columns {
        let rings = self.lock();
        let (ring, every) = match range {
            Range::Hour => (&rings.hour, SAMPLE_INTERVAL),
            Range::Days => (&rings.days, SAMPLE_INTERVAL * COARSE_FACTOR as u32),
        };
        let skipped = ring.iter().take_while(|sample| sample.at_ms <= after_ms).count();
        // Differences need the sample before the first.
        let wanted: Vec<(&Sample, Option<&Sample>)> = (skipped..ring.len())
            .map(|place| (&ring[place], place.checked_sub(1).map(|before| &ring[before])))
            .collect();
        let mut names: Vec<&Arc<str>> =
            wanted.iter().flat_map(|(sample, _)| sample.tools.iter().map(|(tool, _)| tool)).collect();
        names.sort_unstable();
        names.dedup();
        let tools = names.into_iter().map(|tool| (tool.to_string(), tool_columns(tool, &wanted))).collect();
        let column = |of: fn(&Sample) -> u64| wanted.iter().map(|(sample, _)| of(sample)).collect();
        Columns {
            every_ms: every.as_millis() as u64,
            at: column(|sample| sample.at_ms),
            text: column(|sample| sample.text),
            voice: column(|sample| sample.voice),
            tools,
        }
    }

    fn lock(&self) -> MutexGuard<'_, Rings> {
        self.rings.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Sample {
    fn of(&self, tool: &str) -> ToolSample {
        let place = self.tools.binary_search_by(|(known, _)| (**known).cmp(tool));
        place.map_or_else(|_| ToolSample::default(), |place| self.tools[place].1)
    }
}

/// A tool's counters, those of earlier processes included.
fn counted(tool: &str, counters: &ToolCounters, before: Option<&Sample>) -> ToolSample {
    let before = before.map(|before| before.of(tool)).unwrap_or_default();
    ToolSample {
        calls: before.calls + counters.calls,
        errors: before.errors + counters.errors,
        refused: before.refused + counters.refused,
        percentiles: None,
    }
}

impl From<SavedSample> for Sample {
    fn from(saved: SavedSample) -> Self {
        let tools = saved.tools.into_iter().map(|(tool, [calls, errors, refused], percentiles)| {
            let percentiles = percentiles.map(|(p50, p95, tokens_average, tokens_p95)| Percentiles {
                p50,
                p95,
                tokens_average,
                tokens_p95,
            });
            (tool, ToolSample { calls, errors, refused, percentiles })
        });
        let mut tools: Vec<_> = tools.collect();
        tools.sort_by(|one, other| one.0.cmp(&other.0));
        Self { at_ms: saved.at_ms, text: saved.text, voice: saved.voice, tools }
    }
}

impl From<&Sample> for SavedSample {
    fn from(sample: &Sample) -> Self {
        let tools = sample.tools.iter().map(|(tool, sample)| {
            let percentiles = sample.percentiles.map(|percentiles| {
                (percentiles.p50, percentiles.p95, percentiles.tokens_average, percentiles.tokens_p95)
            });
            (tool.clone(), [sample.calls, sample.errors, sample.refused], percentiles)
        });
        Self { at_ms: sample.at_ms, text: sample.text, voice: sample.voice, tools: tools.collect() }
    }
}

fn tool_columns(tool: &str, wanted: &[(&Sample, Option<&Sample>)]) -> ToolColumns {
    let pairs: Vec<(ToolSample, Option<ToolSample>)> = wanted
        .iter()
        .map(|(sample, before)| (sample.of(tool), before.map(|before| before.of(tool))))
        .collect();
    // Nothing is known before the very first sample.
    let difference = |of: fn(&ToolSample) -> u64| -> Vec<u64> {
        pairs
            .iter()
            .map(|(now, before)| before.map_or(0, |before| of(now).saturating_sub(of(&before))))
            .collect()
    };
    let percentile = |of: fn(Percentiles) -> f64| -> Vec<Option<f64>> {
        pairs.iter().map(|(now, _)| now.percentiles.map(of)).collect()
    };
    ToolColumns {
        calls: difference(|sample| sample.calls),
        errors: difference(|sample| sample.errors),
        refused: difference(|sample| sample.refused),
        p50: percentile(|percentiles| percentiles.p50),
        p95: percentile(|percentiles| percentiles.p95),
        tokens: percentile(|percentiles| percentiles.tokens_average as f64),
        tokens_p95: percentile(|percentiles| percentiles.tokens_p95 as f64),
    }
}

/// After a pause, the oldest are too old before the ring is full.
fn push(ring: &mut VecDeque<Sample>, sample: Sample, max: usize, max_age: u64) {
    let is_too_old = |first: &Sample| sample.at_ms.saturating_sub(first.at_ms) > max_age;
    while ring.len() >= max || ring.front().is_some_and(is_too_old) {
        ring.pop_front();
    }
    ring.push_back(sample);
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn counters(calls: u64, errors: u64) -> Counters {
        let tool = ToolCounters { calls, errors, ..ToolCounters::default() };
        Counters { text: 1, tools: vec![("probe".into(), tool)], ..Counters::default() }
    }

    impl Series {
        fn json(&self, range: Range, after_ms: u64) -> Value {
            json!(self.columns(range, after_ms))
        }

        /// Records answers that each take a millisecond longer.
        fn record_growing(&self, at_ms: u64, counters: &Counters) {
            let last = |_: &str, answers: u64| {
                let took = counters.tools[0].1.calls as f64;
                (answers > 0).then(|| Percentiles {
                    p50: took - answers as f64 + 1.0,
                    p95: took,
                    ..Percentiles::default()
                })
            };
            self.record(at_ms, counters, last);
        }
    }

    #[test]
    fn columns_hold_the_differences_between_samples() {
        let series = Series::default();
        series.record_growing(10, &Counters::default());
        series.record_growing(20, &counters(3, 1));
        series.record_growing(30, &counters(5, 1));
        let columns = series.json(Range::Hour, 0);
        assert_eq!(columns["at"], json!([10, 20, 30]));
        assert_eq!(columns["text"], json!([0, 1, 1]));
        assert_eq!(columns["tools"]["probe"]["calls"], json!([0, 3, 2]));
        assert_eq!(columns["tools"]["probe"]["errors"], json!([0, 1, 0]));
        assert_eq!(columns["tools"]["probe"]["p50"], json!([null, 1.0, 4.0]));
        assert_eq!(columns["tools"]["probe"]["p95"], json!([null, 3.0, 5.0]));
        let newer = series.json(Range::Hour, 20);
        assert_eq!((&newer["at"], &newer["tools"]["probe"]["calls"]), (&json!([30]), &json!([2])));
        assert_eq!(series.json(Range::Days, 0)["at"], json!([10]));
        assert_eq!(series.recent_calls(&counters(6, 2))["probe"], RecentCalls { calls: 6, errors: 2 });
    }

    #[test]
    fn percentiles_are_null_where_nothing_was_called() {
        let series = Series::default();
        for (at, calls) in [(10, 0), (20, 2), (30, 2), (40, 3)] {
            series.record_growing(at, &counters(calls, 0));
        }
        let columns = series.json(Range::Hour, 0);
        assert_eq!(columns["tools"]["probe"]["p95"], json!([null, 2.0, null, 3.0]));
    }

    #[test]
    fn rings_are_bounded_and_hold_an_hour_and_two_days() {
        let series = Series::default();
        for sample in 0..20_000 {
            series.record_growing(sample * 10, &counters(sample, 0));
        }
        let (hour, days) = (series.json(Range::Hour, 0), series.json(Range::Days, 0));
        assert_eq!(hour["at"].as_array().unwrap().len(), HOUR_SAMPLES);
        assert_eq!(days["at"].as_array().unwrap().len(), DAYS_SAMPLES);
        assert_eq!(days["tools"]["probe"]["calls"][1], COARSE_FACTOR);
        let last = &days["tools"]["probe"];
        let spread =
            last["p95"][DAYS_SAMPLES - 1].as_f64().unwrap() - last["p50"][DAYS_SAMPLES - 1].as_f64().unwrap();
        assert_eq!(
            spread,
            (COARSE_FACTOR - 1) as f64,
            "a coarse sample covers five minutes, not the last ten seconds"
        );
        assert_eq!(series.recent_calls(&counters(20_000, 0))["probe"].calls, HOUR_SAMPLES as u64);
    }

    #[test]
    fn charts_go_on_after_a_restart_although_counters_begin_anew() {
        let (before, after) = (Series::default(), Series::default());
        before.record_growing(10_000, &counters(0, 0));
        before.record_growing(20_000, &counters(5, 1));
        after.restore(before.history(), 60_000);
        assert_eq!(after.json(Range::Hour, 0), before.json(Range::Hour, 0));
        // The new process has counted two calls of its own, and then one more.
        after.record_growing(60_000, &counters(2, 1));
        after.record_growing(70_000, &counters(3, 1));
        let columns = after.json(Range::Hour, 0);
        assert_eq!(columns["at"], json!([10_000, 20_000, 60_000, 70_000]));
        assert_eq!(columns["tools"]["probe"]["calls"], json!([0, 5, 2, 1]));
        assert_eq!(columns["tools"]["probe"]["errors"], json!([0, 1, 1, 0]));
        assert_eq!(after.recent_calls(&counters(4, 1))["probe"], RecentCalls { calls: 9, errors: 2 });
        // A second restart, much later: nothing of the last hour is left, and the days are.
        let later = Series::default();
        later.restore(after.history(), 60_000 + 2 * HOUR_MS);
        assert_eq!(later.json(Range::Hour, 0)["at"], json!([]));
        assert_eq!(later.json(Range::Days, 0)["at"], json!([10_000, 60_000]));
        later.record_growing(60_000 + 2 * HOUR_MS, &counters(1, 0));
        assert_eq!(later.json(Range::Days, 60_000)["tools"]["probe"]["calls"], json!([1]));
    }

    #[test]
    fn samples_from_a_clock_that_was_ahead_are_left_out() {
        let (before, after) = (Series::default(), Series::default());
        before.record_growing(1_000, &counters(1, 0));
        before.record_growing(9_000_000, &counters(2, 0));
        after.restore(before.history(), 2_000);
        assert_eq!(after.json(Range::Hour, 0)["at"], json!([]), "the ring let the first go as too old");
        assert_eq!(after.json(Range::Days, 0)["at"], json!([1_000]));
    }

    #[test]
    fn of_too_many_tools_the_busiest_are_kept() {
        let series = Series::default();
        let tool = |number: u64| {
            let counters = ToolCounters { calls: number, ..ToolCounters::default() };
            (format!("t{number:04}").into(), counters)
        };
        let tools = (0..1_000).map(tool).collect();
        series.record(1, &Counters { tools, ..Counters::default() }, |_, _| None);
        let columns = series.json(Range::Hour, 0);
        let kept = columns["tools"].as_object().unwrap();
        assert_eq!(kept.len(), MAX_TOOLS);
        assert!(kept.contains_key("t0999") && !kept.contains_key("t0000"));
    }
}
