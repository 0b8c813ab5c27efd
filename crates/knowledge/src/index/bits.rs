//! A set of records.

use super::Doc;

/// Which records are in, one bit for each.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Bits {
    blocks: Vec<u64>,
    count: usize,
}

impl Bits {
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

    /// Whether a record is in.
    pub(crate) fn has(&self, doc: Doc) -> bool {
        self.blocks[doc as usize / 64] >> (doc % 64) & 1 == 1
    }

    /// How many are in.
    pub(crate) fn count(&self) -> usize {
        self.count
    }

    /// Keeps what is in the other one too.
    pub(crate) fn keep(&mut self, other: &Self) {
        self.count = 0;
        for (block, other) in self.blocks.iter_mut().zip(&other.blocks) {
            *block &= other;
            self.count += block.count_ones() as usize;
        }
    }

    /// Every record that is in, in their order.
    pub(crate) fn iter(&self) -> impl Iterator<Item = Doc> + '_ {
        self.blocks.iter().enumerate().flat_map(|(at, &block)| {
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
        let mut set = Bits::of(130, |at| at % 3 == 0);
        assert_eq!(set.count(), 44);
        set.keep(&Bits::of(130, |at| at > 120));
        assert_eq!(set.iter().collect::<Vec<_>>(), [123, 126, 129]);
        assert!(set.has(129) && !set.has(128) && set.count() == 3);
    }
}
