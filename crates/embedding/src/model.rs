//! One loader for both kinds of model.

use std::io;
use std::path::{Path, PathBuf};

use quarterdeck_contracts::{EmbedError, Embedder, EmbeddingModel};
use serde::Deserialize;
use serde_json::Value;
use sha2::{Digest, Sha256};

use crate::bert::{Bert, BertConfig};
use crate::files::{self, CONFIG, POOLING, TOKENIZER, WEIGHTS};
use crate::tensors::Tensors;
use crate::tokenizer::Tokenizer;
use crate::vectors::normalise;

/// Where a text is cut, its special tokens included. The caller embeds longer texts in parts.
pub const MAX_WORD_PIECES: usize = 256;

/// Rows that are computed together. More would only push each other out of the cache.
const BATCH: usize = 256;

/// Threads may share it; each call computes on the thread that makes it.
pub struct Model {
    about: EmbeddingModel,
    tokenizer: Tokenizer,
    kind: Kind,
}

enum Kind {
    Encoder { bert: Box<Bert>, pooling: Pooling },
    Table(Vec<f32>),
}

/// Which of an encoder's vectors stand for the text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Pooling {
    Mean,
    /// The first one, as the bge models were trained.
    First,
}

#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum LoadError {
    #[error(
        "{} has no `{file}`: a model folder holds tokenizer.json, model.safetensors and config.json; install the model \
         again or copy the whole folder",
        folder.display()
    )]
    Missing { folder: PathBuf, file: &'static str },
    #[error("{} cannot be read: check that it is a file which this user may read", path.display())]
    Read { path: PathBuf, source: io::Error },
    #[error("{} is larger than {limit} bytes: use a smaller model, such as all-MiniLM-L6-v2", path.display())]
    TooLarge { path: PathBuf, limit: u64 },
    #[error("`{file}` is damaged or does not belong to this model ({reason}): install the model again")]
    Malformed { file: &'static str, reason: String },
    #[error("the model is not supported ({what}): {help}")]
    Unsupported { what: String, help: String },
}

impl LoadError {
    pub(crate) fn malformed(file: &'static str, reason: String) -> Self {
        Self::Malformed { file, reason }
    }

    pub(crate) fn unsupported(what: String, help: String) -> Self {
        Self::Unsupported { what, help }
    }
}

impl Model {
    /// Loads the model in a folder. Its name is the folder's.
    pub fn load(folder: &Path) -> Result<Self, LoadError> {
        let config: Value = parse(CONFIG, &files::read(folder, CONFIG)?)?;
        let tokenizer = Tokenizer::parse(&files::read(folder, TOKENIZER)?)?;
        let weights = files::read(folder, WEIGHTS)?;
        let tensors = Tensors::parse(&weights)?;
        let (kind, rows, dimension) = match table_of(&tensors) {
            Some((name, rows, size)) => load_table(&tensors, name, rows, size)?,
            None => load_encoder(folder, config, &tensors)?,
        };
        if tokenizer.highest as usize >= rows {
            let reason =
                format!("it has pieces up to {} where the weights have {rows} rows", tokenizer.highest);
            return Err(LoadError::malformed(TOKENIZER, reason));
        }
        let about =
            EmbeddingModel { name: name_of(folder), dimension, digest: hex(&Sha256::digest(&weights)) };
        Ok(Self { about, tokenizer, kind })
    }

    fn encode(&self, bert: &Bert, pooling: Pooling, texts: &[&str]) -> Result<Vec<Vec<f32>>, EmbedError> {
        let mut vectors = Vec::with_capacity(texts.len());
        let mut batch: Vec<Vec<u32>> = Vec::new();
        let mut rows = 0;
        for text in texts {
            let pieces = self.with_special_tokens(text, MAX_WORD_PIECES.min(bert.positions));
            if rows + pieces.len() > BATCH && !batch.is_empty() {
                pool(bert, pooling, &batch, &mut vectors)?;
                batch.clear();
                rows = 0;
            }
            rows += pieces.len();
            batch.push(pieces);
        }
        pool(bert, pooling, &batch, &mut vectors)?;
        Ok(vectors)
    }

    /// The pieces of a text with its special tokens; never empty.
    fn with_special_tokens(&self, text: &str, limit: usize) -> Vec<u32> {
        let Tokenizer { before, after, .. } = &self.tokenizer;
        let mut pieces = before.clone();
        pieces.extend(self.tokenizer.encode(text, limit.saturating_sub(before.len() + after.len())));
        pieces.extend(after);
        if pieces.is_empty() {
            pieces.push(self.tokenizer.unknown());
        }
        pieces.truncate(limit);
        pieces
    }

    /// The mean of the known pieces' vectors. A text without any has that of the unknown piece.
    fn look_up(&self, table: &[f32], text: &str) -> Result<Vec<f32>, EmbedError> {
        let size = self.about.dimension;
        let mut pieces = self.tokenizer.encode(text, MAX_WORD_PIECES);
        pieces.retain(|piece| !self.tokenizer.is_unknown(*piece));
        if pieces.is_empty() {
            pieces.push(self.tokenizer.unknown());
        }
        let mut vector = vec![0.0; size];
        for piece in pieces {
            add(&mut vector, &table[piece as usize * size..][..size]);
        }
        finish(vector)
    }
}

impl Embedder for Model {
    fn model(&self) -> &EmbeddingModel {
        &self.about
    }

    fn embed(&self, texts: &[&str]) -> Result<Vec<Vec<f32>>, EmbedError> {
        match &self.kind {
            Kind::Encoder { bert, pooling } => self.encode(bert, *pooling, texts),
            Kind::Table(table) => texts.iter().map(|text| self.look_up(table, text)).collect(),
        }
    }
}

impl std::fmt::Debug for Model {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Model").field("about", &self.about).finish_non_exhaustive()
    }
}

