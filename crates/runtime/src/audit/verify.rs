//! Whether a log is whole. The command line and the deck both ask here.

use std::fs::File;
use std::io::BufReader;
use std::path::Path;
use std::time::Duration;

use quarterdeck_contracts::{DiskError, Store, Table};
use serde::Serialize;

use super::chain::ChainHead;
use super::gap;
use super::lines::{Ending, read_line};

#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Verification {
    /// How many lines are sound, from the first on.
    pub lines: u64,
    /// How many of them come after the last one that the store knows. A crash leaves a few, and a store that was put
    /// back from a backup more; nothing protects them from being cut off, and any process that can write the file could
    /// have added them.
    pub unconfirmed: u64,
    /// What is wrong, and where.
    pub fault: Option<String>,
}

/// How often a last line without an end is looked at again: it may just be being written.
const MAX_ATTEMPTS: u32 = 4;
const RETRY_DELAY: Duration = Duration::from_millis(100);

/// Reads a log from its first line to its last, compares the end with the head in the store, and takes the
/// log's own gap lines at their word. It blocks while it reads.
pub async fn verify(path: &Path, node: &str, store: &dyn Store) -> Result<Verification, String> {
    let mut tries = 1;
    loop {
        let (found, is_unfinished) = look(path, node, store).await?;
        if !is_unfinished || tries == MAX_ATTEMPTS {
            return Ok(found);
        }
        tries += 1;
        std::thread::sleep(RETRY_DELAY);
    }
}

/// What is found at this moment, and whether the last line may still be being written.
async fn look(path: &Path, node: &str, store: &dyn Store) -> Result<(Verification, bool), String> {
    let kept = store.get(Table::Audit, node).await.map_err(|error| error.to_string())?;
    let kept: Option<ChainHead> = match kept {
        Some(row) => serde_json::from_value(row.value)
            .map_err(|_| format!("the store's head of the trail of {node} cannot be read"))?,
        None => None,
    };
    let unreadable = |error| format!("cannot read {}: {}", path.display(), DiskError::explain(&error));
    let file = match File::open(path) {
        Ok(file) => file,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
            return Ok((without_file(kept.as_ref()), false));
        }
        Err(error) => return Err(unreadable(error)),
    };
    let chain = follow(&mut BufReader::new(file), kept.as_ref()).map_err(unreadable)?;
    let fault =
        chain.fault.or_else(|| wrong_end(&chain.head, kept.as_ref(), chain.has_stored_head)).or(chain.gap);
    let unconfirmed = chain.head.seq.saturating_sub(kept.map_or(0, |kept| kept.seq));
    Ok((Verification { lines: chain.head.seq, unconfirmed, fault }, chain.is_unfinished))
}

/// A log that the store knows was there.
fn without_file(kept: Option<&ChainHead>) -> Verification {
    let fault = kept.map(|kept| {
        format!(
            "the trail is missing, and the store knows one whose last line is number {}: it was removed",
            kept.seq
        )
    });
    Verification { lines: 0, unconfirmed: 0, fault }
}

/// What following a chain came to.
struct Chain {
    /// The last line that holds.
    head: ChainHead,
    /// Whether the line that the store knows is in it.
    has_stored_head: bool,
    /// What is wrong with the line after it.
    fault: Option<String>,
    /// Whether its only fault is that it has no end.
    is_unfinished: bool,
    /// The first gap that the log records.
    gap: Option<String>,
}

fn follow(file: &mut BufReader<File>, kept: Option<&ChainHead>) -> std::io::Result<Chain> {
    let head = ChainHead::default();
    let has_stored_head = kept == Some(&head);
    let mut chain = Chain { head, has_stored_head, fault: None, is_unfinished: false, gap: None };
    let mut line = Vec::new();
    while let Some(ending) = read_line(file, &mut line)? {
        let number = chain.head.seq + 1;
        let next = match ending {
            Ending::Newline => next(&chain.head, &line),
            Ending::Missing => Err("it has no end: it is being written, or a crash has torn it, and the next start of the server takes it off".into()),
            Ending::TooLong => Err("it is longer than any line of the audit trail".into()),
        };
        match next {
            Ok((next, gap)) => {
                chain.head = next;
                chain.gap = chain.gap.or_else(|| Some(format!("line {number}: {}", gap?)));
            }
            Err(fault) => {
                chain.fault = Some(format!("line {number}: {fault}"));
                chain.is_unfinished = ending == Ending::Missing;
                return Ok(chain);
            }
        }
        chain.has_stored_head |= kept == Some(&chain.head);
    }
    Ok(chain)
}

/// The head after a line, and what the line says about a gap before it.
fn next(head: &ChainHead, line: &[u8]) -> Result<(ChainHead, Option<String>), String> {
    let text = String::from_utf8_lossy(line);
    let next = head.after(&text)?;
    // Parsed a second time only where it may say so.
    let gap = text.contains("audit_gap").then(|| serde_json::from_str(&text).ok()).flatten();
    Ok((next, gap.and_then(|line| gap::describe_gap(&line))))
}

fn wrong_end(head: &ChainHead, kept: Option<&ChainHead>, has_stored_head: bool) -> Option<String> {
    match kept {
        _ if has_stored_head => None,
        Some(kept) => Some(format!(
            "the trail ends at line {}, and the line {} that the store knows is not in it: it was cut off or replaced",
            head.seq, kept.seq
        )),
        None if head.seq == 0 => None,
        None => Some("the store does not know this trail, so it may have been cut off".into()),
    }
}
