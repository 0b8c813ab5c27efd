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
    /// How many of them come after the last one that the store knows. A crash leaves a few; nothing protects them
    /// from being cut off, and anybody who can write the file could have added them.
    pub unconfirmed: u64,
    /// What is wrong with the next one, or with the end.
    pub fault: Option<String>,
}

/// Reads a trail from its first line to its last and compares the end with the head in the store.
pub async fn verify(path: &Path, node: &str, store: &dyn Store) -> Result<Verification, String> {
    let kept = store.get(Table::Audit, node).await.map_err(|error| error.to_string())?;
    let kept = match kept {
        Some(row) => serde_json::from_value(row.value)
            .map_err(|_| format!("the store's head of the trail of {node} cannot be read"))?,
        None => Head::default(),
    };
    let unreadable = |error| format!("cannot read {}: {error}", path.display());
    let mut file = match File::open(path) {
        Ok(file) => Some(BufReader::new(file)),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => None,
        Err(error) => return Err(unreadable(error)),
    };
    let mut head = Head::default();
    let mut passed_kept = kept == head;
    let mut line = Vec::new();
    while let Some(file) = &mut file
        && file.read_until(b'\n', &mut line).map_err(unreadable)? > 0
    {
        let next = match line.strip_suffix(b"\n") {
            Some(whole) => head.after(&String::from_utf8_lossy(whole)),
            None => Err("it has no end: it is being written, or a crash has torn it, and the next start of the server takes it off".into()),
        };
        match next {
            Ok(next) => head = next,
            Err(fault) => {
                let fault = format!("line {}: {fault}", head.seq + 1);
                return Ok(found(&head, &kept, Some(fault)));
            }
        }
        passed_kept |= kept == head;
        line.clear();
    }
    let fault = (!passed_kept).then(|| {
        format!(
            "the trail ends at line {}, and the line {} that the store knows is not in it: it was cut off or replaced",
            head.seq, kept.seq
        )
    });
    Ok(found(&head, &kept, fault))
}

fn found(head: &Head, kept: &Head, fault: Option<String>) -> Verification {
    Verification { lines: head.seq, unconfirmed: head.seq.saturating_sub(kept.seq), fault }
}
