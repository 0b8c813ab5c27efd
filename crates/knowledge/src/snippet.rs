//! What to quote of a record: whole sentences where the words of the question stand.

use std::collections::BTreeMap;
use std::ops::Range;

use quarterdeck_contracts::KnowledgeRecord;

use crate::index::{Index, Query, Term};
use crate::passages::passages;
use crate::text::{each_word, plain, sentences};

/// How much of a text snippets are taken from. Beyond it a record is still found, but not quoted.
const MAX_QUOTED_BYTES: usize = 1024 * 1024;
const MAX_MATCHED_WORDS: usize = 32;

/// What a search result shows of its record.
pub(crate) struct Highlights {
    pub(crate) snippet: Option<String>,
    pub(crate) matched: Vec<String>,
}

/// Finds the words of a question in a record, and the sentences to show. `passage` is the nearest in meaning.
pub(crate) fn highlight(
    index: &Index,
    query: &Query,
    record: &KnowledgeRecord,
    passage: Option<usize>,
    limit: Option<usize>,
) -> Highlights {
    let mut highlighter = Highlighter { index, weights: weights(index, query), matched: BTreeMap::new() };
    let end = record.text.floor_char_boundary(MAX_QUOTED_BYTES.min(record.text.len()));
    let text = plain(&record.text[..end]);
    highlighter.match_terms(&record.title);
    record.tags.iter().for_each(|tag| {
        highlighter.match_terms(tag);
    });
    let places: Vec<_> = sentences(&text);
    let found: Vec<_> = places.iter().map(|place| highlighter.match_terms(&text[place.clone()])).collect();
    let nearest = passage.and_then(|number| passages(&text).get(number).cloned());
    let snippet = limit.filter(|limit| *limit > 0).and_then(|limit| {
        let sentences: Vec<_> = places.into_iter().zip(found).collect();
        highlighter.snippet(&text, &record.title, &sentences, nearest, limit)
    });
    let matched = highlighter.matched.into_values().map(|(_, word)| word).take(MAX_MATCHED_WORDS).collect();
    Highlights { snippet, matched }
}

fn weights(index: &Index, query: &Query) -> BTreeMap<Term, f32> {
    query.weights().map(|(term, weight)| (term, weight * index.idf(index.frequency(term)))).collect()
}

struct Highlighter<'a> {
    index: &'a Index,
    weights: BTreeMap<Term, f32>,
    matched: BTreeMap<String, (Term, String)>,
}

type Sentence = (Range<usize>, Vec<Term>);

impl Highlighter<'_> {
    /// The stems of the question in a text; how they are written there is kept in `matched`.
    fn match_terms(&mut self, text: &str) -> Vec<Term> {
        let mut found = Vec::new();
        each_word(text, |word| {
            let Some(term) = self.index.term(word.folded).filter(|term| self.weights.contains_key(term))
            else {
                return;
            };
            if !found.contains(&term) {
                found.push(term);
            }
            if !self.matched.contains_key(word.folded) {
                self.matched.insert(word.folded.to_owned(), (term, text[word.place].to_owned()));
            }
        });
        found
    }

    fn snippet(
        &self,
        text: &str,
        title: &str,
        sentences: &[Sentence],
        nearest: Option<Range<usize>>,
        limit: usize,
    ) -> Option<String> {
        // The heading that gave the title says nothing new.
        let sentences = match sentences {
            [(place, _), rest @ ..] if !rest.is_empty() && text[place.clone()] == *title => rest,
            all => all,
        };
        let mut best: Option<(f32, usize, usize)> = None;
        for begin in 0..sentences.len() {
            let (weight, end) = self.window(text, &sentences[begin..], limit);
            let is_near = nearest.as_ref().is_some_and(|near| near.contains(&sentences[begin].0.start));
            // Half a rare word decides between passages that say the same words.
            let weight = weight + if is_near { 2.0 } else { 0.0 };
            if best.is_none_or(|(other, ..)| weight > other + 1e-6) {
                best = Some((weight, begin, begin + end));
            }
        }
        let (_, begin, end) = best?;
        if end > begin {
            let quoted: Vec<&str> = sentences[begin..end]
                .iter()
                .flat_map(|(place, _)| text[place.clone()].split_whitespace())
                .collect();
            return Some(quoted.join(" "));
        }
        Some(self.cut(&text[sentences[begin].0.clone()], limit))
    }

    /// The score of as many sentences as fit, from the first on, and how many those are. A first sentence that does not
    /// fit is scored whole, and cut later.
    fn window(&self, text: &str, sentences: &[Sentence], limit: usize) -> (f32, usize) {
        let mut seen: Vec<Term> = Vec::new();
        let (mut weight, mut length) = (0.0, 0);
        for (at, (place, terms)) in sentences.iter().enumerate() {
            length += length_of(&text[place.clone()]) + usize::from(at > 0);
            if length > limit && at > 0 {
                return (weight, at);
            }
            for term in terms.iter().filter(|term| self.weights.contains_key(term)) {
                if !seen.contains(term) {
                    seen.push(*term);
                    // Words near the beginning of a snippet are read first.
                    weight += self.weights[term] * if at == 0 { 1.0 } else { 0.95 };
                }
            }
            if length > limit {
                return (weight, 0);
            }
        }
        (weight, sentences.len())
    }

    /// Part of a sentence that is too long, with the first word of the question in it.
    fn cut(&self, sentence: &str, limit: usize) -> String {
        let mut first = None;
        each_word(sentence, |word| {
            let is_asked = self.index.term(word.folded).is_some_and(|term| self.weights.contains_key(&term));
            if first.is_none() && is_asked {
                first = Some(word.place.start);
            }
        });
        let words: Vec<&str> = sentence.split_whitespace().collect();
        let before = sentence[..first.unwrap_or(0)].split_whitespace().count();
        // A third of the room is for what leads up to the word.
        let mut begin = before.min(words.len().saturating_sub(1));
        let mut room = limit / 3;
        while begin > 0 && length_of(words[begin - 1]) < room {
            room -= length_of(words[begin - 1]) + 1;
            begin -= 1;
        }
        let mut cut = if begin > 0 { "…".to_owned() } else { String::new() };
        let mut length = cut.chars().count();
        for (at, word) in words[begin..].iter().enumerate() {
            let space = usize::from(at > 0);
            // One character stays free for the mark that something follows.
            if length + space + length_of(word) + 1 > limit {
                if at == 0 {
                    cut.extend(word.chars().take(limit.saturating_sub(length + 1)));
                }
                cut.push('…');
                break;
            }
            cut.push_str(if at > 0 { " " } else { "" });
            cut.push_str(word);
            length += space + length_of(word);
        }
        cut.chars().take(limit).collect()
    }
}

fn length_of(text: &str) -> usize {
    text.chars().count()
}
