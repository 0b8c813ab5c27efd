//! The best of many, without sorting the rest.

use crate::index::Doc;

/// Keeps the highest scores, ties by the number of the record.
pub(crate) struct Best {
    most: usize,
    kept: Vec<(f64, Doc)>,
    /// What a score must reach to matter.
    least: f64,
}

impl Best {
    /// At most so many.
    pub(crate) fn new(most: usize) -> Self {
        Self { most, kept: Vec::new(), least: f64::NEG_INFINITY }
    }

    #[inline(always)]
    pub(crate) fn offer(&mut self, score: f64, doc: Doc) {
        if score >= self.least && self.most > 0 {
            self.keep(score, doc);
        }
    }

    fn keep(&mut self, score: f64, doc: Doc) {
        self.kept.push((score, doc));
        // Room for as many again makes the cut cheap: each costs its length once.
        if self.kept.len() >= (2 * self.most).max(64) {
            self.cut();
            self.least = self.kept.iter().map(|(score, _)| *score).fold(f64::INFINITY, f64::min);
        }
    }

    /// The best, the best first.
    pub(crate) fn finish(mut self) -> Vec<(f64, Doc)> {
        self.cut();
        self.kept.sort_unstable_by(order);
        self.kept
    }

    fn cut(&mut self) {
        if self.most < self.kept.len() {
            self.kept.select_nth_unstable_by(self.most, order);
            self.kept.truncate(self.most);
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
        fn the_best_are_those_of_sorting(scores in proptest::collection::vec(0_u8..20, 0..400), most in 0_usize..50) {
            let mut best = Best::new(most);
            let mut all: Vec<(f64, Doc)> = scores.iter().map(|score| f64::from(*score)).zip(0..).collect();
            // In no order of records: several threads offer theirs.
            all.iter().rev().for_each(|(score, doc)| best.offer(*score, *doc));
            all.sort_by(order);
            all.truncate(most);
            prop_assert_eq!(best.finish(), all);
        }
    }
}
