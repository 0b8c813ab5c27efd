//! Edit distance with transpositions (optimal string alignment), bounded.

const MAX_WORD_CHARS: usize = 96;

/// Insertions, deletions, substitutions and swaps of neighbours between two words, up to `reach`; `None` beyond. Whole
/// vocabularies are compared with one word, so what lies beyond is not computed.
pub(crate) fn edit_distance(a: &[char], b: &str, reach: usize) -> Option<usize> {
    // A letter is one byte or more, so this needs no letters to be counted.
    if b.len() + reach < a.len() || a.len() > MAX_WORD_CHARS || reach >= MAX_WORD_CHARS {
        return None;
    }
    let mut letters = ['\0'; MAX_WORD_CHARS];
    let mut length = 0;
    for letter in b.chars() {
        *letters.get_mut(length)? = letter;
        length += 1;
    }
    if a.len().abs_diff(length) > reach {
        return None;
    }
    compare(a, &letters[..length], reach)
}

fn compare(a: &[char], b: &[char], reach: usize) -> Option<usize> {
    let beyond = reach as u8 + 1;
    // Rows of the usual table: the one before the last, the last, and this one.
    let (mut older, mut old, mut new) =
        ([beyond; MAX_WORD_CHARS + 1], [beyond; MAX_WORD_CHARS + 1], [beyond; MAX_WORD_CHARS + 1]);
    for (cell, at) in old[..=b.len().min(reach)].iter_mut().zip(0..) {
        *cell = at;
    }
    for row in 1..=a.len() {
        // Cells further from the diagonal than `reach` are beyond it.
        let (first, last) = (row.saturating_sub(reach).max(1), (row + reach).min(b.len()));
        new[first - 1] = if first == 1 { (row as u8).min(beyond) } else { beyond };
        let mut least = new[first - 1];
        for column in first..=last {
            let differs = u8::from(a[row - 1] != b[column - 1]);
            let beside = if column < row + reach { old[column] } else { beyond };
            let mut cell = (old[column - 1] + differs).min(new[column - 1] + 1).min(beside + 1);
            if row > 1 && column > 1 && a[row - 1] == b[column - 2] && a[row - 2] == b[column - 1] {
                cell = cell.min(older[column - 2] + 1);
            }
            new[column] = cell.min(beyond);
            least = least.min(new[column]);
        }
        if least >= beyond {
            return None;
        }
        (older, old, new) = (old, new, older);
    }
    Some(usize::from(old[b.len()])).filter(|edits| *edits <= reach)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(2_000))]

        #[test]
        fn edit_distance_is_that_of_strsim(a in "[abcé]{0,12}", b in "[abcé]{0,12}", reach in 0_usize..6) {
            let letters: Vec<char> = a.chars().collect();
            let truth = strsim::osa_distance(&a, &b);
            prop_assert_eq!(edit_distance(&letters, &b, reach), (truth <= reach).then_some(truth));
        }
    }

    #[test]
    fn very_long_words_are_not_compared() {
        let long = "a".repeat(200);
        assert_eq!(edit_distance(&long.chars().collect::<Vec<_>>(), &long, 2), None);
    }
}
