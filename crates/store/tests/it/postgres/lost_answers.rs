//! Lines that are cut between a commit and its answer: it is applied once, and told as it is.

use quarterdeck_contracts::{Commit, CommitError, Store, Table, Take};
use quarterdeck_store::PostgresStore;
use quarterdeck_testkit::{PostgresServer, PostgresVersion, block_on};
use serde_json::json;

use super::proxy::{Fault, Proxy};
use super::support::open;

struct World {
    proxy: Proxy,
    /// Through the proxy.
    store: PostgresStore,
    /// Past it.
    other: PostgresStore,
}

fn world() -> Option<World> {
    let server = PostgresServer::shared(PostgresVersion::V18)?;
    let url = server.create_database();
    let proxy = Proxy::start(server.port());
    // A statement that is held up is given up soon.
    let store = open(&format!("{}&statement_timeout=500", proxy.url(&url, server.port())));
    Some(World { proxy, store, other: open(&url) })
}

#[test]
fn commit_whose_answer_was_lost_is_applied_once_and_told_with_its_version() {
    let Some(World { proxy, store, other }) = world() else { return };
    let mut faults = vec![Fault::LoseAnswer, Fault::LoseRequest];
    for n in 0..20 {
        faults.push(if n % 3 == 0 { Fault::LoseRequest } else { Fault::LoseAnswer });
        proxy.plan(&faults[faults.len() - 1 - n % 3..]);
        let key = format!("{n}");
        // Applied twice it would find its own row and fail.
        let commit = Commit::default()
            .check(Table::Calls, key.as_str(), None)
            .put(Table::Calls, key.as_str(), json!(n))
            .take(Take { key: "all".into(), count: 1, limit: 20, window_ms: 3_600_000, now_ms: 0 });
        let version = block_on(store.commit(commit)).unwrap();
        assert_eq!(proxy.planned(), 0, "the line was cut as often as planned");
        assert_eq!(block_on(other.get(Table::Calls, &key)).unwrap().unwrap().version, version);
    }
    let full = Commit::default().take(Take {
        key: "all".into(),
        count: 1,
        limit: 20,
        window_ms: 3_600_000,
        now_ms: 0,
    });
    assert!(
        matches!(block_on(other.commit(full)), Err(CommitError::Exhausted { .. })),
        "twenty were counted"
    );
}

#[test]
fn conflict_whose_answer_was_lost_is_told_as_a_conflict() {
    let Some(World { proxy, store, .. }) = world() else { return };
    block_on(store.commit(Commit::default().put(Table::Calls, "a", json!(1)))).unwrap();
    proxy.plan(&[Fault::LoseAnswer, Fault::LoseAnswer]);
    let commit = Commit::default().check(Table::Calls, "a", None).put(Table::Calls, "a", json!(2));
    let conflict = CommitError::Conflict { table: Table::Calls, key: "a".into() };
    assert_eq!(block_on(store.commit(commit)), Err(conflict));
    assert_eq!(proxy.planned(), 0);
}

#[test]
fn commit_that_arrives_after_its_repetition_changes_nothing() {
    let Some(World { proxy, store, other }) = world() else { return };
    proxy.plan(&[Fault::Hold]);
    block_on(store.commit(Commit::default().put(Table::Values, "a", json!("first")))).unwrap();
    block_on(other.commit(Commit::default().put(Table::Values, "a", json!("later")))).unwrap();
    proxy.release();
    assert_eq!(block_on(other.get(Table::Values, "a")).unwrap().unwrap().value, json!("later"));
}

/// The check of an absent row would hold again when the late attempt arrives.
#[test]
fn commit_that_was_told_as_refused_is_not_applied_when_its_first_attempt_arrives() {
    let Some(World { proxy, store, other }) = world() else { return };
    block_on(other.commit(Commit::default().put(Table::Values, "a", json!("there")))).unwrap();
    proxy.plan(&[Fault::Hold]);
    let commit = Commit::default().check(Table::Values, "a", None).put(Table::Values, "a", json!("made"));
    let refused = CommitError::Conflict { table: Table::Values, key: "a".into() };
    assert_eq!(block_on(store.commit(commit)), Err(refused));
    block_on(other.commit(Commit::default().delete(Table::Values, "a"))).unwrap();
    proxy.release();
    assert_eq!(block_on(other.get(Table::Values, "a")).unwrap(), None);
}

#[test]
fn queued_commits_survive_lines_that_are_cut() {
    let Some(World { proxy, store, other }) = world() else { return };
    for n in 0..30 {
        proxy.plan(&[Fault::LoseAnswer]);
        let key = format!("{n:02}");
        let queued =
            Commit::default().check(Table::Calls, key.as_str(), None).put(Table::Calls, key, json!(n));
        store.queue(queued).unwrap();
        if n % 10 == 9 {
            block_on(store.flush()).unwrap();
            assert_eq!(proxy.planned(), 0);
        }
    }
    for n in 0..30 {
        assert!(block_on(other.get(Table::Calls, &format!("{n:02}"))).unwrap().is_some(), "{n}");
    }
}