/// The tensor that makes a static table, its rows and its columns.
fn table_of(tensors: &Tensors<'_>) -> Option<(&'static str, usize, usize)> {
    ["embeddings", "embedding.weight"].into_iter().find_map(|name| match tensors.shape(name)?[..] {
        [rows, columns] => Some((name, rows, columns)),
        _ => None,
    })
}

fn load_table(
    tensors: &Tensors<'_>,
    name: &str,
    rows: usize,
    size: usize,
) -> Result<(Kind, usize, usize), LoadError> {
    // Weights or a mapping beside the table would change every vector.
    if let Some(other) = tensors.names().into_iter().find(|other| *other != name) {
        return Err(LoadError::unsupported(
            format!("a static table with a tensor `{other}` beside it"),
            "use a model whose table stands alone".to_owned(),
        ));
    }
    if size == 0 {
        return Err(LoadError::malformed(WEIGHTS, "its vectors have no values".to_owned()));
    }
    Ok((Kind::Table(tensors.floats(name, &[rows, size])?), rows, size))
}

fn load_encoder(
    folder: &Path,
    config: Value,
    tensors: &Tensors<'_>,
) -> Result<(Kind, usize, usize), LoadError> {
    let architectures = config.get("architectures").and_then(Value::as_array);
    let names: Vec<&str> = architectures.into_iter().flatten().filter_map(Value::as_str).collect();
    if !names.iter().any(|name| name.starts_with("Bert")) {
        return Err(LoadError::unsupported(
            format!("its architecture is {names:?}, and it is not a static table"),
            "use a BERT encoder, such as all-MiniLM-L6-v2, or a table named `embeddings` or `embedding.weight`"
                .to_owned(),
        ));
    }
    let config: BertConfig =
        serde_json::from_value(config).map_err(|error| LoadError::malformed(CONFIG, error.to_string()))?;
    let bert = Bert::load(&config, tensors)?;
    let (rows, size) = (bert.pieces, bert.size);
    Ok((Kind::Encoder { bert: Box::new(bert), pooling: pooling_of(folder)? }, rows, size))
}

/// The mean, unless the folder says otherwise.
fn pooling_of(folder: &Path) -> Result<Pooling, LoadError> {
    #[derive(Deserialize)]
    struct File {
        #[serde(default)]
        pooling_mode_cls_token: bool,
        #[serde(default)]
        pooling_mode_mean_tokens: bool,
    }
    let bytes = match files::read(folder, POOLING) {
        Err(LoadError::Missing { .. }) => return Ok(Pooling::Mean),
        bytes => bytes?,
    };
    let file: File = parse(POOLING, &bytes)?;
    match (file.pooling_mode_cls_token, file.pooling_mode_mean_tokens) {
        (true, false) => Ok(Pooling::First),
        (false, true) => Ok(Pooling::Mean),
        _ => Err(LoadError::unsupported(
            "it pools neither by the mean nor by the first piece".to_owned(),
            "use a model with mean pooling, such as all-MiniLM-L6-v2".to_owned(),
        )),
    }
}

fn pool(
    bert: &Bert,
    pooling: Pooling,
    batch: &[Vec<u32>],
    vectors: &mut Vec<Vec<f32>>,
) -> Result<(), EmbedError> {
    let hidden = bert.run(batch);
    let mut rows = hidden.chunks_exact(bert.size);
    for text in batch {
        let mut vector = vec![0.0; bert.size];
        for (index, row) in rows.by_ref().take(text.len()).enumerate() {
            if index == 0 || pooling == Pooling::Mean {
                add(&mut vector, row);
            }
        }
        vectors.push(finish(vector)?);
    }
    Ok(())
}

fn add(sum: &mut [f32], row: &[f32]) {
    for (sum, value) in sum.iter_mut().zip(row) {
        *sum += value;
    }
}

/// Length one takes the place of dividing by the count. Pieces that cancel each other out have no direction, and get
/// one that means nothing but is always the same.
fn finish(mut vector: Vec<f32>) -> Result<Vec<f32>, EmbedError> {
    if vector.iter().any(|value| !value.is_finite()) {
        return Err(EmbedError("it gave a value that is not a number; install the model again".to_owned()));
    }
    if !normalise(&mut vector) {
        vector.fill(0.0);
        vector[0] = 1.0;
    }
    Ok(vector)
}

fn parse<T: for<'de> Deserialize<'de>>(file: &'static str, bytes: &[u8]) -> Result<T, LoadError> {
    serde_json::from_slice(bytes).map_err(|error| LoadError::malformed(file, error.to_string()))
}

fn name_of(folder: &Path) -> String {
    let whole = folder.canonicalize();
    let folder = whole.as_deref().unwrap_or(folder);
    folder.file_name().map_or_else(|| "model".to_owned(), |name| name.to_string_lossy().into_owned())
}

pub(crate) fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}
