//! The store in memory.

use std::path::Path;
use std::sync::Arc;

use quarterdeck_contracts::Store;
use quarterdeck_store::MemoryStore;
use quarterdeck_testkit::store_promises;

store_promises!(open);

fn open(_folder: &Path) -> Arc<dyn Store> {
    Arc::new(MemoryStore::new())
}
