//! Whether a trail is whole.

use std::fs::File;
use std::io::{BufRead, BufReader};
use std::path::Path;

use quarterdeck_contracts::{Store, Table};
use serde::Serialize;

use super::chain::Head;

/// What was found in a trail.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Verification {
    /// How many lines are sound, from the first on.
    pub lines: u64,
    /// What is wrong with the next one, or with the end.
    pub fault: Option<String>,
}

/// Reads a trail from its first line to its last and compares the end with the head in the store.
pub async fn verify(path: &Path, node: &str, store: &dyn Store) -> Result<Verification, String> {
    let mut head = Head::default();
    let kept = store.get(Table::Audit, node).await.map_err(|error| error.to_string())?;
    let kept: Option<Head> = kept.and_then(|row| serde_json::from_value(row.value).ok());
    let mut passed_kept = kept.as_ref().is_none_or(|kept| *kept == head);
    let file = match File::open(path) {
        Ok(file) => Some(file),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => None,
        Err(error) => return Err(format!("cannot read {}: {error}", path.display())),
    };
    for line in file.into_iter().flat_map(|file| BufReader::new(file).split(b'\n')) {
        let line = line.map_err(|error| format!("cannot read {}: {error}", path.display()))?;
        let line = String::from_utf8_lossy(&line);
        match head.after(&line) {
            Ok(next) => head = next,
            Err(fault) => {
                let fault = format!("line {}: {fault}", head.seq + 1);
                return Ok(Verification { lines: head.seq, fault: Some(fault) });
            }
        }
        passed_kept |= kept.as_ref() == Some(&head);
    }
    let fault = (!passed_kept).then(|| match &kept {
        Some(kept) => format!(
            "the trail ends at line {}, and the store says it had {}: it was cut off or replaced",
            head.seq, kept.seq
        ),
        None => String::new(),
    });
    Ok(Verification { lines: head.seq, fault })
}
