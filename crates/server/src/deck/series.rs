//! The figures over time: samples in two rings, one for the last hour and one for the last two days.
//!
//! What is counted since the start becomes what was counted between two samples, and times are those of the answers
//! between them, so that a chart shows how it goes and not how long the server has run.

use std::collections::{BTreeMap, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use quarterdeck_runtime::{Counters, MetricsSnapshot, Percentiles, ToolCounters};
use serde::Deserialize;
use serde_json::{Value, json};

/// How often the figures are looked at.
pub(crate) const EVERY: Duration = Duration::from_secs(10);
/// How many samples the last hour has.
const HOUR: usize = 360;
/// How many samples make one of the longer ring: five minutes.
const COARSE: u64 = 30;
/// How many samples two days have.
const DAYS: usize = 576;
/// Of how many tools figures are kept. The busiest count.
const TOOLS: usize = 200;

/// Which stretch of time.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Range {
    /// The last hour, every ten seconds.
    Hour,
    /// The last two days, every five minutes.
    Days,
}

/// Samples of the figures.
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
    tools: Vec<(Arc<str>, Point)>,
}

/// What a tool had done by then.
#[derive(Clone, Copy, Default)]
struct Point {
    calls: u64,
    errors: u64,
    refused: u64,
    /// What the answers since the sample before took, if there were any.
    spread: Option<Percentiles>,
}

/// What a tool has done lately.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Lately {
    pub(crate) calls: u64,
    pub(crate) errors: u64,
}

impl Series {
    /// Keeps the figures of a moment.
    pub(crate) fn take(&self, at_ms: u64, moment: &MetricsSnapshot) {
        self.keep(at_ms, &moment.counters, |tool, answers| moment.last(tool, answers));
    }

    /// Keeps figures, with what the last answers of a tool took.
    fn keep(&self, at_ms: u64, figures: &Counters, last: impl Fn(&str, u64) -> Option<Percentiles>) {
        let mut tools: Vec<&(Arc<str>, ToolCounters)> = figures.tools.iter().collect();
        if tools.len() > TOOLS {
            tools.sort_by_key(|(_, figures)| std::cmp::Reverse(figures.calls));
            tools.truncate(TOOLS);
            tools.sort_by(|one, other| one.0.cmp(&other.0));
        }
        let sample = |before: Option<&Sample>| {
            let points = tools.iter().map(|(tool, figures)| {
                let ToolCounters { calls, errors, refused, .. } = *figures;
                // Nobody knows what came before the first sample of all.
                let new = before.map_or(0, |before| calls.saturating_sub(before.of(tool).calls));
                (tool.clone(), Point { calls, errors, refused, spread: last(tool, new) })
            });
            Sample { at_ms, text: figures.text, voice: figures.voice, tools: points.collect() }
        };
        let mut rings = self.lock();
        if rings.taken.is_multiple_of(COARSE) {
            let coarse = sample(rings.days.back());
            push(&mut rings.days, coarse, DAYS);
        }
        let fine = sample(rings.hour.back());
        push(&mut rings.hour, fine, HOUR);
        rings.taken += 1;
    }

    /// What every tool has done within the last hour, or since the start.
    pub(crate) fn lately(&self, now: &Counters) -> BTreeMap<Arc<str>, Lately> {
        let rings = self.lock();
        // Before a server was started nothing had been called; a full ring begins in the middle.
        let first = rings.hour.front().filter(|_| rings.hour.len() == HOUR);
        let each = now.tools.iter().map(|(tool, figures)| {
            let before = first.map(|first| first.of(tool)).unwrap_or_default();
            let calls = figures.calls.saturating_sub(before.calls);
            (tool.clone(), Lately { calls, errors: figures.errors.saturating_sub(before.errors) })
        });
        each.collect()
    }

    /// The samples of a range after a moment, in columns.
    pub(crate) fn columns(&self, range: Range, after_ms: u64) -> Value {
        let rings = self.lock();
        let (ring, every) = match range {
            Range::Hour => (&rings.hour, EVERY),
            Range::Days => (&rings.days, EVERY * COARSE as u32),
        };
        let skipped = ring.iter().take_while(|sample| sample.at_ms <= after_ms).count();
        // What lies before the first is needed to tell what has been added to it.
        let wanted: Vec<(&Sample, Option<&Sample>)> = (skipped..ring.len())
            .map(|place| (&ring[place], place.checked_sub(1).map(|before| &ring[before])))
            .collect();
        let mut names: Vec<&Arc<str>> =
            wanted.iter().flat_map(|(sample, _)| sample.tools.iter().map(|(tool, _)| tool)).collect();
        names.sort_unstable();
        names.dedup();
        let tools: BTreeMap<&str, Value> =
            names.into_iter().map(|tool| (&**tool, of_tool(tool, &wanted))).collect();
        let column =
            |of: fn(&Sample) -> u64| -> Vec<u64> { wanted.iter().map(|(sample, _)| of(sample)).collect() };
        json!({
            "everyMs": every.as_millis() as u64,
            "at": column(|sample| sample.at_ms),
            "text": column(|sample| sample.text),
            "voice": column(|sample| sample.voice),
            "tools": tools,
        })
    }

