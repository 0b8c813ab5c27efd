//! Selects the sentences of a record that answer a question, by common words and by what is asked for.

use std::collections::{BTreeMap, BTreeSet};

use crate::sentences::Sentence;
use crate::words::{self, Token};

/// A shorter sentence does not stand alone.
const MIN_ANSWER_CHARS: usize = 90;

/// Up to `max` sentences that answer a question best, in the order of the text. When no word of the question is in
/// them, the first two: a record that was found says at its beginning what it is about.
pub(crate) fn select_sentences<'a>(
    sentences: &'a [Sentence],
    question: &str,
    title: &str,
    max: usize,
) -> Vec<&'a Sentence> {
    let scores = scores(sentences, question, title);
    let best = scores.iter().copied().fold(0.0, f64::max);
    if best <= 0.0 {
        return sentences.iter().take(2.min(max)).collect();
    }
    let mut order: Vec<usize> = (0..sentences.len()).filter(|at| scores[*at] >= 0.65 * best).collect();
    // The sort is stable: of equals, the first in the text.
    order.sort_by(|a, b| scores[*b].total_cmp(&scores[*a]));
    let mut chosen = BTreeSet::new();
    for at in order {
        let leans = !sentences[at].opens && begins_with_pronoun(&sentences[at].text);
        let with = [at.checked_sub(1).filter(|_| leans), Some(at)].into_iter().flatten();
        let with: Vec<usize> = with.filter(|at| !chosen.contains(at)).collect();
        if chosen.len() + with.len() <= max {
            chosen.extend(with);
        }
    }
    // A short sentence alone is hardly an answer; the next one of its paragraph explains it.
    if let (1, Some(&only)) = (chosen.len(), chosen.first())
        && chosen.len() < max
        && sentences[only].text.chars().count() < MIN_ANSWER_CHARS
        && sentences.get(only + 1).is_some_and(|next| !next.opens)
    {
        chosen.insert(only + 1);
    }
    chosen.into_iter().map(|at| &sentences[at]).collect()
}

fn scores(sentences: &[Sentence], question: &str, title: &str) -> Vec<f64> {
    let (wanted, title) = (words::subjects(question), words::subjects(title));
    let found: Vec<BTreeSet<&String>> = sentences
        .iter()
        .map(|sentence| {
            let words = words::subjects(&sentence.text);
            wanted.iter().filter(|wanted| words.iter().any(|word| are_alike(word, wanted))).collect()
        })
        .collect();
    let mut counts: BTreeMap<&String, usize> = BTreeMap::new();
    for word in found.iter().flatten() {
        *counts.entry(word).or_default() += 1;
    }
    // A word that every sentence has tells them apart no more than “the”, and the whole record is about its title.
    let weight = |word: &String| {
        let rarity =
            counts.get(word).map_or(0.0, |count| (1.0 + sentences.len() as f64 / *count as f64).ln());
        if title.contains(word) { 0.4 * rarity } else { rarity }
    };
    let kind = Kind::of(question);
    let score = |(sentence, found): (&Sentence, &BTreeSet<&String>)| {
        let words: f64 = found.iter().map(|word| weight(word)).sum();
        let heading = words::subjects(&sentence.heading).intersection(&wanted).count() as f64;
        if words == 0.0 { 0.0 } else { words + 0.4 * heading + kind.bonus(&sentence.text) }
    };
    sentences.iter().zip(&found).map(score).collect()
}

/// Equal, or long and begun alike: `insulated` and `insulation`.
fn are_alike(word: &str, wanted: &str) -> bool {
    const BEGINNING: usize = 6;
    word == wanted || (word.get(..BEGINNING).is_some_and(|begin| wanted.get(..BEGINNING) == Some(begin)))
}

pub(crate) fn begins_with_pronoun(text: &str) -> bool {
    let first = text.split_whitespace().next().unwrap_or_default();
    PRONOUNS.contains(&first)
}

#[rustfmt::skip]
const PRONOUNS: [&str; 12] =
    ["It", "She", "He", "They", "This", "That", "These", "Those", "His", "Her", "Their", "Its"];

/// What a question asks for, by its first words.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    When,
    Number,
    Who,
    Why,
    Other,
}

#[rustfmt::skip]
const MONTHS: [&str; 12] = [
    "January", "February", "March", "April", "May", "June", "July", "August", "September", "October", "November", "December",
];
const NUMBERS: [&str; 14] = [
    "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten", "eleven", "twelve", "thirteen",
    "hundred", "thousand",
];

impl Kind {
    fn of(question: &str) -> Self {
        let tokens = words::tokens(question, 60);
        let has = |word: &str| tokens.iter().any(|token| token.lower == word);
        let follows_how = |words: &[&str]| {
            tokens.windows(2).any(|pair| pair[0].lower == "how" && words.contains(&pair[1].lower.as_str()))
        };
        if has("when") || has("year") || has("date") {
            Self::When
        } else if follows_how(&[
            "many", "much", "long", "big", "deep", "old", "far", "thick", "wide", "fast", "high",
        ]) {
            Self::Number
        } else if has("who") || has("whom") || has("whose") {
            Self::Who
        } else if has("why") {
            Self::Why
        } else {
            Self::Other
        }
    }

    fn bonus(self, sentence: &str) -> f64 {
        let tokens = words::tokens(sentence, 120);
        let is_number = |token: &Token<'_>| {
            token.text.starts_with(|letter: char| letter.is_ascii_digit())
                || NUMBERS.contains(&token.lower.as_str())
        };
        let is_date = |token: &Token<'_>| {
            MONTHS.contains(&token.text)
                || (token.text.len() == 4 && token.text.bytes().all(|byte| byte.is_ascii_digit()))
        };
        let is_name = |token: &Token<'_>| token.text.starts_with(char::is_uppercase);
        let is_reason = |token: &Token<'_>| {
            matches!(token.lower.as_str(), "because" | "since" | "therefore" | "so" | "must")
        };
        let fits = match self {
            Self::When => tokens.iter().any(is_date),
            Self::Number => tokens.iter().any(is_number),
            Self::Who => tokens.iter().skip(1).any(is_name),
            Self::Why => tokens.iter().any(is_reason),
            Self::Other => false,
        };
        if fits { 1.2 } else { 0.0 }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sentences::sentences;

    #[test]
    fn a_date_is_preferred_when_the_question_is_when() {
        let record = "The ship was launched with a bottle. The launch of the ship was on 26 October 1892. Larvik is a town.";
        let all = sentences(record);
        let best = select_sentences(&all, "When was the ship launched?", "", 1);
        assert_eq!(best[0].text, "The launch of the ship was on 26 October 1892.");
    }

    #[test]
    fn a_sentence_that_leans_on_the_one_before_brings_it_along() {
        let all = sentences("Eva Nansen said the name. It means “forward”. The rig was simple.");
        let best: Vec<_> = select_sentences(&all, "What does it mean, forward?", "", 3);
        assert_eq!(
            best.iter().map(|it| it.text.as_str()).collect::<Vec<_>>(),
            ["Eva Nansen said the name.", "It means “forward”."]
        );
    }

    #[test]
    fn without_a_word_in_common_the_beginning_is_quoted() {
        let all = sentences("One thing. Another thing. A third thing.");
        assert_eq!(select_sentences(&all, "xyzzy", "", 4).len(), 2);
        assert!(select_sentences(&[], "xyzzy", "", 4).is_empty());
    }
}
