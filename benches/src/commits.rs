//! Durable commits of a call, on either engine.
//!
//! usage: `quarterdeck-benches commits URL_OR_FOLDER WRITERS SECONDS`
//!
//! Each commit proves the lease of its session, marks a call that was not there, and writes a row beside it, as the
//! orchestrator does for a call that writes.

use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use quarterdeck_contracts::{Commit, Store, Table};
use quarterdeck_postgres::{Database, PostgresSettings};
use quarterdeck_store::{PostgresStore, SqliteStore};
use serde_json::{Value, json};

/// So many writers at a time; commits per second, and milliseconds of one.
pub(crate) fn run(place: &str, writers: usize, seconds: f64) -> Value {
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build().expect("a runtime");
    let store: Arc<dyn Store> = if place.starts_with("postgres") {
        // Connections are made on the runtime that asks for the first one.
        let _entered = runtime.enter();
        let settings = PostgresSettings::from_url(place).expect("the URL of a database");
        let database = Database::connect(settings).expect("settings of a pool");
        Arc::new(PostgresStore::open(database).expect("the database opens"))
    } else {
        Arc::new(SqliteStore::open(Path::new(place).join("commits.db")).expect("the file opens"))
    };
    let mut milliseconds = runtime.block_on(async {
        let until = Instant::now() + Duration::from_secs_f64(seconds);
        let tasks: Vec<_> =
            (0..writers).map(|number| tokio::spawn(write(store.clone(), number, until))).collect();
        let mut all = Vec::new();
        for task in tasks {
            all.extend(task.await.expect("a writer"));
        }
        all
    });
    milliseconds.sort_by(f64::total_cmp);
    let last = milliseconds.len().saturating_sub(1);
    let at = |percent: usize| milliseconds.get(last * percent / 100).copied().unwrap_or(0.0);
    json!({
        "commits_per_s": milliseconds.len() as f64 / seconds, "p50_ms": at(50), "p99_ms": at(99),
    })
}

async fn write(store: Arc<dyn Store>, number: usize, until: Instant) -> Vec<f64> {
    let session = format!("bench-{}-{number}", std::process::id());
    let lease = Commit::default().put(Table::Leases, session.clone(), json!({ "node": "bench" }));
    let token = store.commit(lease).await.expect("the lease is written");
    let mut times = Vec::new();
    for call in 0_u64.. {
        if Instant::now() >= until {
            break;
        }
        let key = format!("{session}/{call}");
        let commit = Commit::default()
            .check(Table::Leases, session.clone(), Some(token))
            .check(Table::Calls, key.clone(), None)
            .put(Table::Calls, key, json!({ "state": "begun", "tool": "calendar_create_event" }))
            .put(Table::Values, session.clone(), json!({ "calls": call }));
        let began = Instant::now();
        store.commit(commit).await.expect("the store writes");
        times.push(began.elapsed().as_secs_f64() * 1e3);
    }
    times
}
