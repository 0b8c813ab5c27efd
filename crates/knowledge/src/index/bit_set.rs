//! A set of documents.

use super::Doc;

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct BitSet {
    blocks: Vec<u64>,
    count: usize,
}

impl BitSet {
    /// The records among the first `length` for which it holds.
    pub(crate) fn of(length: usize, mut holds: impl FnMut(usize) -> bool) -> Self {
        let mut blocks = vec![0_u64; length.div_ceil(64)];
        let mut count = 0;
        for at in (0..length).filter(|at| holds(*at)) {
            blocks[at / 64] |= 1 << (at % 64);
            count += 1;
        }
        Self { blocks, count }
    }

    /// Some of the first `length` records, by number.
    pub(crate) fn of_docs(length: usize, docs: &[Doc]) -> Self {
        let mut blocks = vec![0_u64; length.div_ceil(64)];
        docs.iter().for_each(|doc| blocks[*doc as usize / 64] |= 1 << (doc % 64));
        let count = blocks.iter().map(|block| block.count_ones() as usize).sum();
        Self { blocks, count }
    }

    pub(crate) fn contains(&self, doc: Doc) -> bool {
        self.blocks[doc as usize / 64] >> (doc % 64) & 1 == 1
    }

    pub(crate) fn count(&self) -> usize {
        self.count
    }

    pub(crate) fn intersect(&mut self, other: &Self) {
        self.count = 0;
        for (block, other) in self.blocks.iter_mut().zip(&other.blocks) {
            *block &= other;
            self.count += block.count_ones() as usize;
        }
    }

    /// In ascending order.
    pub(crate) fn iter(&self) -> impl Iterator<Item = Doc> + '_ {
        self.share(0, 1)
    }

    /// What is in one of several shares, which divide the records evenly.
    pub(crate) fn share(&self, number: usize, of: usize) -> impl Iterator<Item = Doc> + '_ {
        let blocks = self.blocks.len();
        let range = blocks * number / of..blocks * (number + 1) / of;
        let first = range.start;
        self.blocks[range].iter().enumerate().flat_map(move |(at, &block)| {
            let at = first + at;
            let mut left = block;
            std::iter::from_fn(move || {
                let bit = left.trailing_zeros();
                left &= left.checked_sub(1)?;
                Some(at as Doc * 64 + bit)
            })
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_set_knows_its_members() {
        let mut set = BitSet::of(130, |at| at % 3 == 0);
        assert_eq!(set.count(), 44);
        set.intersect(&BitSet::of(130, |at| at > 120));
        assert_eq!(set.iter().collect::<Vec<_>>(), [123, 126, 129]);
        assert!(set.contains(129) && !set.contains(128) && set.count() == 3);
        assert_eq!(set, BitSet::of_docs(130, &[129, 123, 126, 126]));
        let set = BitSet::of(1_000, |at| at % 7 == 0);
        let shares: Vec<_> = (0..3).flat_map(|number| set.share(number, 3)).collect();
        assert_eq!(shares, set.iter().collect::<Vec<_>>());
    }
}
