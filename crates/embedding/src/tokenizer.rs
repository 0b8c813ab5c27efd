//! BERT's tokenizer: `tokenizer.json` with a `WordPiece` model.
//!
//! Text is read from the front and only as far as needed, so that a long one costs no more than its first pieces.
//! Special tokens such as `[SEP]` in a text are ordinary characters: nothing in a text changes how it is read.
//!
//! The crate `tokenizers` (0.23 without its default features) gives the same ids for 7,428 texts once its added tokens
//! are removed, but costs 128 seconds of CPU to build with 38 new crates, 4 MB of binary, eight times the time per
//! text, and seconds instead of microseconds for a text of 5 MB, which it splits before it cuts.

mod file;

use std::collections::HashMap;

use unicode_general_category::{GeneralCategory as Category, get_general_category};
use unicode_normalization::UnicodeNormalization;

use crate::files::TOKENIZER;
use crate::model::LoadError;

use file::File;

pub(crate) struct Tokenizer {
    /// Pieces that begin a word, and those that go on with one.
    first: HashMap<Box<str>, u32>,
    next: HashMap<Box<str>, u32>,
    unknown: u32,
    max_word_chars: usize,
    normalizer: Normalizer,
    /// The special tokens around a text.
    pub(crate) before: Vec<u32>,
    pub(crate) after: Vec<u32>,
    /// The highest id.
    pub(crate) highest: u32,
}

#[derive(Debug, Clone, Copy)]
struct Normalizer {
    clean: bool,
    space_ideographs: bool,
    strip_accents: bool,
    lowercase: bool,
}

impl Tokenizer {
    pub(crate) fn parse(bytes: &[u8]) -> Result<Self, LoadError> {
        let file: File = serde_json::from_slice(bytes)
            .map_err(|error| LoadError::malformed(TOKENIZER, error.to_string()))?;
        file.check()?;
        let prefix = file.model.continuing_subword_prefix.as_str();
        let (mut first, mut next) = (HashMap::new(), HashMap::new());
        let highest = file.model.vocab.values().copied().max().unwrap_or_default();
        let unknown = file.model.vocab.get(&file.model.unk_token).copied().ok_or_else(|| {
            let reason = format!("its vocabulary has no `{}` for unknown words", file.model.unk_token);
            LoadError::malformed(TOKENIZER, reason)
        })?;
        let (before, after) = file.special_tokens()?;
        let highest = before.iter().chain(&after).copied().fold(highest, u32::max);
        let normalizer = file.normalizer();
        for (piece, id) in &file.model.vocab {
            match piece.strip_prefix(prefix) {
                Some(rest) if !rest.is_empty() => next.insert(rest.into(), *id),
                // `##` itself is a word of two punctuation marks, which are never read together.
                _ => first.insert(piece.as_str().into(), *id),
            };
        }
        let max_word_chars = file.model.max_input_chars_per_word.min(MAX_WORD_CHARS);
        Ok(Self { first, next, unknown, max_word_chars, normalizer, before, after, highest })
    }

    /// The pieces of a text without special tokens, at most `limit` of them.
    pub(crate) fn encode(&self, text: &str, limit: usize) -> Vec<u32> {
        let mut pieces = Vec::new();
        let mut word = Word::default();
        for character in self.normalizer.characters(text) {
            if character.is_whitespace() || is_punctuation(character) {
                self.split(&mut word, &mut pieces);
                if is_punctuation(character) {
                    word.push(character, self.max_word_chars);
                    self.split(&mut word, &mut pieces);
                }
            } else {
                word.push(character, self.max_word_chars);
            }
            if pieces.len() >= limit {
                break;
            }
        }
        self.split(&mut word, &mut pieces);
        pieces.truncate(limit);
        pieces
    }

    /// Whether a piece stands for what is not in the vocabulary.
    pub(crate) fn is_unknown(&self, piece: u32) -> bool {
        piece == self.unknown
    }

    pub(crate) fn unknown(&self) -> u32 {
        self.unknown
    }

    /// Splits a finished word into the longest pieces, from its beginning, and empties it.
    fn split(&self, word: &mut Word, pieces: &mut Vec<u32>) {
        let begin = pieces.len();
        let mut rest = word.text.as_str();
        if word.characters > self.max_word_chars {
            pieces.push(self.unknown);
            rest = "";
        }
        while !rest.is_empty() {
            let known = if pieces.len() == begin { &self.first } else { &self.next };
            let ends = rest.char_indices().rev().map(|(at, character)| at + character.len_utf8());
            let Some((end, id)) = ends.into_iter().find_map(|end| Some((end, *known.get(&rest[..end])?)))
            else {
                // One part that is unknown makes the whole word unknown.
                pieces.truncate(begin);
                pieces.push(self.unknown);
                break;
            };
            pieces.push(id);
            rest = &rest[end..];
        }
        word.text.clear();
        word.characters = 0;
    }
}