    fn lock(&self) -> MutexGuard<'_, Rings> {
        self.rings.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Sample {
    fn of(&self, tool: &str) -> Point {
        let place = self.tools.binary_search_by(|(known, _)| (**known).cmp(tool));
        place.map_or_else(|_| Point::default(), |place| self.tools[place].1)
    }
}

fn of_tool(tool: &str, wanted: &[(&Sample, Option<&Sample>)]) -> Value {
    let pairs: Vec<(Point, Option<Point>)> = wanted
        .iter()
        .map(|(sample, before)| (sample.of(tool), before.map(|before| before.of(tool))))
        .collect();
    // Nobody knows what came before the first sample of all.
    let added = |of: fn(&Point) -> u64| -> Vec<u64> {
        pairs
            .iter()
            .map(|(now, before)| before.map_or(0, |before| of(now).saturating_sub(of(&before))))
            .collect()
    };
    let took = |of: fn(Percentiles) -> f64| -> Vec<Option<f64>> {
        pairs.iter().map(|(now, _)| now.spread.map(of)).collect()
    };
    json!({
        "calls": added(|point| point.calls),
        "errors": added(|point| point.errors),
        "refused": added(|point| point.refused),
        "p50": took(|spread| spread.p50),
        "p95": took(|spread| spread.p95),
        "tokens": took(|spread| spread.tokens_average as f64),
        "tokensP95": took(|spread| spread.tokens_p95 as f64),
    })
}

fn push(ring: &mut VecDeque<Sample>, sample: Sample, most: usize) {
    if ring.len() == most {
        ring.pop_front();
    }
    ring.push_back(sample);
}

#[cfg(test)]
mod tests {
    use super::*;

    fn figures(calls: u64, errors: u64) -> Counters {
        let tool = ToolCounters { calls, errors, ..ToolCounters::default() };
        Counters { text: 1, tools: vec![("probe".into(), tool)], ..Counters::default() }
    }

    impl Series {
        /// Keeps figures of answers of which each takes a millisecond longer.
        fn keep_some(&self, at_ms: u64, figures: &Counters) {
            let last = |_: &str, answers: u64| {
                let took = figures.tools[0].1.calls as f64;
                (answers > 0).then(|| Percentiles {
                    p50: took - answers as f64 + 1.0,
                    p95: took,
                    ..Percentiles::default()
                })
            };
            self.keep(at_ms, figures, last);
        }
    }

    #[test]
    fn columns_hold_what_was_added_between_two_samples() {
        let series = Series::default();
        series.keep_some(10, &Counters::default());
        series.keep_some(20, &figures(3, 1));
        series.keep_some(30, &figures(5, 1));
        let columns = series.columns(Range::Hour, 0);
        assert_eq!(columns["at"], json!([10, 20, 30]));
        assert_eq!(columns["text"], json!([0, 1, 1]));
        assert_eq!(columns["tools"]["probe"]["calls"], json!([0, 3, 2]));
        assert_eq!(columns["tools"]["probe"]["errors"], json!([0, 1, 0]));
        assert_eq!(columns["tools"]["probe"]["p50"], json!([null, 1.0, 4.0]));
        assert_eq!(columns["tools"]["probe"]["p95"], json!([null, 3.0, 5.0]));
        let newer = series.columns(Range::Hour, 20);
        assert_eq!((&newer["at"], &newer["tools"]["probe"]["calls"]), (&json!([30]), &json!([2])));
        assert_eq!(series.columns(Range::Days, 0)["at"], json!([10]));
        assert_eq!(series.lately(&figures(6, 2))["probe"], Lately { calls: 6, errors: 2 });
    }

    #[test]
    fn where_nothing_was_called_there_is_a_gap() {
        let series = Series::default();
        for (at, calls) in [(10, 0), (20, 2), (30, 2), (40, 3)] {
            series.keep_some(at, &figures(calls, 0));
        }
        let columns = series.columns(Range::Hour, 0);
        assert_eq!(columns["tools"]["probe"]["p95"], json!([null, 2.0, null, 3.0]));
    }

    #[test]
    fn rings_are_bounded_and_an_hour_is_forgotten_after_an_hour() {
        let series = Series::default();
        for sample in 0..20_000 {
            series.keep_some(sample * 10, &figures(sample, 0));
        }
        let (hour, days) = (series.columns(Range::Hour, 0), series.columns(Range::Days, 0));
        assert_eq!(hour["at"].as_array().unwrap().len(), HOUR);
        assert_eq!(days["at"].as_array().unwrap().len(), DAYS);
        assert_eq!(days["tools"]["probe"]["calls"][1], COARSE);
        let last = &days["tools"]["probe"];
        let spread = last["p95"][DAYS - 1].as_f64().unwrap() - last["p50"][DAYS - 1].as_f64().unwrap();
        assert_eq!(
            spread,
            (COARSE - 1) as f64,
            "five minutes are five minutes, and not the last ten seconds"
        );
        assert_eq!(series.lately(&figures(20_000, 0))["probe"].calls, HOUR as u64);
    }

    #[test]
    fn of_very_many_tools_the_busiest_are_kept() {
        let series = Series::default();
        let tool = |number: u64| {
            let figures = ToolCounters { calls: number, ..ToolCounters::default() };
            (format!("t{number:04}").into(), figures)
        };
        let tools = (0..1_000).map(tool).collect();
        series.keep(1, &Counters { tools, ..Counters::default() }, |_, _| None);
        let columns = series.columns(Range::Hour, 0);
        let kept = columns["tools"].as_object().unwrap();
        assert_eq!(kept.len(), TOOLS);
        assert!(kept.contains_key("t0999") && !kept.contains_key("t0000"));
    }
}
