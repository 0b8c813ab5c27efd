//! The same on a real database: notifications that arrive, and what happens when they do not.

use std::sync::Arc;
use std::time::{Duration, Instant};

use quarterdeck_contracts::{Change, Mode, Store};
use quarterdeck_postgres::{Database, PostgresSettings};
use quarterdeck_runtime::{Call, Session, topic};
use quarterdeck_store::PostgresStore;
use quarterdeck_testkit::{PostgresServer, PostgresVersion};
use serde_json::json;
use tokio::task::JoinHandle;

use super::fixture::{EffectLog, Fixture, submit_one};
use super::other_nodes::DeafStore;

/// Longer than a poll takes to come.
const POLL: Duration = Duration::from_secs(12);
/// A doorbell takes milliseconds; a machine that is busy takes its time.
const AT_ONCE: Duration = Duration::from_secs(3);

/// A process of its own, as far as the database can tell.
fn open(url: &str) -> Arc<dyn Store> {
    let database = Database::connect(PostgresSettings::from_url(url).unwrap()).unwrap();
    Arc::new(PostgresStore::open(database).unwrap())
}

async fn join(store: Arc<dyn Store>, name: &str) -> (Fixture, JoinHandle<()>) {
    let fixture = Fixture::node(store, Arc::new(EffectLog::default()), name);
    fixture.orchestrator.renew_node().await.unwrap();
    let orchestrator = fixture.orchestrator.clone();
    (fixture, tokio::spawn(async move { orchestrator.follow_changes().await }))
}

async fn block(fixture: &Fixture) {
    let (_session, connection) = fixture.open("ann", Mode::Text).await;
    assert!(submit_one(&connection, Call::new("block", json!({ "what": "ann" }))).await.is_ok());
}

/// How long it takes until a session has ended.
async fn ended_within(session: &Session, limit: Duration) -> Duration {
    let began = Instant::now();
    while session.state().is_active {
        assert!(began.elapsed() < limit, "it still goes on after {limit:?}");
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    began.elapsed()
}

/// Waits until a node hears what it says itself.
async fn hears(fixture: &Fixture) {
    for _ in 0..2_000 {
        let health = fixture.orchestrator.notification_health();
        if health.is_some_and(|health| health.lag.is_some() && !health.is_deaf) {
            return;
        }
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    panic!("no notification has come back");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_block_is_known_on_the_other_node_at_once() {
    for version in [PostgresVersion::V16, PostgresVersion::V18] {
        let Some(server) = PostgresServer::shared(version) else { return };
        let url = server.create_database();
        let (one, listener) = join(open(&url), "one").await;
        let (two, other_listener) = join(open(&url), "two").await;
        hears(&two).await;
        let (calling, _heard) = two.open("ann", Mode::Voice).await;
        block(&one).await;
        ended_within(&calling, AT_ONCE).await;
        assert_eq!(two.orchestrator.notification_health().unwrap().missed, 0);
        [listener, other_listener].iter().for_each(JoinHandle::abort);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_node_that_hears_nothing_finds_a_block_within_ten_seconds() {
    let Some(server) = PostgresServer::shared(PostgresVersion::V18) else { return };
    let url = server.create_database();
    let (one, listener) = join(open(&url), "one").await;
    let (deaf, other_listener) = join(Arc::new(DeafStore(open(&url))), "deaf").await;
    let (calling, _heard) = deaf.open("ann", Mode::Voice).await;
    block(&one).await;
    ended_within(&calling, POLL).await;
    let missed = || deaf.orchestrator.notification_health().unwrap().missed;
    // What was found is counted when the whole look is over.
    for _ in 0..1_000 {
        if missed() > 0 {
            break;
        }
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    assert_eq!(missed(), 1);
    [listener, other_listener].iter().for_each(JoinHandle::abort);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_node_whose_connection_was_cut_reads_what_it_missed_and_hears_again() {
    let Some(server) = PostgresServer::shared(PostgresVersion::V18) else { return };
    let url = server.create_database();
    let database = url.rsplit('/').next().unwrap().split('?').next().unwrap().to_owned();
    let (one, listener) = join(open(&url), "one").await;
    let (two, other_listener) = join(open(&url), "two").await;
    hears(&two).await;
    let (calling, _heard) = two.open("ann", Mode::Voice).await;
    let before = two.orchestrator.notification_health().unwrap().resyncs;
    // Both listeners are cut off, and the pools find out by themselves.
    let cut = "SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity \
               WHERE datname = current_database() AND pid <> pg_backend_pid()";
    server.execute(&database, cut);
    block(&one).await;
    ended_within(&calling, POLL).await;
    for _ in 0..1_200 {
        if two.orchestrator.notification_health().unwrap().resyncs > before {
            break;
        }
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    let health = two.orchestrator.notification_health().unwrap();
    assert!(health.resyncs > before, "it was told that some may have been missed: {health:?}");
    // And later ones arrive again.
    let count = || two.orchestrator.notification_health().unwrap().received.get(topic::KNOWLEDGE).copied();
    for _ in 0..1_200 {
        one.store.notify(Change { topic: topic::KNOWLEDGE.into(), key: "1".into() });
        tokio::time::sleep(Duration::from_millis(10)).await;
        if count().is_some() {
            break;
        }
    }
    assert!(count().is_some());
    [listener, other_listener].iter().for_each(JoinHandle::abort);
}
