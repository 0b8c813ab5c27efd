//! Removes the copies of lines from the store that were cut from the files.

use quarterdeck_contracts::{Commit, CommitError, Scan, Store, Table};

use super::super::kept_lines::{first_line_of, lines_prefix};

const PAGE_ROWS: usize = 64;

/// Removes every row whose lines are all up to this one, the oldest first: what a crash leaves is a shorter copy.
pub(super) async fn trim_kept_lines(store: &dyn Store, node: &str, last_line: u64) -> Result<(), String> {
    let mut scan = Scan::prefix(lines_prefix(node), PAGE_ROWS);
    // The row before the one in hand: it ends where that one begins.
    let mut before: Option<String> = None;
    loop {
        let page = store.scan(Table::Audit, scan.clone()).await.map_err(|error| error.to_string())?;
        let Some((last, _)) = page.last() else { return Ok(()) };
        scan.after = Some(last.clone());
        let (mut commit, mut is_done) = (Commit::default(), false);
        for (key, _) in page {
            let Some(first) = first_line_of(&key, node) else { continue };
            if first > last_line + 1 {
                is_done = true;
                break;
            }
            if let Some(before) = before.replace(key) {
                commit = commit.delete(Table::Audit, before);
            }
        }
        if !commit.is_empty() {
            let commit = store.commit(commit).await.map_err(CommitError::into_store_error);
            commit.map_err(|error| error.to_string())?;
        }
        if is_done {
            return Ok(());
        }
    }
}
