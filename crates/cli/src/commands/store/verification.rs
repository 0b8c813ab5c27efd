//! Reads both sides of a copy and compares them, row by row.

use anyhow::bail;
use quarterdeck_contracts::{StoreError, Table, sha256};
use quarterdeck_store::ExportedRow;
use serde_json::{Value, json};

use super::copy::{PAGE_ROWS, is_of_processes};
use crate::store_snapshot::StoreSnapshot;
use crate::terminal::plain;

/// A database keeps a row up to an hour longer than it was asked to.
const MAX_EXPIRY_DELAY_MS: u64 = 3_600_000;

/// Compares all rows, and returns the digest of them, which is the same for both.
pub(super) async fn verify(source: &StoreSnapshot, copy: &StoreSnapshot) -> anyhow::Result<String> {
    let (mut of_source, mut of_copy) = (Digest::default(), Digest::default());
    for table in Table::ALL {
        let (mut left, mut right) = (Rows::new(source, table), Rows::new(copy, table));
        loop {
            match (left.next().await?, right.next().await?) {
                (None, None) => break,
                (Some(row), Some(copied)) if is_copy(&row, &copied) => {
                    of_source.add(&row);
                    of_copy.add(&copied);
                }
                (row, copied) => {
                    let key = row.or(copied).map(|row| plain(&row.key)).unwrap_or_default();
                    bail!("{}/{key} differs between the source and the copy", table.as_str());
                }
            }
        }
    }
    let (source, copy) = (of_source.finish(), of_copy.finish());
    if source != copy {
        bail!("the digests of source and copy differ: {source} and {copy}");
    }
    Ok(source)
}

fn is_copy(row: &ExportedRow, copied: &ExportedRow) -> bool {
    let is_expiry = match (row.expires_ms, copied.expires_ms) {
        (None, None) => true,
        (Some(asked), Some(has)) => (asked..=asked.saturating_add(MAX_EXPIRY_DELAY_MS)).contains(&has),
        _ => false,
    };
    is_expiry && row.key == copied.key && (row.value == copied.value || canonical(row) == canonical(copied))
}

/// The value as we write it: one that was written by other means may have other spaces.
fn canonical(row: &ExportedRow) -> Option<String> {
    serde_json::from_str::<Value>(&row.value).ok().map(|value| value.to_string())
}

/// The rows of one table, one after the other.
struct Rows<'a> {
    of: &'a StoreSnapshot,
    table: Table,
    page: std::vec::IntoIter<ExportedRow>,
    after: Option<String>,
    is_last: bool,
}

impl<'a> Rows<'a> {
    fn new(of: &'a StoreSnapshot, table: Table) -> Self {
        Self { of, table, page: Vec::new().into_iter(), after: None, is_last: false }
    }

    async fn next(&mut self) -> Result<Option<ExportedRow>, StoreError> {
        loop {
            if let Some(row) = self.page.find(|row| !is_of_processes(row)) {
                return Ok(Some(row));
            }
            if self.is_last {
                return Ok(None);
            }
            let page = self.of.rows(self.table, self.after.as_deref(), PAGE_ROWS).await?;
            self.is_last = page.len() < PAGE_ROWS;
            self.after = page.last().map(|row| row.key.clone());
            self.page = page.into_iter();
        }
    }
}

/// A digest of rows in their order: of each row and the digest before it.
#[derive(Default)]
struct Digest(String);

impl Digest {
    fn add(&mut self, row: &ExportedRow) {
        let value = canonical(row).unwrap_or_default();
        let line = json!([self.0, row.table.as_str(), row.key, value]).to_string();
        self.0 = sha256(line.as_bytes());
    }

    fn finish(self) -> String {
        self.0
    }
}
