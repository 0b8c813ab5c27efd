//! Lines of audit logs in the store, in rows, so that one machine can verify the chains of all nodes.
//!
//! They are a copy: the file is written first. What a lost connection or a crash has kept out of the store is read from
//! the file and added later.

use std::path::Path;

use quarterdeck_contracts::{Commit, Scan, Store, StoreError, Table};
use serde_json::{Value, json};

use super::reader::{AuditEntry, AuditReader};

/// How the keys of those rows begin. No node has a name with a tilde.
const LINES_PREFIX: &str = "~lines/";
/// How the keys of the rows begin that say up to which line a chain is kept.
const KEPT_PREFIX: &str = "~kept/";
/// The size of a row. A longer line has one of its own.
const ROW_BYTES: usize = 128 << 10;
/// How much is added in one commit when lines are read from the file.
const CATCH_UP_BYTES: usize = 1 << 20;
const PAGE_ROWS: usize = 64;

/// Keeps the lines of one chain.
pub(super) struct KeptLines {
    node: String,
    /// The number of the last line that was handed to the store.
    kept: u64,
    /// Lines after it that are not handed over yet, each with its number.
    waiting: Vec<(u64, String)>,
}

/// Whether a key of [`Table::Audit`] names the head of a chain.
pub(super) fn is_head(key: &str) -> bool {
    !key.starts_with(LINES_PREFIX) && !key.starts_with(KEPT_PREFIX)
}

impl KeptLines {
    /// `found` is the last line of the file. What the store has beyond it was cut off there, and verifying shows it.
    pub(super) async fn open(node: &str, found: u64, store: &dyn Store) -> Result<Self, StoreError> {
        let row = store.get(Table::Audit, &format!("{KEPT_PREFIX}{node}")).await?;
        let kept = row.and_then(|row| row.value["seq"].as_u64()).unwrap_or_default();
        Ok(Self { node: node.to_owned(), kept: kept.min(found), waiting: Vec::new() })
    }

    pub(super) fn add(&mut self, number: u64, line: &str) {
        self.waiting.push((number, line.trim_end_matches('\n').to_owned()));
    }

    /// Adds what waits to the commit that stores the head, whose line has this number. What is missing before it is read
    /// from the file first, and handed over in commits of its own.
    pub(super) fn hand_over(&mut self, commit: Commit, path: &Path, head: u64, store: &dyn Store) -> Commit {
        let is_next = self.waiting.first().is_none_or(|(number, _)| *number == self.kept + 1);
        if !is_next || (self.waiting.is_empty() && self.kept < head) {
            self.waiting.clear();
            if let Err(error) = self.catch_up(path, head, store) {
                tracing::warn!(
                    error,
                    "lines of the audit trail are missing from the store; they are added later"
                );
            }
            return commit;
        }
        let lines = std::mem::take(&mut self.waiting);
        let Some((last, _)) = lines.last() else { return commit };
        self.kept = *last;
        commit.and(self.put_up_to(*last, &lines))
    }

    /// The last commit was not taken: what was in it is read from the file next time.
    pub(super) fn take_back(&mut self, kept: u64) {
        self.kept = kept;
        self.waiting.clear();
    }

    pub(super) fn kept(&self) -> u64 {
        self.kept
    }

    fn catch_up(&mut self, path: &Path, head: u64, store: &dyn Store) -> Result<(), String> {
        let mut reader = AuditReader::open_at(path, self.kept + 1).map_err(|error| error.to_string())?;
        let (mut lines, mut bytes) = (Vec::new(), 0);
        loop {
            let entry = reader.next_entry().map_err(|error| error.to_string())?;
            let is_end = matches!(entry, AuditEntry::End | AuditEntry::Partial(_));
            if let AuditEntry::Line(line, value) = entry
                && let Some(number) =
                    value["seq"].as_u64().filter(|number| (self.kept + 1..=head).contains(number))
            {
                bytes += line.len();
                lines.push((number, line));
            }
            if bytes >= CATCH_UP_BYTES || (is_end && !lines.is_empty()) {
                let last = lines.last().map_or(self.kept, |(number, _)| *number);
                let commit = self.put_up_to(last, &lines);
                store.queue(commit).map_err(|error| error.to_string())?;
                self.kept = last;
                (lines, bytes) = (Vec::new(), 0);
            }
            if is_end {
                return Ok(());
            }
        }
    }

    fn put_up_to(&self, last: u64, lines: &[(u64, String)]) -> Commit {
        let mut commit = Commit::default();
        let mut rest = lines;
        while let Some((first, _)) = rest.first() {
            let mut bytes = 0;
            let fits = rest.iter().take_while(|(_, line)| {
                bytes += line.len() + 1;
                bytes <= ROW_BYTES
            });
            let (row, later) = rest.split_at(fits.count().max(1));
            let text: String = row.iter().flat_map(|(_, line)| [line.as_str(), "\n"]).collect();
            commit = commit.put(Table::Audit, row_key(&self.node, *first), Value::from(text));
            rest = later;
        }
        commit.put(Table::Audit, format!("{KEPT_PREFIX}{}", self.node), json!({ "seq": last }))
    }
}

fn row_key(node: &str, first: u64) -> String {
    format!("{}{first:020}", lines_prefix(node))
}

/// How the keys of a chain's rows begin.
pub(super) fn lines_prefix(node: &str) -> String {
    format!("{LINES_PREFIX}{node}/")
}

/// The number of the first line in a row.
pub(super) fn first_line_of(key: &str, node: &str) -> Option<u64> {
    key.strip_prefix(&lines_prefix(node))?.parse().ok()
}

/// Gives the lines of a chain that are kept in the store to `take`, in their order; `false` if none is.
pub(super) async fn for_each_kept_line(
    node: &str,
    store: &dyn Store,
    mut take: impl FnMut(&str),
) -> Result<bool, StoreError> {
    let mut scan = Scan::prefix(lines_prefix(node), PAGE_ROWS);
    let mut has_any = false;
    loop {
        let page = store.scan(Table::Audit, scan.clone()).await?;
        let Some((last, _)) = page.last() else { return Ok(has_any) };
        scan.after = Some(last.clone());
        has_any = true;
        for (_, row) in page {
            row.value.as_str().unwrap_or_default().lines().for_each(&mut take);
        }
    }
}
