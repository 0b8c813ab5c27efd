//! How lines are chained.

use quarterdeck_contracts::sha256;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

/// The hash that the first line follows.
pub const GENESIS: &str = "0000000000000000000000000000000000000000000000000000000000000000";

/// The end of a chain.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct ChainHead {
    /// The number of the last line; zero before the first.
    pub(super) seq: u64,
    pub(super) hash: String,
}

impl Default for ChainHead {
    fn default() -> Self {
        Self { seq: 0, hash: GENESIS.to_owned() }
    }
}

impl ChainHead {
    /// Makes the next line. Its hash covers the text before it, the hash of the line before included, so it stands
    /// last.
    pub(super) fn line(&self, fields: &Map<String, Value>) -> (String, Self) {
        let seq = self.seq + 1;
        let mut line = self.beginning();
        for (name, value) in fields {
            line.push(',');
            line.push_str(&Value::String(name.clone()).to_string());
            line.push(':');
            line.push_str(&value.to_string());
        }
        let hash = sha256(line.as_bytes());
        line.push_str(&format!(",\"hash\":\"{hash}\"}}"));
        (line, Self { seq, hash })
    }

    /// The beginning of the next line, which is the same for any content.
    pub(super) fn beginning(&self) -> String {
        format!("{{\"seq\":{},\"prev\":\"{}\"", self.seq + 1, self.hash)
    }

    /// The head after a line, or what is wrong with it.
    pub(super) fn after(&self, line: &str) -> Result<Self, String> {
        let (seq, prev, next) = parts(line).ok_or("it is not a line of the audit trail")?;
        if seq != self.seq + 1 {
            return Err(format!(
                "it is number {seq}, and number {} was expected: lines are missing",
                self.seq + 1
            ));
        }
        if prev != self.hash {
            return Err(
                "it does not follow the line before it: a line was changed, replaced or removed".into()
            );
        }
        Ok(next)
    }
}

/// Number, hash of the line before and the head after a line whose own hash is right.
pub(super) fn parts(line: &str) -> Option<(u64, String, ChainHead)> {
    /// The text between a line's content and its end: `,"hash":"<64>"}`.
    const TAIL: usize = 9 + 64 + 2;
    let split = line.len().checked_sub(TAIL)?;
    let (content, tail) = (line.get(..split)?, line.get(split..)?);
    let hash = tail.strip_prefix(",\"hash\":\"")?.strip_suffix("\"}")?;
    if sha256(content.as_bytes()) != hash {
        return None;
    }
    let value: Value = serde_json::from_str(line).ok()?;
    let seq = value.get("seq")?.as_u64()?;
    let prev = value.get("prev")?.as_str()?.to_owned();
    Some((seq, prev, ChainHead { seq, hash: hash.to_owned() }))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn fields(value: Value) -> Map<String, Value> {
        value.as_object().cloned().unwrap_or_default()
    }

    #[test]
    fn a_line_follows_the_one_before_and_no_other() {
        let start = ChainHead::default();
        let (first, after_first) = start.line(&fields(json!({ "event": "a" })));
        let (second, _) = after_first.line(&fields(json!({ "event": "b" })));
        assert_eq!(start.after(&first), Ok(after_first.clone()));
        assert!(after_first.after(&second).is_ok());
        assert!(start.after(&second).unwrap_err().contains("lines are missing"));
        assert!(after_first.after(&first).is_err());
    }

    #[test]
    fn any_changed_byte_is_seen() {
        let (line, _) = ChainHead::default().line(&fields(json!({ "event": "é", "n": 1 })));
        for index in 0..line.len() {
            let mut bytes = line.clone().into_bytes();
            bytes[index] ^= 1;
            if let Ok(changed) = String::from_utf8(bytes) {
                assert!(ChainHead::default().after(&changed).is_err(), "byte {index}");
            }
        }
    }
}
