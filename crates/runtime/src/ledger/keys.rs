//! What makes two calls the same.

use std::fmt::Write;
use std::hash::{BuildHasher, Hash, Hasher};
use std::ops::Deref;
use std::sync::{Arc, LazyLock};

use quarterdeck_contracts::write_canonical_json;
use serde_json::Value;
use sha2::{Digest, Sha256};

/// Tool and canonical arguments as one text: what makes two calls equal. It is long, and looked up several times for each
/// call, so it is hashed once.
#[derive(Debug, Clone)]
pub(crate) struct CallContent {
    text: Arc<str>,
    hash: u64,
}

impl CallContent {
    pub(crate) fn new(tool: &str, args: &Value) -> Self {
        let mut text = String::with_capacity(tool.len() + 512);
        text.push_str(tool);
        // No tool's name holds a line break, so no two pairs share a text.
        text.push('\n');
        write_canonical_json(&mut text, args);
        text.as_str().into()
    }

    pub(crate) fn text(&self) -> &Arc<str> {
        &self.text
    }
}

impl From<&str> for CallContent {
    fn from(text: &str) -> Self {
        /// Random, so that a client cannot choose calls whose hashes are equal.
        static SEED: LazyLock<foldhash::fast::RandomState> = LazyLock::new(Default::default);
        Self { text: text.into(), hash: SEED.hash_one(text) }
    }
}

impl Deref for CallContent {
    type Target = str;

    fn deref(&self) -> &str {
        &self.text
    }
}

impl PartialEq for CallContent {
    fn eq(&self, other: &Self) -> bool {
        self.hash == other.hash && self.text == other.text
    }
}

impl Eq for CallContent {}

impl Hash for CallContent {
    fn hash<H: Hasher>(&self, state: &mut H) {
        state.write_u64(self.hash);
    }
}

/// `hash:<turn>:<first 16 hex digits of SHA-256 over canonical {tool, args, turn}>`, and which of several equal
/// calls it is when the tool means each of them.
pub(crate) fn hash_key(content: &str, turn: u64, nth: u32) -> Arc<str> {
    let (tool, args) = content.split_once('\n').unwrap_or((content, "null"));
    let mut hasher = Sha256::new();
    // The canonical form of the object, without building it: its keys are in their order already.
    hasher.update(b"{\"args\":");
    hasher.update(args.as_bytes());
    hasher.update(b",\"tool\":\"");
    hasher.update(tool.as_bytes());
    hasher.update(b"\",\"turn\":");
    hasher.update(turn.to_string().as_bytes());
    hasher.update(b"}");
    let mut key = format!("hash:{turn}:");
    for byte in &hasher.finalize()[..8] {
        // Writing to a string cannot fail.
        let _ = write!(key, "{byte:02x}");
    }
    if nth > 0 {
        let _ = write!(key, "#{}", nth + 1);
    }
    key.into()
}

#[cfg(test)]
mod tests {
    use quarterdeck_contracts::{canonical_json, sha256};
    use serde_json::json;

    use super::*;

    #[test]
    fn the_key_is_the_hash_of_the_canonical_object() {
        let args = json!({ "b": 1.0, "a": "é" });
        let whole = canonical_json(&json!({ "tool": "book", "args": args, "turn": 7 }));
        let key = hash_key(&CallContent::new("book", &args), 7, 0);
        assert_eq!(*key, format!("hash:7:{}", &sha256(whole.as_bytes())[..16]));
    }

    #[test]
    fn equal_arguments_make_equal_content_however_they_are_written() {
        assert_eq!(
            CallContent::new("t", &json!({ "a": 1, "b": [2.0] })),
            CallContent::new("t", &json!({ "b": [2], "a": 1.0 }))
        );
        assert_ne!(CallContent::new("t", &json!({ "a": 1 })), CallContent::new("u", &json!({ "a": 1 })));
    }
}
