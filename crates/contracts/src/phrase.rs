//! Phrases with `*`, as a definition's `requestedBy` has them: which words of a user ask for a tool.

use crate::words::{folded_words, sentences};

/// A phrase with more is refused when its tool is built.
pub const MAX_PHRASE_CHARS: usize = 200;
/// How many phrases a definition may have, all languages together.
pub const MAX_PHRASES: usize = 500;

/// Words in their order, where `*` stands for any words, or none. It is matched with a whole sentence or message: `draw *`
/// matches “Draw a fox”, and not “Never draw a fox”.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Phrase {
    /// What stands before, between and after the `*`: one part more than there are. Only the first and the last may be empty.
    parts: Vec<Part>,
}

/// Why a text is not a phrase.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum PhraseError {
    /// It would match everything, or nothing.
    #[error("a phrase has at least one word beside `*`")]
    NoWords,
    /// It reads like a part of a word, and `*` stands for whole ones.
    #[error("`*` stands for whole words, with a space on each side")]
    StarWithinWord,
    /// It has more characters than [`MAX_PHRASE_CHARS`].
    #[error("a phrase has at most {MAX_PHRASE_CHARS} characters")]
    TooLong,
}

impl Phrase {
    /// Reads a phrase.
    pub fn parse(text: &str) -> Result<Self, PhraseError> {
        if text.chars().count() > MAX_PHRASE_CHARS {
            return Err(PhraseError::TooLong);
        }
        let mut parts = vec![Vec::new()];
        for piece in text.split_whitespace() {
            match piece {
                "*" => parts.push(Vec::new()),
                piece if piece.contains('*') => return Err(PhraseError::StarWithinWord),
                piece => parts.last_mut().into_iter().for_each(|part| part.extend(folded_words(piece))),
            }
        }
        let last = parts.len() - 1;
        // `* *` says no more than `*`.
        let mut place = 0;
        parts.retain(|part| {
            let is_inner = place != 0 && place != last;
            place += 1;
            !is_inner || !part.is_empty()
        });
        if parts.iter().all(Vec::is_empty) {
            return Err(PhraseError::NoWords);
        }
        Ok(Self { parts: parts.into_iter().map(Part::new).collect() })
    }

    /// Whether these words, as [`folded_words`] gives them, match from the first to the last. The time that it takes grows
    /// with the number of words and not with that of the ways to match them.
    pub fn matches(&self, words: &[String]) -> bool {
        let [first, between @ .., last] = &self.parts[..] else {
            return self.parts.first().is_some_and(|only| only.words == words);
        };
        let Some(rest) = words.strip_prefix(&first.words[..]) else { return false };
        let Some(mut rest) = rest.strip_suffix(&last.words[..]) else { return false };
        between.iter().all(|part| match end_of_first(&part.words, &part.fallback, rest) {
            Some(end) => {
                rest = &rest[end..];
                true
            }
            None => false,
        })
    }
}

/// The first of these phrases that a text matches, as a whole or with one of its sentences.
pub fn find_phrase<'a>(phrases: impl IntoIterator<Item = &'a str>, text: &str) -> Option<&'a str> {
    let whole = folded_words(text);
    let mut candidates: Vec<Vec<String>> = sentences(text).map(folded_words).collect();
    candidates.push(whole);
    candidates.retain(|words| !words.is_empty());
    phrases.into_iter().find(|phrase| {
        Phrase::parse(phrase).is_ok_and(|phrase| candidates.iter().any(|words| phrase.matches(words)))
    })
}

/// Words that stand next to each other.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Part {
    words: Vec<String>,
    /// For each length of a partial match, the length of the one that is left when the next word does not fit
    /// (Knuth, Morris and Pratt), so that no word of a text is looked at again and again.
    fallback: Vec<usize>,
}

impl Part {
    fn new(words: Vec<String>) -> Self {
        let fallback = fallbacks(&words);
        Self { words, fallback }
    }
}

fn fallbacks<T: PartialEq>(part: &[T]) -> Vec<usize> {
    let mut fallback = vec![0; part.len()];
    let mut matched = 0;
    for place in 1..part.len() {
        while matched > 0 && part[place] != part[matched] {
            matched = fallback[matched - 1];
        }
        matched += usize::from(part[place] == part[matched]);
        fallback[place] = matched;
    }
    fallback
}

/// Where the first occurrence of `part` in `words` ends.
fn end_of_first<T: PartialEq>(part: &[T], fallback: &[usize], words: &[T]) -> Option<usize> {
    let mut matched = 0;
    for (place, word) in words.iter().enumerate() {
        while matched > 0 && part[matched] != *word {
            matched = fallback[matched - 1];
        }
        matched += usize::from(part[matched] == *word);
        if matched == part.len() {
            return Some(place + 1);
        }
    }
    None
}

#[cfg(test)]
mod tests;
