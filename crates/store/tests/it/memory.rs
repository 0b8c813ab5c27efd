//! The store in memory.

use std::path::Path;
use std::sync::Arc;

use quarterdeck_contracts::{Store, StoreError};
use quarterdeck_store::MemoryStore;
use quarterdeck_testkit::{block_on, store_promises};

store_promises!(open);

fn open(_folder: &Path) -> Arc<dyn Store> {
    Arc::new(MemoryStore::new())
}

#[test]
fn there_is_no_file_to_copy() {
    let StoreError::Failed(message) = block_on(MemoryStore::new().backup(Path::new("anywhere"))).unwrap_err()
    else {
        panic!("another error");
    };
    assert!(message.contains("in memory has no file"), "{message}");
}
