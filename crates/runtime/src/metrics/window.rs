//! The last thousand of something, and its percentiles.

use std::collections::VecDeque;

/// How many samples a window holds.
const MAX_SAMPLES: usize = 1_000;

#[derive(Debug, Clone, Default)]
pub(super) struct SampleWindow {
    samples: VecDeque<f64>,
}

#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub(super) struct Summary {
    pub(super) average: f64,
    pub(super) p50: f64,
    pub(super) p95: f64,
    pub(super) p99: f64,
}

impl SampleWindow {
    pub(super) fn add(&mut self, sample: f64) {
        if self.samples.len() == MAX_SAMPLES {
            self.samples.pop_front();
        }
        self.samples.push_back(sample);
    }

    /// Percentiles by the nearest rank; zeros when there is nothing yet.
    pub(super) fn summary(&self) -> Summary {
        self.summary_of(MAX_SAMPLES)
    }

    /// The same of the last few, as far as the window still has them.
    pub(super) fn summary_of(&self, last: usize) -> Summary {
        let older = self.samples.len().saturating_sub(last);
        let mut sorted: Vec<_> = self.samples.iter().skip(older).copied().collect();
        if sorted.is_empty() {
            return Summary::default();
        }
        sorted.sort_by(f64::total_cmp);
        let average = sorted.iter().sum::<f64>() / sorted.len() as f64;
        Summary {
            average,
            p50: percentile(&sorted, 50),
            p95: percentile(&sorted, 95),
            p99: percentile(&sorted, 99),
        }
    }
}

/// A percentile of sorted samples by the nearest rank; zero when there are none.
pub(super) fn percentile(sorted: &[f64], percent: usize) -> f64 {
    let rank = (sorted.len() * percent).div_ceil(100).max(1);
    sorted.get(rank - 1).copied().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn percentiles_are_by_nearest_rank_over_the_last_thousand() {
        let mut window = SampleWindow::default();
        assert_eq!(window.summary(), Summary::default());
        window.add(7.0);
        assert_eq!(window.summary(), Summary { average: 7.0, p50: 7.0, p95: 7.0, p99: 7.0 });
        for sample in 1..=2_000 {
            window.add(f64::from(sample));
        }
        let summary = window.summary();
        assert_eq!((summary.p50, summary.p95, summary.p99), (1_500.0, 1_950.0, 1_990.0));
        assert_eq!(summary.average, 1_500.5);
    }
}
