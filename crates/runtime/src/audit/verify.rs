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
    let kept = stored_head(node, store).await?;
    let unreadable = |error| format!("cannot read {}: {}", path.display(), DiskError::explain(&error));
    let file = match File::open(path) {
        Ok(file) => file,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
            return Ok((without_file(kept.as_ref()), false));
        }
        Err(error) => return Err(unreadable(error)),
    };
    let chain = follow(&mut BufReader::new(file), kept.as_ref()).map_err(unreadable)?;
    let is_unfinished = chain.is_unfinished;
    Ok((chain.verdict(kept.as_ref()), is_unfinished))
}

/// The end of a chain, as the store knows it.
pub(super) async fn stored_head(node: &str, store: &dyn Store) -> Result<Option<ChainHead>, String> {
    let row = store.get(Table::Audit, node).await.map_err(|error| error.to_string())?;
    let unreadable = |_| format!("the store's head of the trail of {node} cannot be read");
    row.map(|row| serde_json::from_value(row.value).map_err(unreadable)).transpose()
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
pub(super) struct Chain {
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

impl Chain {
    /// Before the first line.
    pub(super) fn new(kept: Option<&ChainHead>) -> Self {
        let head = ChainHead::default();
        let has_stored_head = kept == Some(&head);
        Self { head, has_stored_head, fault: None, is_unfinished: false, gap: None }
    }

    /// Takes the next line; after a fault none is looked at.
    pub(super) fn take(&mut self, line: &[u8], ending: Ending, kept: Option<&ChainHead>) {
        if self.fault.is_some() {
            return;
        }
        let number = self.head.seq + 1;
        let next = match ending {
            Ending::Newline => next(&self.head, line),
            Ending::Missing => Err("it has no end: it is being written, or a crash has torn it, and the next start of the server takes it off".into()),
            Ending::TooLong => Err("it is longer than any line of the audit trail".into()),
        };
        match next {
            Ok((next, gap)) => {
                self.head = next;
                self.gap = self.gap.take().or_else(|| Some(format!("line {number}: {}", gap?)));
                self.has_stored_head |= kept == Some(&self.head);
            }
            Err(fault) => {
                self.fault = Some(format!("line {number}: {fault}"));
                self.is_unfinished = ending == Ending::Missing;
            }
        }
    }

    pub(super) fn verdict(self, kept: Option<&ChainHead>) -> Verification {
        let end = || wrong_end(&self.head, kept, self.has_stored_head);
        let fault = self.fault.clone().or_else(end).or(self.gap);
        let unconfirmed = self.head.seq.saturating_sub(kept.map_or(0, |kept| kept.seq));
        Verification { lines: self.head.seq, unconfirmed, fault }
    }
}

fn follow(file: &mut BufReader<File>, kept: Option<&ChainHead>) -> std::io::Result<Chain> {
    let mut chain = Chain::new(kept);
    let mut line = Vec::new();
    while let Some(ending) = read_line(file, &mut line)? {
        chain.take(&line, ending, kept);
        if chain.fault.is_some() {
            break;
        }
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
