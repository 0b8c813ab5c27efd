//! The large corpora that lie beside the repository on some machines and are not part of it.

use std::path::{Path, PathBuf};

use serde_json::Value;

/// The rows of a corpus such as `schemas/corpus.jsonl`, or `None` with a word on standard error when this machine
/// does not have it. `QUARTERDECK_FIXTURES` names the folder when it is not `../shared/fixtures`.
///
/// # Panics
///
/// When the corpus is there but cannot be read: a test must not pass because its input was broken.
pub fn jsonl(name: &str) -> Option<Vec<Value>> {
    let path = corpus(name)?;
    let text = std::fs::read_to_string(&path).expect("a corpus that exists is readable");
    let rows = text.lines().filter(|line| !line.trim().is_empty());
    Some(rows.map(|line| serde_json::from_str(line).expect("a corpus has one JSON value a line")).collect())
}

/// Where a corpus lies, be it a file or a folder such as `wire/openai-chat`, or `None` with a word on standard error.
#[expect(clippy::print_stderr, reason = "a test that had nothing to judge must say so")]
pub fn corpus(name: &str) -> Option<PathBuf> {
    let path = folder().join(name);
    if !path.exists() {
        eprintln!("corpus {name} is not on this machine; only the cases in the repository were run");
        return None;
    }
    Some(path)
}

#[expect(clippy::disallowed_methods, reason = "the corpora are not part of the repository")]
fn folder() -> PathBuf {
    match std::env::var_os("QUARTERDECK_FIXTURES") {
        Some(folder) => folder.into(),
        None => Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared/fixtures"),
    }
}
