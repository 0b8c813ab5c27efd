//! From tokens to text, by the `tokenizer.json` of a byte-pair encoding with bytes to fall back on.

use std::collections::HashMap;
use std::fs::File;
use std::io::Read;
use std::path::Path;

use serde::Deserialize;

use super::LoadError;

pub(crate) const TOKENIZER: &str = "tokenizer.json";
const MAX_TOKENIZER_BYTES: u64 = 16 << 20;
const MAX_TOKENS: u32 = 1 << 20;
/// Stands for a space in a token.
const SPACE: char = '\u{2581}';

pub(crate) struct Vocabulary(Vec<Piece>);

#[derive(Clone, Debug, PartialEq, Eq)]
enum Piece {
    Text(String),
    /// One byte of a character that has no token of its own.
    Byte(u8),
    /// The beginning, the end, and what else is never spoken.
    Control,
}

#[derive(Deserialize)]
struct TokenizerFile {
    #[serde(default)]
    added_tokens: Vec<AddedToken>,
    model: TokenizerModel,
}

#[derive(Deserialize)]
struct AddedToken {
    id: u32,
    special: bool,
}

#[derive(Deserialize)]
struct TokenizerModel {
    vocab: HashMap<String, u32>,
}

impl Vocabulary {
    pub(crate) fn load(folder: &Path) -> Result<Self, LoadError> {
        let path = folder.join(TOKENIZER);
        let unreadable = |source| LoadError::Read { path: path.clone(), source };
        let mut json = Vec::new();
        let file = File::open(&path).map_err(unreadable)?;
        file.take(MAX_TOKENIZER_BYTES + 1).read_to_end(&mut json).map_err(unreadable)?;
        if json.len() as u64 > MAX_TOKENIZER_BYTES {
            return Err(LoadError::TooLarge { path, limit: MAX_TOKENIZER_BYTES });
        }
        Self::parse(&json).map_err(|reason| LoadError::NotMoonshine {
            folder: folder.to_owned(),
            file: TOKENIZER,
            reason,
        })
    }

    fn parse(json: &[u8]) -> Result<Self, String> {
        let file: TokenizerFile = serde_json::from_slice(json).map_err(|error| error.to_string())?;
        let last = file.model.vocab.values().copied().max().unwrap_or(0);
        if last > MAX_TOKENS {
            return Err(format!("it has a token with the number {last}"));
        }
        // What has no entry is not spoken either.
        let mut pieces = vec![Piece::Control; last as usize + 1];
        for (text, id) in file.model.vocab {
            pieces[id as usize] = match byte(&text) {
                Some(byte) => Piece::Byte(byte),
                None => Piece::Text(text.replace(SPACE, " ")),
            };
        }
        for token in file.added_tokens.iter().filter(|token| token.special) {
            if let Some(piece) = pieces.get_mut(token.id as usize) {
                *piece = Piece::Control;
            }
        }
        Ok(Self(pieces))
    }

    /// The text of tokens, without white space around it and without control characters.
    pub(crate) fn text(&self, tokens: &[u32]) -> String {
        let mut bytes = Vec::new();
        for token in tokens {
            match self.0.get(*token as usize) {
                Some(Piece::Text(text)) => bytes.extend_from_slice(text.as_bytes()),
                Some(Piece::Byte(byte)) => bytes.push(*byte),
                Some(Piece::Control) | None => {}
            }
        }
        let text = String::from_utf8_lossy(&bytes).replace(char::is_control, " ");
        text.trim().to_owned()
    }
}

/// The byte of a token such as `<0x0A>`.
fn byte(token: &str) -> Option<u8> {
    let digits = token.strip_prefix("<0x")?.strip_suffix('>')?;
    (digits.len() == 2).then(|| u8::from_str_radix(digits, 16).ok()).flatten()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn vocabulary() -> Vocabulary {
        Vocabulary::parse(
            r#"{ "added_tokens": [{ "id": 1, "content": "<s>", "special": true }, { "id": 90000, "content": "<<ST_0>>", "special": true }],
                 "model": { "vocab": { "<unk>": 0, "<s>": 1, "▁fresh": 2, "▁fi": 3, "<0xC3>": 4, "<0xA9>": 5, "sh": 6, "<0x0A>": 7 } } }"#
                .as_bytes(),
        )
        .unwrap()
    }

    #[test]
    fn pieces_become_words_and_bytes_become_characters() {
        assert_eq!(vocabulary().text(&[1, 2, 3, 6]), "fresh fish");
        assert_eq!(vocabulary().text(&[3, 4, 5]), "fi\u{e9}");
    }

    #[test]
    fn control_tokens_unknown_numbers_and_control_characters_are_not_text() {
        assert_eq!(vocabulary().text(&[1, 3, 7, 2, 90_000, 4_000_000_000]), "fi  fresh");
        assert_eq!(vocabulary().text(&[4]), "\u{fffd}", "half a character");
        assert_eq!(vocabulary().text(&[]), "");
    }

    #[test]
    fn a_token_with_a_huge_number_is_refused() {
        let refused = Vocabulary::parse(br#"{ "model": { "vocab": { "a": 4000000000 } } }"#);
        assert_eq!(refused.err().as_deref(), Some("it has a token with the number 4000000000"));
        assert!(Vocabulary::parse(b"{}").is_err());
    }
}
