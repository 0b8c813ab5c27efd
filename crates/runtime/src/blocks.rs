//! Blocked clients. A block holds on every later request of that client, in both modes and after a restart, until it
//! runs out or an operator lifts it.

use quarterdeck_contracts::{Commit, CommitError, Overlay, Scan, Store, StoreError, Table};
use serde::{Deserialize, Serialize};
use serde_json::json;

/// How many rows are read at once.
const PAGE_ROWS: usize = 500;

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Block {
    #[serde(default)]
    pub client_id: String,
    /// Until when, in milliseconds since 1970.
    pub until_ms: u64,
    /// The message that the client was shown.
    #[serde(default)]
    pub message: String,
    /// The session in which it happened.
    #[serde(default)]
    pub session_id: String,
    /// When it was last extended.
    #[serde(default)]
    pub at_ms: u64,
}

/// The block that a client is under, if it has not run out.
pub async fn find_block(store: &dyn Store, client: &str, now_ms: u64) -> Result<Option<Block>, StoreError> {
    let row = store.get(Table::Blocks, client).await?;
    let block = row.and_then(|row| serde_json::from_value::<Block>(row.value).ok());
    Ok(block
        .filter(|block| block.until_ms > now_ms)
        .map(|block| Block { client_id: client.to_owned(), ..block }))
}

/// Every block that has not run out.
pub async fn list_blocks(store: &dyn Store, now_ms: u64) -> Result<Vec<Block>, StoreError> {
    let mut found = Vec::new();
    let mut scan = Scan::prefix("", PAGE_ROWS);
    loop {
        let page = store.scan(Table::Blocks, scan.clone()).await?;
        let Some((last, _)) = page.last() else { return Ok(found) };
        scan.after = Some(last.clone());
        for (client_id, row) in page {
            if let Ok(block) = serde_json::from_value::<Block>(row.value)
                && block.until_ms > now_ms
            {
                found.push(Block { client_id, ..block });
            }
        }
    }
}

/// Lifts a block; `false` when there was none.
pub async fn lift_block(store: &dyn Store, client: &str, now_ms: u64) -> Result<bool, CommitError> {
    if find_block(store, client, now_ms).await?.is_none() {
        return Ok(false);
    }
    store.commit(Commit::default().delete(Table::Blocks, client)).await?;
    Ok(true)
}

/// Blocks a client as part of a call. Repeating it extends the block and never shortens it.
pub(crate) async fn block(overlay: &Overlay, new: Block) -> Result<Block, StoreError> {
    let existing = overlay.get(Table::Blocks, &new.client_id).await?;
    let until = existing
        .and_then(|value| serde_json::from_value::<Block>(value).ok())
        .map_or(0, |existing| existing.until_ms);
    let block = Block { until_ms: new.until_ms.max(until), ..new };
    overlay.put(Table::Blocks, block.client_id.clone(), json!(block));
    Ok(block)
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use quarterdeck_store::MemoryStore;
    use quarterdeck_testkit::block_on;

    use super::*;

    #[test]
    fn repeating_a_block_extends_it_and_never_shortens_it() {
        let store = Arc::new(MemoryStore::new());
        let until = |until_ms: u64| {
            let overlay = Overlay::new(store.clone());
            let new = Block {
                client_id: "ann".into(),
                until_ms,
                message: String::new(),
                session_id: "s".into(),
                at_ms: 0,
            };
            let made = block_on(block(&overlay, new)).unwrap().until_ms;
            block_on(store.commit(overlay.take())).unwrap();
            made
        };
        assert_eq!((until(100), until(50), until(200)), (100, 100, 200));
        assert_eq!(block_on(find_block(&*store, "ann", 199)).unwrap().unwrap().until_ms, 200);
        assert_eq!(block_on(find_block(&*store, "ann", 200)).unwrap(), None);
    }
}
