//! Lists without repetitions, in time that is linear in their length.

use std::hash::Hash;

use indexmap::IndexSet;

/// Each item once, where it stands first.
pub(crate) fn distinct<T: Hash + Eq>(items: impl IntoIterator<Item = T>) -> Vec<T> {
    items.into_iter().collect::<IndexSet<T>>().into_iter().collect()
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;
    use std::hash::Hasher;

    use super::*;

    /// Counts how often it is compared.
    struct Counted<'c>(u32, &'c Cell<usize>);

    impl PartialEq for Counted<'_> {
        fn eq(&self, other: &Self) -> bool {
            self.1.set(self.1.get() + 1);
            self.0 == other.0
        }
    }

    impl Eq for Counted<'_> {}

    impl Hash for Counted<'_> {
        fn hash<H: Hasher>(&self, state: &mut H) {
            self.0.hash(state);
        }
    }

    #[test]
    fn the_first_of_equal_items_stays() {
        assert_eq!(distinct(["b", "a", "b", "c", "a"]), ["b", "a", "c"]);
    }

    #[test]
    fn many_items_are_not_compared_with_each_other() {
        for count in [1_000, 10_000] {
            let comparisons = Cell::new(0);
            let items = (0..2 * count).map(|number| Counted(number % count, &comparisons));
            assert_eq!(distinct(items).len(), count as usize);
            assert!(comparisons.get() <= 2 * count as usize, "{} comparisons", comparisons.get());
        }
    }
}
