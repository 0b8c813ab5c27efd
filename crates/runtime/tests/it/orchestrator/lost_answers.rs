//! A store that applies commits and whose answers are lost on the way.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};

use quarterdeck_contracts::handler::BoxFuture;
use quarterdeck_contracts::{Commit, CommitError, Mode, Outcome, Row, Scan, Store, StoreError, Table};
use quarterdeck_runtime::Call;
use quarterdeck_store::MemoryStore;
use serde_json::{Value, json};

use super::fixture::{Fixture, submit_one};

/// Which commits' answers are lost.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Loss {
    /// The one that marks a call as started.
    Start,
    /// The one that records what it came to.
    Record,
}

#[derive(Default)]
struct LossyStore {
    kept: MemoryStore,
    loses: Mutex<Option<Loss>>,
    /// Calls cannot be read either.
    is_unreadable: AtomicBool,
}

impl LossyStore {
    fn is_lost(&self, commit: &Commit) -> bool {
        let call = commit.writes.iter().find(|write| write.table == Table::Calls);
        let kind = call.and_then(|write| write.value.as_ref()).map(|row| match row.get("envelope") {
            None => Loss::Start,
            Some(_) => Loss::Record,
        });
        let mut loses = self.loses.lock().unwrap();
        let is_lost = kind.is_some() && *loses == kind;
        if is_lost {
            *loses = None;
        }
        is_lost
    }
}

impl Store for LossyStore {
    fn get(&self, table: Table, key: &str) -> BoxFuture<Result<Option<Row>, StoreError>> {
        if table == Table::Calls && self.is_unreadable.load(Ordering::Relaxed) {
            return Box::pin(async { Err(StoreError::Unavailable("the line is cut".into())) });
        }
        self.kept.get(table, key)
    }

    fn scan(&self, table: Table, scan: Scan) -> BoxFuture<Result<Vec<(String, Row)>, StoreError>> {
        self.kept.scan(table, scan)
    }

    fn commit(&self, commit: Commit) -> BoxFuture<Result<u64, CommitError>> {
        let is_lost = self.is_lost(&commit);
        let committed = self.kept.commit(commit);
        Box::pin(async move {
            let version = committed.await?;
            if is_lost { Err(CommitError::Unknown("the line is cut".into())) } else { Ok(version) }
        })
    }

    fn queue(&self, commit: Commit) -> Result<(), StoreError> {
        self.kept.queue(commit)
    }

    fn flush(&self) -> BoxFuture<Result<(), StoreError>> {
        self.kept.flush()
    }

    fn sweep(&self, now_ms: u64) -> BoxFuture<Result<u64, StoreError>> {
        self.kept.sweep(now_ms)
    }
}

fn book(what: &str) -> Call {
    Call::new("book", json!({ "what": what })).with_id(format!("provider-{what}"))
}

/// The records of calls.
async fn records(store: &LossyStore) -> Vec<Value> {
    store.flush().await.unwrap();
    let rows = store.scan(Table::Calls, Scan::prefix("", 10)).await.unwrap();
    rows.into_iter().map(|(_, row)| row.value).collect()
}

#[tokio::test]
async fn a_call_whose_mark_or_record_was_stored_unheard_runs_once_and_is_answered() {
    for loss in [Loss::Start, Loss::Record] {
        let store = Arc::new(LossyStore::default());
        let fixture = Fixture::on(store.clone(), Arc::default());
        let (_session, connection) = fixture.open("ann", Mode::Text).await;
        *store.loses.lock().unwrap() = Some(loss);
        let response = submit_one(&connection, book("cake")).await;
        assert!(response.is_ok(), "{response:?}");
        assert!(store.loses.lock().unwrap().is_none(), "no answer was lost");
        assert_eq!(fixture.effects.times("cake"), 1);
        let records = records(&store).await;
        assert_eq!((records.len(), &records[0]["envelope"]["ok"]), (1, &json!(true)));
    }
}

#[tokio::test]
async fn what_is_on_record_is_not_overwritten_by_doubt() {
    let store = Arc::new(LossyStore::default());
    let fixture = Fixture::on(store.clone(), Arc::default());
    let (_session, connection) = fixture.open("ann", Mode::Text).await;
    *store.loses.lock().unwrap() = Some(Loss::Record);
    store.is_unreadable.store(true, Ordering::Relaxed);
    let response = submit_one(&connection, book("cake")).await;
    let Outcome::Failure(error) = &response.outcome else { panic!("{response:?}") };
    assert_eq!(error.details.as_ref().map(|details| &details["outcome"]), Some(&json!("unknown")));
    store.is_unreadable.store(false, Ordering::Relaxed);
    fixture.orchestrator.save_all();
    let records = records(&store).await;
    assert_eq!((records.len(), &records[0]["envelope"]["ok"]), (1, &json!(true)));
}
