//! Misspelt words of a question, matched to words of the records.

use super::edit_distance::edit_distance;
use super::strings::Strings;

/// Shorter words are not corrected.
const MIN_WORD_CHARS: usize = 4;
/// From this length on, two edits are allowed instead of one.
const TWO_EDITS_MIN_CHARS: usize = 8;
/// Words that a misspelt one may stand for.
const MAX_CORRECTIONS: usize = 3;

/// Every word, ready to be compared: grouped by length, each with the set of its letters.
///
/// One edit changes at most two members of that set, so most words are ruled out by one instruction and the rest are
/// compared letter by letter. It is exact, and costs 8 bytes a word where an index of deletions costs hundreds.
pub(super) struct Vocabulary {
    /// The set of letters and the number of each word.
    by_length: Vec<Vec<(u32, u32)>>,
}

impl Vocabulary {
    pub(super) fn new(words: &Strings) -> Self {
        let mut by_length: Vec<Vec<(u32, u32)>> = Vec::new();
        for (number, word) in words.iter().enumerate() {
            let length = word.chars().count();
            // Numbers are not misspelt into each other: 1893 is not 1896.
            if length + 2 < MIN_WORD_CHARS || word.chars().any(char::is_numeric) {
                continue;
            }
            if by_length.len() <= length {
                by_length.resize_with(length + 1, Vec::new);
            }
            by_length[length].push((letters(word), number as u32));
        }
        by_length.iter_mut().for_each(Vec::shrink_to_fit);
        Self { by_length }
    }

    /// The words nearest to an unknown one and their distance: of those at the least distance the most frequent.
    pub(super) fn nearest(
        &self,
        words: &Strings,
        word: &str,
        frequency: impl Fn(u32) -> usize,
    ) -> Vec<(u32, usize)> {
        let chars: Vec<char> = word.chars().collect();
        let length = chars.len();
        if length < MIN_WORD_CHARS || chars.iter().any(|letter| letter.is_numeric()) {
            return Vec::new();
        }
        let mut reach = if length < TWO_EDITS_MIN_CHARS { 1 } else { 2 };
        let set = letters(word);
        let mut near: Vec<(u32, usize)> = Vec::new();
        // The same length first: most typos keep it, and a close word found early rules out more of the rest.
        let mut lengths: Vec<usize> = (length - reach..=length + reach).collect();
        lengths.sort_by_key(|other| other.abs_diff(length));
        for (other_set, number) in lengths.iter().filter_map(|other| self.by_length.get(*other)).flatten() {
            let apart = (set ^ other_set).count_ones() as usize;
            if apart > 2 * reach {
                continue;
            }
            let other = words.get(*number as usize);
            // Two edits and another first letter make another word.
            let reach_here = if other.starts_with(chars[0]) { reach } else { reach.min(1) };
            if apart > 2 * reach_here {
                continue;
            }
            if let Some(edits) = edit_distance(&chars, other, reach_here) {
                near.push((*number, edits));
                reach = edits;
            }
        }
        near.retain(|(_, edits)| *edits == reach);
        near.sort_by_key(|(other, _)| (std::cmp::Reverse(frequency(*other)), *other));
        near.truncate(MAX_CORRECTIONS);
        near
    }
}

/// The letters of a word as a set; letters beyond a to z share the places left.
fn letters(word: &str) -> u32 {
    word.chars().fold(0, |set, letter| {
        let place = match letter {
            'a'..='z' => letter as u32 - 'a' as u32,
            other => 26 + other as u32 % 6,
        };
        set | 1 << place
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn nearest(word: &str) -> Vec<(&'static str, usize)> {
        let known = ["expedition", "fram", "frame", "sverdrup", "lindstrom", "1893", "ice"];
        let mut words = Strings::default();
        known.iter().for_each(|word| words.push(word));
        let near = Vocabulary::new(&words).nearest(&words, word, |number| known[number as usize].len());
        near.into_iter().map(|(number, edits)| (known[number as usize], edits)).collect()
    }

    #[test]
    fn typos_are_corrected_by_length() {
        assert_eq!(nearest("expediton"), [("expedition", 1)]);
        assert_eq!(nearest("expeidtoin"), [("expedition", 2)]);
        assert_eq!(nearest("lindstorm"), [("lindstrom", 1)]);
        assert_eq!(nearest("sverdup"), [("sverdrup", 1)]);
        assert_eq!(nearest("fran"), [("fram", 1)]);
    }

    #[test]
    fn short_words_numbers_and_distant_words_are_not_corrected() {
        for word in ["ise", "1896", "lasagne", "", "🙂", "svredupp"] {
            assert_eq!(nearest(word), [], "{word}");
        }
    }
}
