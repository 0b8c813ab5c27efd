//! The files of a model folder, none read beyond its limit.

use std::fs::File;
use std::io::{self, Read};
use std::path::Path;

use crate::model::LoadError;

pub(crate) const TOKENIZER: &str = "tokenizer.json";
pub(crate) const WEIGHTS: &str = "model.safetensors";
pub(crate) const CONFIG: &str = "config.json";
/// How sentence-transformers says which vectors stand for the text.
pub(crate) const POOLING: &str = "1_Pooling/config.json";

/// The files that make a model, with the limit of each in bytes.
pub(crate) const REQUIRED: [(&str, u64); 3] = [(CONFIG, 1 << 20), (TOKENIZER, 64 << 20), (WEIGHTS, 2 << 30)];
/// Copied where there is one.
pub(crate) const OPTIONAL: (&str, u64) = (POOLING, 1 << 20);

pub(crate) fn read(folder: &Path, name: &'static str) -> Result<Vec<u8>, LoadError> {
    let limit =
        REQUIRED.iter().chain([&OPTIONAL]).find(|(known, _)| *known == name).map_or(0, |(_, limit)| *limit);
    let path = folder.join(name);
    let failed = |source: io::Error| match source.kind() {
        io::ErrorKind::NotFound => LoadError::Missing { folder: folder.to_owned(), file: name },
        _ => LoadError::Read { path: path.clone(), source },
    };
    let file = File::open(&path).map_err(failed)?;
    let mut bytes = Vec::new();
    file.take(limit + 1).read_to_end(&mut bytes).map_err(failed)?;
    if bytes.len() as u64 > limit {
        return Err(LoadError::TooLarge { path, limit });
    }
    Ok(bytes)
}