/// A word is looked up in quadratic time, so no file may ask for long ones.
const MAX_WORD_CHARS: usize = 200;

#[derive(Default)]
struct Word {
    text: String,
    characters: usize,
}

impl Word {
    /// Characters beyond the limit are only counted.
    fn push(&mut self, character: char, max_chars: usize) {
        if self.characters < max_chars {
            self.text.push(character);
        }
        self.characters += 1;
    }
}

impl Normalizer {
    fn characters(self, text: &str) -> Box<dyn Iterator<Item = char> + '_> {
        let cleaned = text
            .chars()
            .filter_map(move |character| if self.clean { clean(character) } else { Some(character) });
        let spaced = cleaned.flat_map(move |character| {
            let space = (self.space_ideographs && is_ideograph(character)).then_some(' ');
            space.into_iter().chain([character]).chain(space)
        });
        let stripped: Box<dyn Iterator<Item = char>> = if self.strip_accents {
            Box::new(
                spaced.nfd().filter(|character| get_general_category(*character) != Category::NonspacingMark),
            )
        } else {
            Box::new(spaced)
        };
        if self.lowercase { Box::new(stripped.flat_map(char::to_lowercase)) } else { stripped }
    }
}

fn clean(character: char) -> Option<char> {
    match character {
        '\t' | '\n' | '\r' => Some(' '),
        '\0' | '\u{fffd}' => None,
        _ if is_control(character) => None,
        _ if character.is_whitespace() => Some(' '),
        _ => Some(character),
    }
}

fn is_control(character: char) -> bool {
    matches!(
        get_general_category(character),
        Category::Control | Category::Format | Category::PrivateUse | Category::Surrogate
    )
}

fn is_punctuation(character: char) -> bool {
    character.is_ascii_punctuation()
        || matches!(
            get_general_category(character),
            Category::ConnectorPunctuation
                | Category::DashPunctuation
                | Category::OpenPunctuation
                | Category::ClosePunctuation
                | Category::InitialPunctuation
                | Category::FinalPunctuation
                | Category::OtherPunctuation
        )
}

fn is_ideograph(character: char) -> bool {
    matches!(u32::from(character),
        0x4e00..=0x9fff | 0x3400..=0x4dbf | 0x20000..=0x2a6df | 0x2a700..=0x2b73f | 0x2b740..=0x2b81f
        | 0x2b920..=0x2ceaf | 0xf900..=0xfaff | 0x2f800..=0x2fa1f)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pieces(text: &str, limit: usize) -> Vec<u32> {
        let file = r###"{
            "normalizer": {"type": "BertNormalizer"},
            "pre_tokenizer": {"type": "BertPreTokenizer"},
            "post_processor": {"type": "BertProcessing", "sep": ["[SEP]", 2], "cls": ["[CLS]", 1]},
            "model": {"type": "WordPiece", "unk_token": "[UNK]", "vocab":
                {"[UNK]": 0, "[CLS]": 1, "[SEP]": 2, "deck": 3, "quarter": 4, "##deck": 5, "##s": 6, ".": 7, "cafe": 8,
                 "中": 9, "[": 10, "]": 11, "sep": 12}}
        }"###;
        let pieces = Tokenizer::parse(file.as_bytes()).unwrap();
        assert_eq!((pieces.before.as_slice(), pieces.after.as_slice()), (&[1][..], &[2][..]));
        pieces.encode(text, limit)
    }

    #[test]
    fn words_split_into_the_longest_pieces() {
        assert_eq!(pieces("Quarterdecks deck.", 9), [4, 5, 6, 3, 7]);
    }

    #[test]
    fn case_accents_and_control_characters_do_not_matter() {
        assert_eq!(pieces("CAFÉ\u{200b} \0cafe\u{301}\t\r\n", 9), [8, 8]);
    }

    #[test]
    fn ideographs_stand_alone() {
        assert_eq!(pieces("deck中中quarter", 9), [3, 9, 9, 4]);
    }

    #[test]
    fn a_word_with_an_unknown_part_is_unknown() {
        assert_eq!(pieces("deckx deck", 9), [0, 3]);
        assert_eq!(pieces(&"s".repeat(1000), 9), [0]);
    }

    #[test]
    fn special_tokens_in_a_text_are_characters() {
        assert_eq!(pieces("[SEP]", 9), [10, 12, 11]);
    }

    #[test]
    fn reading_stops_at_the_limit() {
        assert_eq!(pieces(&"deck ".repeat(1_000_000), 3), [3, 3, 3]);
        assert_eq!(pieces("quarterdecks", 2), [4, 5]);
        assert!(pieces("", 9).is_empty());
    }
}
