//! Calls that end in time, whatever the server does.

use std::time::{Duration, Instant};

use quarterdeck_postgres::{DatabaseError, ErrorClass};
use quarterdeck_testkit::{PostgresServer, PostgresVersion};

use crate::database;

#[tokio::test(flavor = "multi_thread")]
async fn statement_that_takes_too_long_is_given_up_and_cancelled() {
    let Some(server) = PostgresServer::shared(PostgresVersion::V18) else { return };
    let database = database(&format!("{}&statement_timeout=300&pool_size=1", server.create_database()));
    let begin = Instant::now();
    let slow = database.call(|client| {
        Box::pin(async move { client.query_typed("SELECT pg_sleep(60)", &[]).await.map(drop) })
    });
    let error = slow.await.unwrap_err();
    assert_eq!(error.class(), ErrorClass::Lost, "{error}");
    assert!(begin.elapsed() < Duration::from_secs(5));
    // Its place is free for a new connection.
    let one = database.call(|client| Box::pin(async move { client.query_typed_one("SELECT 1", &[]).await }));
    assert_eq!(one.await.unwrap().get::<_, i32>(0), 1);
    let sleeping = "SELECT count(*) FROM pg_stat_activity WHERE query = 'SELECT pg_sleep(60)'";
    while server.execute("postgres", sleeping) != "0" {
        assert!(begin.elapsed() < Duration::from_secs(20), "the server goes on with it");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn full_pool_refuses_after_a_while() {
    let Some(server) = PostgresServer::shared(PostgresVersion::V18) else { return };
    let database = database(&format!("{}&pool_size=1", server.create_database()));
    let held = database.client().await.unwrap();
    assert_eq!(database.pool_use(), (1, 0));
    let wait = Duration::from_millis(100);
    let refused =
        database.call_within(wait, wait, |client| Box::pin(async move { client.batch_execute("").await }));
    let refused = refused.await.unwrap_err();
    assert_eq!(refused.class(), ErrorClass::NotSent);
    assert!(refused.to_string().contains("all connections are in use"), "{refused}");
    drop(held);
    drop(database.client().await.unwrap());
}

#[tokio::test(flavor = "multi_thread")]
async fn errors_tell_what_is_known_of_the_statement() {
    let Some(server) = PostgresServer::shared(PostgresVersion::V16) else { return };
    let url = server.create_database();
    let good = database(&url);
    let run = |sql: &'static str| {
        good.call(move |client| Box::pin(async move { client.query_typed(sql, &[]).await.map(drop) }))
    };
    let refused = run("SELECT 1/0").await.unwrap_err();
    assert_eq!(refused.class(), ErrorClass::Final);
    assert!(refused.to_string().contains("22012"), "{refused}");
    let contended =
        run("DO $$ BEGIN RAISE EXCEPTION 'again' USING ERRCODE = '40001'; END $$").await.unwrap_err();
    assert_eq!(contended.class(), ErrorClass::Retry);
    let ended = run("SELECT pg_terminate_backend(pg_backend_pid())").await.unwrap_err();
    assert_eq!(ended.class(), ErrorClass::Lost, "{ended}");
    run("SELECT 1").await.unwrap();
    let missing = database(&server.url("missing")).client().await.map(drop).unwrap_err();
    assert_eq!(missing.class(), ErrorClass::Final, "{missing}");
    let nowhere = database("postgres://qd:hunter2@127.0.0.1:1/qd").client().await.map(drop).unwrap_err();
    assert_eq!(nowhere.class(), ErrorClass::NotSent);
    assert!(matches!(&nowhere, DatabaseError::NoConnection { .. }));
    assert!(!nowhere.to_string().contains("hunter2"), "{nowhere}");
}

/// The first host is away, and the second is the one that may be written to.
#[tokio::test(flavor = "multi_thread")]
async fn host_that_can_be_written_to_is_found_among_several() {
    let Some(server) =
        PostgresServer::start_with(PostgresVersion::V16, &["default_transaction_read_only=on"])
    else {
        return;
    };
    let Some(writable) = PostgresServer::shared(PostgresVersion::V18) else { return };
    let (read_only, port) = (server.port(), writable.port());
    let url = format!("postgres://qd@127.0.0.1:1,127.0.0.1:{read_only},127.0.0.1:{port}/postgres");
    let database = database(&url);
    let version = database
        .call(|client| Box::pin(async move { client.query_typed_one("SHOW server_version_num", &[]).await }));
    assert!(version.await.unwrap().get::<_, String>(0).starts_with("18"));
}
