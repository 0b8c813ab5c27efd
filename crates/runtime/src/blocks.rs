//! Blocked clients. A block holds on every later request of that client, in both modes and after a restart, until it
//! runs out or an operator lifts it.
//!
//! A client that has not signed in can come back as another one. Its block therefore has a second row, under the address
//! that it was made from, which holds for clients that are new.

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
    /// The address that is blocked too, for clients that are new.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub address: Option<String>,
}

/// What the block of an address is kept under, and listed as. No client has such an id: those of anonymous clients and
/// programs are made by the server, and those of others begin with `sub` or `key`.
fn address_key(address: &str) -> String {
    format!("address:{address}")
}

/// The block that new clients of an address are under, if it has not run out.
pub async fn find_address_block(
    store: &dyn Store,
    address: &str,
    now_ms: u64,
) -> Result<Option<Block>, StoreError> {
    find_block(store, &address_key(address), now_ms).await
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

/// Lifts a block, with that of its address; `false` when there was none.
pub async fn lift_block(store: &dyn Store, client: &str, now_ms: u64) -> Result<bool, CommitError> {
    let Some(block) = find_block(store, client, now_ms).await? else { return Ok(false) };
    let mut commit = Commit::default().delete(Table::Blocks, client);
    if let Some(address) = block.address {
        let key = address_key(&address);
        // Another client's block may have extended it, and that one stays.
        if find_block(store, &key, now_ms).await?.is_some_and(|found| found.session_id == block.session_id) {
            commit = commit.delete(Table::Blocks, key);
        }
    }
    store.commit(commit).await?;
    Ok(true)
}

/// Blocks a client as part of a call, and its address where it has one. Repeating it extends the block and never shortens
/// it.
pub(crate) async fn block(overlay: &Overlay, new: Block) -> Result<Block, StoreError> {
    if let Some(address) = &new.address {
        let key = address_key(address);
        let block = Block { client_id: key.clone(), address: None, ..new.clone() };
        let block = extended(overlay, block).await?;
        overlay.put_until(Table::Blocks, key, json!(block), block.until_ms);
    }
    let block = extended(overlay, new).await?;
    overlay.put(Table::Blocks, block.client_id.clone(), json!(block));
    Ok(block)
}

async fn extended(overlay: &Overlay, new: Block) -> Result<Block, StoreError> {
    let existing = overlay.get(Table::Blocks, &new.client_id).await?;
    let until = existing
        .and_then(|value| serde_json::from_value::<Block>(value).ok())
        .map_or(0, |existing| existing.until_ms);
    Ok(Block { until_ms: new.until_ms.max(until), ..new })
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
                address: None,
            };
            let made = block_on(block(&overlay, new)).unwrap().until_ms;
            block_on(store.commit(overlay.take())).unwrap();
            made
        };
        assert_eq!((until(100), until(50), until(200)), (100, 100, 200));
        assert_eq!(block_on(find_block(&*store, "ann", 199)).unwrap().unwrap().until_ms, 200);
        assert_eq!(block_on(find_block(&*store, "ann", 200)).unwrap(), None);
    }

    #[test]
    fn the_block_of_an_address_goes_with_the_clients_block_and_with_no_others() {
        let store = Arc::new(MemoryStore::new());
        let make = |client: &str, session: &str, until_ms: u64| {
            let overlay = Overlay::new(store.clone());
            let new = Block {
                client_id: client.into(),
                until_ms,
                message: "Please calm down.".into(),
                session_id: session.into(),
                at_ms: 0,
                address: Some("2001:db8::".into()),
            };
            block_on(block(&overlay, new)).unwrap();
            block_on(store.commit(overlay.take())).unwrap();
        };
        let until =
            || block_on(find_address_block(&*store, "2001:db8::", 50)).unwrap().map(|block| block.until_ms);
        assert_eq!(until(), None);
        make("ann", "s1", 200);
        make("ben", "s2", 100);
        assert_eq!(until(), Some(200), "the longer one holds");
        assert!(block_on(lift_block(&*store, "ann", 50)).unwrap());
        assert_eq!(until(), Some(200), "it is ben's too");
        assert!(block_on(lift_block(&*store, "ben", 50)).unwrap());
        assert_eq!((until(), block_on(list_blocks(&*store, 50)).unwrap().len()), (None, 0));
        make("ann", "s3", 300);
        let listed: Vec<_> = block_on(list_blocks(&*store, 50)).unwrap();
        let listed: Vec<&str> = listed.iter().map(|block| &*block.client_id).collect();
        assert_eq!(listed, ["address:2001:db8::", "ann"]);
        assert!(block_on(lift_block(&*store, "address:2001:db8::", 50)).unwrap(), "by itself");
        assert_eq!((until(), block_on(find_block(&*store, "ann", 50)).unwrap().is_some()), (None, true));
    }
}
