//! What a `tokenizer.json` says.

use std::collections::HashMap;

use serde::Deserialize;

use super::Normalizer;
use crate::files::TOKENIZER;
use crate::model::LoadError;

/// As much of `tokenizer.json` as matters. Cutting and padding are ours to decide.
#[derive(Deserialize)]
pub(super) struct File {
    #[serde(default)]
    normalizer: Option<NormalizerFile>,
    #[serde(default)]
    pre_tokenizer: Option<Kind>,
    #[serde(default)]
    post_processor: Option<PostProcessor>,
    pub(super) model: WordPieceModel,
}

#[derive(Deserialize)]
struct Kind {
    #[serde(rename = "type")]
    kind: String,
}

#[derive(Deserialize)]
struct NormalizerFile {
    #[serde(rename = "type")]
    kind: String,
    #[serde(default = "yes")]
    clean_text: bool,
    #[serde(default = "yes")]
    handle_chinese_chars: bool,
    #[serde(default)]
    strip_accents: Option<bool>,
    #[serde(default = "yes")]
    lowercase: bool,
}

#[derive(Deserialize)]
pub(super) struct WordPieceModel {
    #[serde(rename = "type", default)]
    kind: Option<String>,
    #[serde(default)]
    pub(super) unk_token: String,
    #[serde(default = "continued")]
    pub(super) continuing_subword_prefix: String,
    #[serde(default = "hundred")]
    pub(super) max_input_chars_per_word: usize,
    // Other models keep lists here; their kind is looked at first.
    #[serde(default, deserialize_with = "vocabulary")]
    pub(super) vocab: HashMap<String, u32>,
}

#[derive(Deserialize)]
#[serde(tag = "type")]
enum PostProcessor {
    TemplateProcessing {
        single: Vec<Part>,
        special_tokens: HashMap<String, SpecialToken>,
    },
    BertProcessing {
        sep: (String, u32),
        cls: (String, u32),
    },
    #[serde(other)]
    Unknown,
}

#[derive(Deserialize)]
enum Part {
    SpecialToken { id: String },
    Sequence {},
}

#[derive(Deserialize)]
struct SpecialToken {
    ids: Vec<u32>,
}

impl File {
    pub(super) fn check(&self) -> Result<(), LoadError> {
        let is = |kind: Option<&str>, expected: &str| kind.is_none_or(|kind| kind == expected);
        let unfit = if !is(self.model.kind.as_deref(), "WordPiece") {
            self.model.kind.clone()
        } else if !is(self.normalizer.as_ref().map(|it| it.kind.as_str()), "BertNormalizer") {
            self.normalizer.as_ref().map(|it| it.kind.clone())
        } else if !is(self.pre_tokenizer.as_ref().map(|it| it.kind.as_str()), "BertPreTokenizer") {
            self.pre_tokenizer.as_ref().map(|it| it.kind.clone())
        } else {
            None
        };
        match unfit {
            None => Ok(()),
            Some(kind) => Err(LoadError::unsupported(
                format!("a tokenizer of the kind `{kind}`"),
                "use a model with BERT's word pieces, such as all-MiniLM-L6-v2 or bge-small-en-v1.5"
                    .to_owned(),
            )),
        }
    }

    pub(super) fn normalizer(&self) -> Normalizer {
        match &self.normalizer {
            Some(it) => Normalizer {
                clean: it.clean_text,
                space_ideographs: it.handle_chinese_chars,
                strip_accents: it.strip_accents.unwrap_or(it.lowercase),
                lowercase: it.lowercase,
            },
            None => {
                Normalizer { clean: false, space_ideographs: false, strip_accents: false, lowercase: false }
            }
        }
    }

    pub(super) fn special_tokens(&self) -> Result<(Vec<u32>, Vec<u32>), LoadError> {
        let (mut before, mut after) = (Vec::new(), Vec::new());
        match &self.post_processor {
            None => {}
            Some(PostProcessor::BertProcessing { sep, cls }) => {
                before.push(cls.1);
                after.push(sep.1);
            }
            Some(PostProcessor::TemplateProcessing { single, special_tokens }) => {
                let mut seen_text = false;
                for part in single {
                    match part {
                        Part::Sequence {} => seen_text = true,
                        Part::SpecialToken { id } => {
                            let token = special_tokens.get(id).ok_or_else(|| {
                                LoadError::malformed(
                                    TOKENIZER,
                                    format!("its template uses an unknown special token `{id}`"),
                                )
                            })?;
                            if seen_text { &mut after } else { &mut before }.extend(&token.ids);
                        }
                    }
                }
            }
            Some(PostProcessor::Unknown) => {
                return Err(LoadError::unsupported(
                    "a tokenizer with an unknown post-processor".to_owned(),
                    "use a model with BERT's word pieces, such as all-MiniLM-L6-v2".to_owned(),
                ));
            }
        }
        if before.len() + after.len() > MAX_SPECIAL_TOKENS {
            return Err(LoadError::malformed(
                TOKENIZER,
                "its template has too many special tokens".to_owned(),
            ));
        }
        Ok((before, after))
    }
}

const MAX_SPECIAL_TOKENS: usize = 8;

fn vocabulary<'de, D: serde::Deserializer<'de>>(from: D) -> Result<HashMap<String, u32>, D::Error> {
    #[derive(Deserialize)]
    #[serde(untagged)]
    enum Vocabulary {
        Pieces(HashMap<String, u32>),
        Other(serde::de::IgnoredAny),
    }
    Ok(match Vocabulary::deserialize(from)? {
        Vocabulary::Pieces(pieces) => pieces,
        Vocabulary::Other(_) => HashMap::new(),
    })
}

fn yes() -> bool {
    true
}

fn continued() -> String {
    "##".to_owned()
}

fn hundred() -> usize {
    100
}
