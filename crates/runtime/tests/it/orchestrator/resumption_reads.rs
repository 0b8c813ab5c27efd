//! What resuming a session reads from the store.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use quarterdeck_contracts::handler::BoxFuture;
use quarterdeck_contracts::{Commit, CommitError, Mode, Row, Scan, Store, StoreError, Table};
use quarterdeck_runtime::{Call, Client, Connection};
use quarterdeck_store::MemoryStore;
use serde_json::json;

use super::fixture::Fixture;

/// Confirmations of other sessions in the store.
const OTHERS: usize = 100_000;

/// Counts the rows that are read.
#[derive(Default)]
struct CountingStore {
    store: MemoryStore,
    rows_read: Arc<AtomicUsize>,
}

impl Store for CountingStore {
    fn get(&self, table: Table, key: &str) -> BoxFuture<Result<Option<Row>, StoreError>> {
        self.rows_read.fetch_add(1, Ordering::Relaxed);
        self.store.get(table, key)
    }

    fn scan(&self, table: Table, scan: Scan) -> BoxFuture<Result<Vec<(String, Row)>, StoreError>> {
        let (rows, rows_read) = (self.store.scan(table, scan), self.rows_read.clone());
        Box::pin(async move {
            let rows = rows.await?;
            rows_read.fetch_add(rows.len(), Ordering::Relaxed);
            Ok(rows)
        })
    }

    fn commit(&self, commit: Commit) -> BoxFuture<Result<u64, CommitError>> {
        self.store.commit(commit)
    }

    fn queue(&self, commit: Commit) -> Result<(), StoreError> {
        self.store.queue(commit)
    }

    fn flush(&self) -> BoxFuture<Result<(), StoreError>> {
        self.store.flush()
    }

    fn sweep(&self, now_ms: u64) -> BoxFuture<Result<u64, StoreError>> {
        self.store.sweep(now_ms)
    }
}

async fn request_payment(connection: &Connection) {
    let call = Call::new("pay", json!({ "what": "rent" })).with_id("call_pay_01");
    connection.submit(vec![call]).all().await;
}

#[tokio::test(start_paused = true)]
async fn resuming_a_session_reads_its_own_confirmations_and_no_others() {
    let store = Arc::new(CountingStore::default());
    let fixture = Fixture::on(store.clone(), Arc::default());
    let (session, connection) = fixture.open("ann", Mode::Text).await;
    request_payment(&connection).await;
    let (_, own) = store.scan(Table::Confirmations, Scan::prefix("", 1)).await.unwrap().remove(0);
    let mut others = Commit::default();
    for number in 0..OTHERS {
        let (id, hash, mut row) = (format!("ses_{number}"), format!("{number:064x}"), own.value.clone());
        row["sessionId"] = json!(id);
        others = others.put(Table::SessionConfirmations, format!("{id}/{hash}"), json!({}));
        others = others.put(Table::Confirmations, hash, row);
    }
    store.commit(others).await.unwrap();

    let after = fixture.restarted();
    store.rows_read.store(0, Ordering::Relaxed);
    let client = Client::anonymous("ann");
    let resumed = after.orchestrator.resume(session.id(), client, after.snapshot.clone()).await.unwrap();
    let rows_read = store.rows_read.load(Ordering::Relaxed);
    assert!(rows_read < 10, "{rows_read} rows were read");

    // The open request is known again: the same call replaces it instead of adding a second.
    resumed.begin_turn(None);
    request_payment(&resumed.connect()).await;
    let index = Scan::prefix(format!("{}/", session.id()), 10);
    assert_eq!(store.scan(Table::SessionConfirmations, index).await.unwrap().len(), 1);
}
