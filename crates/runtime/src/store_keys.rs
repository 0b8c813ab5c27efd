//! The keys of a session's rows that several modules share.

use quarterdeck_contracts::{Scan, Store, StoreError, Table};
use serde_json::Value;

/// The index of a client's sessions.
pub(crate) fn index_key(client: &str, session: &str) -> String {
    format!("c/{client}/{session}")
}

/// Where an issued voice session waits.
pub(crate) fn reserved_key(id: &str) -> String {
    format!("r/{id}")
}

/// How the keys of a tool's values for a client begin.
pub(crate) fn value_prefix(client: &str, tool: &str) -> String {
    format!("{client}/{tool}/")
}

/// Every row of a table with a prefix, page by page.
pub(crate) async fn all_rows(
    store: &dyn Store,
    table: Table,
    prefix: &str,
) -> Result<Vec<(String, Value)>, StoreError> {
    let mut rows = Vec::new();
    let mut scan = Scan::prefix(prefix, 500);
    loop {
        let page = store.scan(table, scan.clone()).await?;
        let Some((last, _)) = page.last() else { return Ok(rows) };
        scan.after = Some(last.clone());
        rows.extend(page.into_iter().map(|(key, row)| (key, row.value)));
    }
}
