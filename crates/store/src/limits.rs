//! What every engine refuses, so that a change of engine changes nothing.

use quarterdeck_contracts::{Commit, MAX_KEY_BYTES, StoreError};
use serde_json::Value;

/// The JSON parser stops here, so a deeper value could be written but never read.
const MAX_DEPTH: usize = 127;

/// Refuses a commit whose values could not be read back, or whose keys do not fit an index.
pub(crate) fn check_limits(commit: &Commit) -> Result<(), StoreError> {
    let keys = commit.writes.iter().map(|write| &write.key);
    let keys = keys.chain(commit.checks.iter().map(|check| &check.key));
    let mut keys = keys.chain(commit.takes.iter().map(|take| &take.key));
    if keys.any(|key| key.len() > MAX_KEY_BYTES) {
        return Err(StoreError::Failed(format!("a key has more than {MAX_KEY_BYTES} bytes")));
    }
    let too_deep =
        commit.writes.iter().filter_map(|write| write.value.as_ref()).any(|value| !fits(value, MAX_DEPTH));
    if too_deep {
        return Err(StoreError::Failed(format!("a value is nested more than {MAX_DEPTH} levels deep")));
    }
    Ok(())
}

/// The recursion ends with `left`, however deep the value is.
fn fits(value: &Value, left: usize) -> bool {
    match value {
        Value::Array(items) => left > 0 && items.iter().all(|item| fits(item, left - 1)),
        Value::Object(members) => left > 0 && members.values().all(|member| fits(member, left - 1)),
        _ => true,
    }
}
