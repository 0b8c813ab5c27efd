//! Text as the index sees it: folded words and their stems, with their places.

mod fold;
mod plain;
mod sentences;
mod stop_words;

use std::ops::Range;

use rust_stemmers::{Algorithm, Stemmer};

use fold::fold_into;

pub(crate) use plain::plain;
pub(crate) use sentences::sentences;
pub(crate) use stop_words::is_stop_word;

/// After folding; what is longer is cut.
const MAX_WORD_BYTES: usize = 64;

pub(crate) struct Word<'a> {
    /// Lower-case, without accents.
    pub(crate) folded: &'a str,
    /// Where it stands in the text, in bytes.
    pub(crate) place: Range<usize>,
}

/// Hands every word of a text to `each`, in their order. Letters and digits make words; ideographs and kana, which are
/// written without spaces, are a word each.
pub(crate) fn each_word(text: &str, mut each: impl FnMut(Word<'_>)) {
    let mut folded = String::with_capacity(MAX_WORD_BYTES);
    let mut begin = 0;
    let mut finish = |folded: &mut String, place: Range<usize>| {
        if !folded.is_empty() {
            each(Word { folded, place });
            folded.clear();
        }
    };
    for (at, letter) in text.char_indices() {
        let is_alone = stands_alone(letter);
        if is_alone || !(letter.is_alphanumeric() || (is_mark(letter) && !folded.is_empty())) {
            finish(&mut folded, begin..at);
        }
        if !letter.is_alphanumeric() {
            continue;
        }
        if folded.is_empty() {
            begin = at;
        }
        if folded.len() < MAX_WORD_BYTES {
            fold_into(letter, &mut folded);
        }
        if is_alone {
            finish(&mut folded, begin..at + letter.len_utf8());
        }
    }
    finish(&mut folded, begin..text.len());
}

pub(crate) fn words(text: &str) -> Vec<String> {
    let mut words = Vec::new();
    each_word(text, |word| words.push(word.folded.to_owned()));
    words
}

/// Combining accents, as decomposed text has them.
fn is_mark(letter: char) -> bool {
    matches!(letter, '\u{300}'..='\u{36f}')
}

fn stands_alone(letter: char) -> bool {
    let is_kana = matches!(letter, '\u{3040}'..='\u{30ff}');
    is_kana || matches!(letter, '\u{3400}'..='\u{4dbf}' | '\u{4e00}'..='\u{9fff}' | '\u{f900}'..='\u{faff}')
}

/// Snowball's English stems.
pub(crate) struct Stems(Stemmer);

impl Stems {
    pub(crate) fn new() -> Self {
        Self(Stemmer::create(Algorithm::English))
    }

    /// The stem of a folded word. Words of other scripts and numbers are their own.
    pub(crate) fn stem(&self, folded: &str) -> String {
        if folded.bytes().all(|byte| byte.is_ascii_alphabetic()) {
            self.0.stem(folded).into_owned()
        } else {
            folded.to_owned()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_folded_and_split_at_what_is_no_letter() {
        assert_eq!(
            words("Café CAFE\u{301} — Ærø, Straße; don't 1,000"),
            ["cafe", "cafe", "aero", "strasse", "don", "t", "1", "000"]
        );
        assert_eq!(words("🙂 \u{200d} …"), Vec::<String>::new());
        assert_eq!(words("שלום עולם 東京タワー"), ["שלום", "עולם", "東", "京", "タ", "ワ", "ー"]);
    }

    #[test]
    fn places_are_where_the_words_stand() {
        let text = "Ærø is—small";
        let mut seen = Vec::new();
        each_word(text, |word| seen.push(text[word.place].to_owned()));
        assert_eq!(seen, ["Ærø", "is", "small"]);
    }

    #[test]
    fn a_word_without_end_is_cut() {
        assert!(words(&"a".repeat(100_000)).iter().all(|word| word.len() <= MAX_WORD_BYTES + 4));
    }

    #[test]
    fn plurals_share_a_stem() {
        let stems = Stems::new();
        assert_eq!(stems.stem("expeditions"), stems.stem("expedition"));
        assert_eq!(stems.stem("1893"), "1893");
    }
}
