//! Samples over time, and what conditions make of them.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use crate::rule::{Condition, Rule};
use crate::samples::{Labels, Samples};

/// How many samples are kept at the most.
const MAX_SAMPLES: usize = 512;

/// The latest samples, for as long as a rule looks back.
#[derive(Debug)]
pub(crate) struct History {
    wanted: BTreeSet<String>,
    window_ms: u64,
    samples: VecDeque<(u64, Samples)>,
}

impl History {
    pub(crate) fn new(rules: &[Rule]) -> Self {
        Self {
            wanted: rules.iter().flat_map(|rule| rule.when.series()).collect(),
            window_ms: rules.iter().map(|rule| rule.when.window_seconds()).max().unwrap_or(0) * 1_000,
            samples: VecDeque::new(),
        }
    }

    pub(crate) fn add(&mut self, at_ms: u64, text: &str) {
        // One older than the window is kept: what was added since is added within the window.
        while self.samples.get(1).is_some_and(|(next, _)| next + self.window_ms <= at_ms)
            || self.samples.len() >= MAX_SAMPLES
        {
            self.samples.pop_front();
        }
        self.samples.push_back((at_ms, Samples::parse(text, &self.wanted)));
    }

    /// For which labels a condition holds now, and with which value.
    pub(crate) fn holding(&self, condition: &Condition) -> BTreeMap<Labels, f64> {
        match condition {
            Condition::Gauge { series, labels, above, below } => self.gauge(series, labels, *above, *below),
            Condition::Increase { series, within_seconds, above } => {
                let mut increases = self.increases(series, *within_seconds);
                increases.retain(|_, value| *value > *above);
                increases
            }
            Condition::Ratio { part, of, by, within_seconds, above, least } => {
                let parts = sum_by(self.increases(part, *within_seconds), by);
                let wholes = sum_by(self.increases(of, *within_seconds), by);
                let ratios = wholes.into_iter().filter(|(_, whole)| *whole >= *least && *whole > 0.0);
                let ratios = ratios.map(|(labels, whole)| {
                    let part = parts.get(&labels).copied().unwrap_or(0.0);
                    (labels, part / whole)
                });
                ratios.filter(|(_, ratio)| *ratio > *above).collect()
            }
            Condition::Quantile { histogram, quantile, within_seconds, above, least } => {
                let buckets = self.increases(&format!("{histogram}_bucket"), *within_seconds);
                let mut quantiles = quantiles(buckets, *quantile, *least);
                quantiles.retain(|_, value| *value > *above);
                quantiles
            }
        }
    }

    fn gauge(
        &self,
        series: &str,
        labels: &Labels,
        above: Option<f64>,
        below: Option<f64>,
    ) -> BTreeMap<Labels, f64> {
        let Some((_, now)) = self.samples.back() else { return BTreeMap::new() };
        let is_meant = |found: &Labels| labels.iter().all(|(name, value)| found.get(name) == Some(value));
        let holds =
            |value: f64| above.is_some_and(|limit| value > limit) || below.is_some_and(|limit| value < limit);
        let found = now.of(series).filter(|(found, value)| is_meant(found) && holds(*value));
        found.map(|(labels, value)| (labels.clone(), value)).collect()
    }

    /// What was added to each counter. One that was not there before began at zero; the history begins with the process, as
    /// the counters do, so that none is ever reset.
    fn increases(&self, series: &str, within_seconds: u64) -> BTreeMap<Labels, f64> {
        let Some((now_ms, now)) = self.samples.back() else { return BTreeMap::new() };
        let since = now_ms.saturating_sub(within_seconds * 1_000);
        let before = self.samples.iter().rev().find(|(at, _)| *at <= since).or(self.samples.front());
        let Some((_, before)) = before else { return BTreeMap::new() };
        let increase = |labels: &Labels, value: f64| value - before.get(series, labels).unwrap_or(0.0);
        now.of(series).map(|(labels, value)| (labels.clone(), increase(labels, value))).collect()
    }
}

/// Sums over all labels but those that are kept apart, and the node.
fn sum_by(values: BTreeMap<Labels, f64>, by: &[String]) -> BTreeMap<Labels, f64> {
    let mut sums = BTreeMap::new();
    for (mut labels, value) in values {
        labels.retain(|name, _| by.contains(name) || name == "node");
        *sums.entry(labels).or_insert(0.0) += value;
    }
    sums
}

/// The quantile of each histogram, within its bucket by proportion, as Prometheus computes it.
fn quantiles(buckets: BTreeMap<Labels, f64>, quantile: f64, least: f64) -> BTreeMap<Labels, f64> {
    let mut histograms: BTreeMap<Labels, Vec<(f64, f64)>> = BTreeMap::new();
    for (mut labels, count) in buckets {
        let bound = labels.remove("le").and_then(|bound| bound.parse().ok());
        histograms.entry(labels).or_default().extend(bound.map(|bound: f64| (bound, count)));
    }
    let each = histograms.into_iter().filter_map(|(labels, mut buckets)| {
        buckets.sort_by(|one, other| one.0.total_cmp(&other.0));
        let total = buckets.last()?.1;
        (total >= least && total > 0.0).then(|| (labels, quantile_of(&buckets, quantile * total)))
    });
    each.collect()
}

fn quantile_of(buckets: &[(f64, f64)], rank: f64) -> f64 {
    let place = buckets.iter().position(|(_, count)| *count >= rank).unwrap_or(buckets.len() - 1);
    let (lower, below) = if place == 0 { (0.0, 0.0) } else { buckets[place - 1] };
    let (upper, count) = buckets[place];
    if upper.is_infinite() {
        return lower;
    }
    let within = count - below;
    if within > 0.0 { lower + (upper - lower) * (rank - below) / within } else { upper }
}

#[cfg(test)]
mod tests;
