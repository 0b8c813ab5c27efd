//! Words that nobody wrote, matched to words that somebody did.

/// A word must have so many letters before it is taken for another one.
const SHORTEST: usize = 4;
/// From so many letters on two slips are forgiven.
const LONG: usize = 8;
/// How many words a misspelt one may stand for.
const MOST: usize = 3;

/// Every word, ready to be compared: grouped by length, each with the set of its letters.
///
/// One slip changes at most two members of that set, so most words are ruled out by one instruction and the rest are
/// compared letter by letter. It is exact, and costs 16 bytes a word where an index of deletions costs hundreds.
pub(super) struct Vocabulary {
    by_length: Vec<Vec<(u32, Box<str>)>>,
}

impl Vocabulary {
    pub(super) fn new<'a>(words: impl Iterator<Item = &'a str>) -> Self {
        let mut by_length: Vec<Vec<(u32, Box<str>)>> = Vec::new();
        for word in words {
            let length = word.chars().count();
            // Numbers are not misspelt into each other: 1893 is not 1896.
            if length + 2 < SHORTEST || word.chars().any(char::is_numeric) {
                continue;
            }
            if by_length.len() <= length {
                by_length.resize_with(length + 1, Vec::new);
            }
            by_length[length].push((letters(word), word.into()));
        }
        // Hash maps have no order, and answers must.
        by_length.iter_mut().for_each(|words| words.sort_unstable_by(|a, b| a.1.cmp(&b.1)));
        Self { by_length }
    }

    /// The words nearest to an unknown one and how many slips away they are: of those at the least distance the ones
    /// that `frequency` puts first.
    pub(super) fn nearest(&self, word: &str, frequency: impl Fn(&str) -> usize) -> Vec<(&str, usize)> {
        let length = word.chars().count();
        if length < SHORTEST || word.chars().any(char::is_numeric) {
            return Vec::new();
        }
        let reach = if length < LONG { 1 } else { 2 };
        let set = letters(word);
        let first = word.chars().next();
        let mut near: Vec<(&str, usize)> = Vec::new();
        let groups = self.by_length.iter().take(length + reach + 1).skip(length - reach);
        for (other_set, other) in groups.flatten() {
            if (set ^ other_set).count_ones() as usize > 2 * reach {
                continue;
            }
            let slips = strsim::osa_distance(word, other);
            // Two slips and another first letter make another word.
            if slips <= reach && (slips < 2 || other.chars().next() == first) {
                near.push((other, slips));
            }
        }
        let Some(least) = near.iter().map(|(_, slips)| *slips).min() else { return near };
        near.retain(|(_, slips)| *slips == least);
        near.sort_by_key(|(other, _)| std::cmp::Reverse(frequency(other)));
        near.truncate(MOST);
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
        let vocabulary = Box::leak(Box::new(Vocabulary::new(known.into_iter())));
        vocabulary.nearest(word, |word| word.len())
    }

    #[test]
    fn slips_are_forgiven_by_length() {
        assert_eq!(nearest("expediton"), [("expedition", 1)]);
        assert_eq!(nearest("expeidtoin"), [("expedition", 2)]);
        assert_eq!(nearest("lindstorm"), [("lindstrom", 1)]);
        assert_eq!(nearest("sverdup"), [("sverdrup", 1)]);
        assert_eq!(nearest("fran"), [("fram", 1)]);
    }

    #[test]
    fn short_words_numbers_and_strangers_are_not() {
        for word in ["ise", "1896", "lasagne", "", "🙂", "svredupp"] {
            assert_eq!(nearest(word), [], "{word}");
        }
    }
}
