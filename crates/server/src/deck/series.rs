//! Metrics over time: samples in two ring buffers, for the last hour and the last two days.
//!
//! Counters since the start become differences between samples, and percentiles are those of the answers between them,
//! so that a chart shows the current load.

use std::collections::{BTreeMap, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use quarterdeck_runtime::{Counters, MetricsSnapshot, Percentiles, ToolCounters};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

pub(crate) const SAMPLE_INTERVAL: Duration = Duration::from_secs(10);
const HOUR_SAMPLES: usize = 360;
/// Samples per sample of the longer ring: five minutes.
const COARSE_FACTOR: u64 = 30;
/// Two days of coarse samples.
const DAYS_SAMPLES: usize = 576;
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
    hour: VecDeque<Sample>,
    days: VecDeque<Sample>,
}

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
        let sample = |previous: Option<&Sample>| {
            let points = tools.iter().map(|(tool, counters)| {
                let ToolCounters { calls, errors, refused, .. } = *counters;
                // Nothing is known before the very first sample.
                let new = previous.map_or(0, |previous| calls.saturating_sub(previous.of(tool).calls));
                (tool.clone(), ToolSample { calls, errors, refused, percentiles: last(tool, new) })
            });
            Sample { at_ms, text: counters.text, voice: counters.voice, tools: points.collect() }
        };
        let mut rings = self.lock();
        if rings.taken.is_multiple_of(COARSE_FACTOR) {
            let coarse = sample(rings.days.back());
            push(&mut rings.days, coarse, DAYS_SAMPLES);
        }
        let fine = sample(rings.hour.back());
        push(&mut rings.hour, fine, HOUR_SAMPLES);
        rings.taken += 1;
    }

    /// Calls within the last hour, or since the start.
    pub(crate) fn recent_calls(&self, now: &Counters) -> BTreeMap<Arc<str>, RecentCalls> {
        let rings = self.lock();
        // Only a full ring starts after the server did.
        let first = rings.hour.front().filter(|_| rings.hour.len() == HOUR_SAMPLES);
        let each = now.tools.iter().map(|(tool, counters)| {
            let before = first.map(|first| first.of(tool)).unwrap_or_default();
            let calls = counters.calls.saturating_sub(before.calls);
            (tool.clone(), RecentCalls { calls, errors: counters.errors.saturating_sub(before.errors) })
        });
        each.collect()
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

fn push(ring: &mut VecDeque<Sample>, sample: Sample, max: usize) {
    if ring.len() == max {
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
