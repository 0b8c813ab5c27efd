//! Random numbers that are the same for the same seed, and the distributions that are drawn from.

use serde::Deserialize;

/// SplitMix64: one word of state, and good enough to draw times from.
pub(crate) struct Random(u64);

impl Random {
    pub(crate) fn new(seed: u64) -> Self {
        Self(seed)
    }

    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut word = self.0;
        word = (word ^ (word >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        word = (word ^ (word >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        word ^ (word >> 31)
    }

    /// From 0 (included) to 1 (excluded), of 53 bits.
    pub(crate) fn fraction(&mut self) -> f64 {
        (self.next() >> 11) as f64 / (1_u64 << 53) as f64
    }

    pub(crate) fn below(&mut self, bound: usize) -> usize {
        ((self.fraction() * bound as f64) as usize).min(bound.saturating_sub(1))
    }

    /// The time to the next event of a Poisson process.
    pub(crate) fn exponential(&mut self, mean: f64) -> f64 {
        -mean * (1.0 - self.fraction()).ln()
    }

    /// A whole number with this mean: one of its two neighbours.
    pub(crate) fn around(&mut self, mean: f64) -> u32 {
        let below = mean.floor();
        below as u32 + u32::from(self.fraction() < mean - below)
    }
}

/// A duration or cost that was measured: its values at evenly spaced quantiles, the smallest first and the largest last.
/// What lies between two of them is drawn evenly.
#[derive(Debug, Clone, Deserialize)]
#[serde(transparent)]
pub(crate) struct Quantiles(pub(super) Vec<f64>);

impl Quantiles {
    /// Whether there is something to draw from, in order.
    pub(crate) fn is_valid(&self) -> bool {
        self.0.len() >= 2
            && self.0.iter().all(|value| value.is_finite() && *value >= 0.0)
            && self.0.is_sorted()
    }

    pub(crate) fn draw(&self, random: &mut Random) -> f64 {
        let place = random.fraction() * (self.0.len() - 1) as f64;
        let below = place as usize;
        self.0[below] + (self.0[below + 1] - self.0[below]) * (place - below as f64)
    }

    /// The same shape with another mean.
    pub(crate) fn scaled_to(&self, mean: f64) -> Self {
        let factor = mean / self.mean();
        Self(self.0.iter().map(|value| value * factor).collect())
    }

    pub(crate) fn mean(&self) -> f64 {
        let inner: f64 = self.0.windows(2).map(|pair| f64::midpoint(pair[0], pair[1])).sum();
        inner / (self.0.len() - 1) as f64
    }
}

#[cfg(test)]
mod tests {
    use super::{Quantiles, Random};

    #[test]
    fn same_seed_draws_the_same_numbers() {
        let draw = |seed| {
            let mut random = Random::new(seed);
            (0..5).map(|_| random.fraction()).collect::<Vec<f64>>()
        };
        assert_eq!(draw(7), draw(7));
        assert_ne!(draw(7), draw(8));
    }

    #[test]
    fn draws_have_the_mean_that_was_asked_for() {
        let (mut random, draws) = (Random::new(1), 200_000);
        let mut mean = |draw: &dyn Fn(&mut Random) -> f64| -> f64 {
            (0..draws).map(|_| draw(&mut random)).sum::<f64>() / f64::from(draws)
        };
        let quantiles = Quantiles(vec![1.0, 2.0, 9.0]);
        assert!((quantiles.mean() - 3.5).abs() < 1e-9);
        for (expected, measured) in [
            (0.5, mean(&Random::fraction)),
            (3.0, mean(&|random| random.exponential(3.0))),
            (2.25, mean(&|random| f64::from(random.around(2.25)))),
            (3.5, mean(&|random| quantiles.draw(random))),
            (4.5, mean(&|random| random.below(10) as f64)),
        ] {
            assert!((measured / expected - 1.0).abs() < 0.02, "{measured} instead of {expected}");
        }
    }
}
