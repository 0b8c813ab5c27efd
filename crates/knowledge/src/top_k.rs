//! The best of many, without sorting the rest.

use crate::index::Doc;

/// Keeps the highest scores, ties by document number.
pub(crate) struct TopK {
    limit: usize,
    kept: Vec<(f64, Doc)>,
    /// A score below it cannot be among the best.
    threshold: f64,
}

impl TopK {
    pub(crate) fn new(limit: usize) -> Self {
        Self { limit, kept: Vec::new(), threshold: f64::NEG_INFINITY }
    }

    #[inline(always)]
    pub(crate) fn offer(&mut self, score: f64, doc: Doc) {
        if score >= self.threshold && self.limit > 0 {
            self.keep(score, doc);
        }
    }

    fn keep(&mut self, score: f64, doc: Doc) {
        self.kept.push((score, doc));
        // Cutting at twice the limit costs each score a constant.
        if self.kept.len() >= (2 * self.limit).max(64) {
            self.cut();
            self.threshold = self.kept.iter().map(|(score, _)| *score).fold(f64::INFINITY, f64::min);
        }
    }

    /// The best first.
    pub(crate) fn finish(mut self) -> Vec<(f64, Doc)> {
        self.cut();
        self.kept.sort_unstable_by(order);
        self.kept
    }

    fn cut(&mut self) {
        if self.limit < self.kept.len() {
            self.kept.select_nth_unstable_by(self.limit, order);
            self.kept.truncate(self.limit);
        }
    }
}

fn order(a: &(f64, Doc), b: &(f64, Doc)) -> std::cmp::Ordering {
    b.0.total_cmp(&a.0).then(a.1.cmp(&b.1))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn the_best_are_those_of_sorting(scores in proptest::collection::vec(0_u8..20, 0..400), limit in 0_usize..50) {
            let mut best = TopK::new(limit);
            let mut all: Vec<(f64, Doc)> = scores.iter().map(|score| f64::from(*score)).zip(0..).collect();
            // In no order of records: several threads offer theirs.
            all.iter().rev().for_each(|(score, doc)| best.offer(*score, *doc));
            all.sort_by(order);
            all.truncate(limit);
            prop_assert_eq!(best.finish(), all);
        }
    }
}
