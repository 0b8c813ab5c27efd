//! A disk that refuses, and a queue that is full.

use std::task::{Context, Poll, Waker};
use std::time::Duration;

use quarterdeck_contracts::{CommitError, Store, StoreError, Table};
use quarterdeck_store::{SqliteOptions, SqliteStore};
use quarterdeck_testkit::block_on;
use serde_json::json;

use super::{place, put, tamper, value, write_lock};

fn options(change: impl FnOnce(&mut SqliteOptions)) -> SqliteOptions {
    let mut options = SqliteOptions::default();
    change(&mut options);
    options
}

fn is_failure(result: &Result<u64, CommitError>) -> bool {
    matches!(result, Err(CommitError::Store(StoreError::Failed(_))))
}

#[test]
fn a_commit_that_cannot_be_written_fails_and_the_next_succeeds() {
    let (_folder, path) = place();
    let store =
        SqliteStore::open_with(&path, options(|options| options.busy_timeout = Duration::from_millis(20)))
            .unwrap();
    let lock = write_lock(&path);
    assert!(is_failure(&block_on(store.commit(put("a", json!(1))))));
    assert!(matches!(block_on(store.sweep(1)), Err(StoreError::Failed(_))));
    drop(lock);
    block_on(store.commit(put("a", json!(2)))).unwrap();
    assert_eq!(value(&store, "a"), Some(json!(2)));
}

#[test]
fn a_failure_is_one_commits_own_when_it_can_be_undone_alone() {
    let (_folder, path) = place();
    let store = SqliteStore::open(&path).unwrap();
    tamper(&path, &trigger("ABORT"));
    let results = group(&store, &path);
    assert!(results[0].is_ok() && is_failure(&results[1]) && results[2].is_ok(), "{results:?}");
    assert_eq!(value(&store, "queued"), Some(json!(0)));
    assert_eq!(value(&store, "before"), Some(json!(1)));
    assert_eq!(value(&store, "beside the poison"), None);
    assert_eq!(value(&store, "after"), Some(json!(3)));
}

#[test]
fn a_failure_that_undoes_the_group_fails_all_its_commits_and_no_version_comes_back() {
    let (_folder, path) = place();
    let store = SqliteStore::open(&path).unwrap();
    block_on(store.commit(put("old", json!(0)))).unwrap();
    tamper(&path, &trigger("ROLLBACK"));
    let results = group(&store, &path);
    assert!(results.iter().all(is_failure), "{results:?}");
    for key in ["queued", "before", "beside the poison", "after"] {
        assert_eq!(value(&store, key), None, "{key}");
    }
    let old = block_on(store.get(Table::Values, "old")).unwrap().unwrap().version;
    block_on(store.commit(put("new", json!(1)))).unwrap();
    let new = block_on(store.get(Table::Values, "new")).unwrap().unwrap().version;
    assert!(new > old + 2, "what the lost commits were called is not used again");
}

#[test]
fn what_fails_in_the_queue_does_not_fail_what_comes_later() {
    let (_folder, path) = place();
    let store =
        SqliteStore::open_with(&path, options(|options| options.queue_delay = Duration::from_secs(60)))
            .unwrap();
    tamper(&path, &trigger("ROLLBACK"));
    for n in 0..20 {
        let lock = write_lock(&path);
        store.queue(put("poison", json!(n))).unwrap();
        let commit = store.commit(put("later", json!(n)));
        drop(lock);
        block_on(commit).unwrap();
        assert_eq!(value(&store, "later"), Some(json!(n)));
    }
}

#[test]
fn a_commit_that_may_still_be_undone_is_not_read() {
    let (_folder, path) = place();
    let store = SqliteStore::open(&path).unwrap();
    tamper(&path, &trigger("ROLLBACK"));
    let lock = write_lock(&path);
    store.queue(put("queued", json!(0))).unwrap();
    let early = store.get(Table::Values, "queued");
    let commit = store.commit(put("queued", json!(1)));
    let late = store.get(Table::Values, "queued");
    let poison = store.commit(put("poison", json!(2)));
    drop(lock);
    assert_eq!(block_on(early).unwrap().unwrap().value, json!(0), "a queued commit may be lost, and be seen");
    assert!(is_failure(&block_on(commit)) && is_failure(&block_on(poison)));
    assert!(matches!(block_on(late), Err(StoreError::Failed(_))));
}

/// Fails as a full disk does: for one statement, or for the whole transaction.
fn trigger(how: &str) -> String {
    format!(
        "CREATE TRIGGER full BEFORE INSERT ON rows WHEN NEW.key = 'poison'
         BEGIN SELECT RAISE({how}, 'disk full'); END"
    )
}

/// Four commits in one group, the third of which cannot be written; the results of those that were waited for.
fn group(store: &SqliteStore, path: &std::path::Path) -> Vec<Result<u64, CommitError>> {
    let lock = write_lock(path);
    store.queue(put("queued", json!(0))).unwrap();
    let waiting = [
        store.commit(put("before", json!(1))),
        store.commit(put("beside the poison", json!(2)).and(put("poison", json!(2)))),
        store.commit(put("after", json!(3))),
    ];
    drop(lock);
    waiting.into_iter().map(block_on).collect()
}

#[test]
fn a_full_queue_refuses_while_commits_wait_for_room() {
    let (_folder, path) = place();
    let store = SqliteStore::open_with(&path, options(|options| options.queue_bytes = 64 * 1024)).unwrap();
    let lock = write_lock(&path);
    let mut kept = 0;
    while store.queue(put(&format!("{kept}"), json!("x".repeat(1000)))).is_ok() {
        kept += 1;
        assert!(kept < 100, "the queue has no end");
    }
    assert!(kept > 10, "the queue holds almost nothing");
    assert_eq!(store.queue(put("one more", json!("x".repeat(1000)))), Err(StoreError::QueueFull));

    let mut waiting = store.commit(put("larger than the queue", json!("x".repeat(100_000))));
    let mut dropped = store.commit(put("dropped", json!("x".repeat(100_000))));
    let mut context = Context::from_waker(Waker::noop());
    assert!(matches!(waiting.as_mut().poll(&mut context), Poll::Pending));
    assert!(matches!(dropped.as_mut().poll(&mut context), Poll::Pending));
    drop(dropped);
    drop(lock);

    block_on(waiting).unwrap();
    assert!(value(&store, "larger than the queue").is_some());
    assert!(value(&store, &format!("{}", kept - 1)).is_some());
    assert_eq!(value(&store, "one more"), None);
    assert_eq!(value(&store, "dropped"), None);
    store.queue(put("one more", json!(1))).unwrap();
}

#[test]
fn a_reader_does_not_wait_for_a_writer_that_is_stuck() {
    let (_folder, path) = place();
    let store = SqliteStore::open(&path).unwrap();
    block_on(store.commit(put("a", json!(1)))).unwrap();
    let lock = write_lock(&path);
    let waiting = store.commit(put("a", json!(2)));
    assert_eq!(value(&store, "a"), Some(json!(1)), "what is not on the disk is not shown");
    drop(lock);
    block_on(waiting).unwrap();
    assert_eq!(value(&store, "a"), Some(json!(2)));
}

#[test]
fn queued_commits_reach_the_file_by_themselves() {
    let (_folder, path) = place();
    let store =
        SqliteStore::open_with(&path, options(|options| options.queue_delay = Duration::from_millis(1)))
            .unwrap();
    store.queue(put("a", json!(1))).unwrap();
    let other = SqliteStore::open(&path).unwrap();
    while value(&other, "a").is_none() {
        std::thread::yield_now();
    }
}
