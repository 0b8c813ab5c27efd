//! Which words stand where, and how often: five bytes for each.

use super::{B, BitSet, Doc, K1, Term};

/// A filter that keeps so much less than a word has is looked up in the word's records, not the other way round.
const SELECTIVE_FACTOR: usize = 16;
/// A count that does not fit its byte; it is in `large`.
const LARGE_COUNT: u8 = u8::MAX;

/// An inverted index. BM25 is computed from the counts when it is asked: that costs a division, and finished weights
/// would cost three bytes more for each word of each record.
#[derive(Debug, Default, PartialEq)]
pub(crate) struct Postings {
    /// Where the postings of each stem begin; one more than there are stems.
    pub(super) starts: Vec<usize>,
    pub(super) docs: Vec<Doc>,
    pub(super) counts: Vec<u8>,
    /// Counts that do not fit a byte, by place.
    pub(super) large: Vec<(u64, u32)>,
    /// By record: how many words it has.
    pub(super) lengths: Vec<f32>,
    /// By record: BM25's measure of its length, from the others' lengths.
    norms: Vec<f32>,
}

impl Postings {
    /// From stem, record and count of each posting in the order of records, how many postings each stem has, and the
    /// lengths of records.
    pub(super) fn new(entries: Vec<(Term, Doc, u32)>, frequencies: &[usize], lengths: Vec<f32>) -> Self {
        let mut starts = Vec::with_capacity(frequencies.len() + 1);
        starts.push(0);
        for frequency in frequencies {
            starts.push(starts[starts.len() - 1] + frequency);
        }
        let mut next = starts.clone();
        let (mut docs, mut counts) = (vec![0; entries.len()], vec![0; entries.len()]);
        let mut large = Vec::new();
        for (term, doc, count) in entries {
            let at = next[term as usize];
            next[term as usize] += 1;
            docs[at] = doc;
            counts[at] = u8::try_from(count).unwrap_or(LARGE_COUNT);
            if counts[at] == LARGE_COUNT {
                large.push((at as u64, count));
            }
        }
        large.sort_unstable();
        Self::with_norms(starts, docs, counts, large, lengths)
    }

    pub(super) fn with_norms(
        starts: Vec<usize>,
        docs: Vec<Doc>,
        counts: Vec<u8>,
        large: Vec<(u64, u32)>,
        lengths: Vec<f32>,
    ) -> Self {
        let average = (lengths.iter().sum::<f32>() / lengths.len().max(1) as f32).max(1.0);
        let norms = lengths.iter().map(|length| K1 * (1.0 - B + B * length / average)).collect();
        Self { starts, docs, counts, large, lengths, norms }
    }

    pub(super) fn frequency(&self, term: Term) -> usize {
        self.starts[term as usize + 1] - self.starts[term as usize]
    }

    /// Adds to the scores of records what a stem with this weight brings them, where they pass the filter.
    pub(super) fn add(&self, scores: &mut [f32], term: Term, weight: f32, filter: &BitSet) {
        let (start, end) = (self.starts[term as usize], self.starts[term as usize + 1]);
        let (docs, counts) = (&self.docs[start..end], &self.counts[start..end]);
        let mut add = |at: usize| {
            let doc = docs[at] as usize;
            let count =
                if counts[at] == LARGE_COUNT { self.large_count(start + at) } else { f32::from(counts[at]) };
            scores[doc] += weight * count / (count + self.norms[doc]);
        };
        if filter.count() == self.lengths.len() {
            (0..docs.len()).for_each(&mut add);
        } else if filter.count() < docs.len() / SELECTIVE_FACTOR {
            look_up(docs, filter.iter(), add);
        } else {
            (0..docs.len()).filter(|at| filter.contains(docs[*at])).for_each(&mut add);
        }
    }

    fn large_count(&self, at: usize) -> f32 {
        let found = self.large.binary_search_by_key(&(at as u64), |(place, _)| *place);
        found.map_or(f32::from(LARGE_COUNT), |found| self.large[found].1 as f32)
    }
}

/// The places in `docs` of those that are wanted; both are sorted.
fn look_up(docs: &[Doc], wanted: impl Iterator<Item = Doc>, mut each: impl FnMut(usize)) {
    let mut from = 0;
    for doc in wanted {
        match docs[from..].binary_search(&doc) {
            Ok(at) => {
                each(from + at);
                from += at + 1;
            }
            Err(at) => from += at,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn looking_up_finds_what_both_have() {
        let mut found = Vec::new();
        look_up(&[1, 4, 5, 9, 12], [0, 4, 6, 9, 13].into_iter(), |at| found.push(at));
        assert_eq!(found, [1, 3]);
    }

    #[test]
    fn a_word_that_stands_very_often_keeps_its_count() {
        let entries = vec![(0, 0, 254), (0, 1, 255), (0, 2, 100_000)];
        let postings = Postings::new(entries, &[3], vec![300.0; 3]);
        let mut scores = [0.0; 3];
        postings.add(&mut scores, 0, 1.0, &BitSet::of(3, |_| true));
        for (score, count) in scores.iter().zip([254.0, 255.0, 100_000.0]) {
            assert!((score - count / (count + 1.2_f32)).abs() < 1e-6, "{score} {count}");
        }
    }
}
