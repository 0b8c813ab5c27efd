//! Vectors for texts, computed in this process from a model in a folder.
//!
//! A folder with `tokenizer.json`, `model.safetensors` and `config.json` is either a BERT encoder or a static table of
//! one vector for each word piece; [`Model::load`] tells them apart. [`install()`] brings such a folder into the cache.
//! Nothing is fetched when a text is embedded, and this crate neither ranks nor stores what it computes.

mod bert;
mod files;
mod install;
mod matrix;
mod model;
mod simd;
mod tensors;
mod tiles;
mod tokenizer;
mod vectors;

pub use install::{
    DEFAULT_MODEL, InstallError, KnownModel, Progress, Source, cache_directory, find_installed, install,
};
pub use model::{LoadError, MAX_WORD_PIECES, Model};
