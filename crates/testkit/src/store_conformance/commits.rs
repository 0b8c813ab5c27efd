//! Commits: whole, checked, in order.

use std::thread;
use std::time::{Duration, Instant};

use quarterdeck_contracts::{Commit, CommitError, Scan, StoreError, Table};
use serde_json::json;

use super::{Open, StoreFixture};
use crate::block_on;

/// In several tables, with deletions among the writes.
pub fn a_commit_is_applied_as_a_whole(open: Open) {
    let fixture = StoreFixture::new(open);
    fixture.put(Table::Calls, "old", json!(0));
    let commit = Commit::default()
        .put(Table::Calls, "new", json!(1))
        .put(Table::Values, "new", json!(2))
        .delete(Table::Calls, "old");
    fixture.commit(commit).unwrap();
    assert_eq!(fixture.keys(Table::Calls, Scan::prefix("", 9)), ["new"]);
    assert_eq!(fixture.version(Table::Calls, "new"), fixture.version(Table::Values, "new"));
}

/// One of many is enough.
pub fn a_failed_check_writes_nothing_and_says_which(open: Open) {
    let fixture = StoreFixture::new(open);
    fixture.put(Table::Values, "seen", json!(0));
    let seen = fixture.version(Table::Values, "seen");
    let attempt = |table, key: &str, version| {
        let commit = Commit::default()
            .check(Table::Values, "seen", seen)
            .check(table, key, version)
            .put(Table::Values, "seen", json!(1))
            .put(Table::Calls, "other", json!(1));
        fixture.commit(commit)
    };
    let changed = |table, key: &str| Err(CommitError::Conflict { table, key: key.into() });
    assert_eq!(attempt(Table::Values, "seen", None), changed(Table::Values, "seen"));
    assert_eq!(attempt(Table::Values, "absent", seen), changed(Table::Values, "absent"));
    assert_eq!(attempt(Table::Values, "seen", seen.map(|n| n + 1)), changed(Table::Values, "seen"));
    assert_eq!(attempt(Table::Calls, "seen", Some(u64::MAX)), changed(Table::Calls, "seen"));
    assert_eq!(fixture.value(Table::Values, "seen"), Some(json!(0)));
    assert_eq!(fixture.row(Table::Calls, "other"), None);
    attempt(Table::Calls, "other", None).unwrap();
}

/// A commit that makes a row may check that there was none.
pub fn checks_see_what_was_before_the_commit(open: Open) {
    let fixture = StoreFixture::new(open);
    let make = || Commit::default().put(Table::Blocks, "a", json!(1)).check(Table::Blocks, "a", None);
    fixture.commit(make()).unwrap();
    assert!(matches!(fixture.commit(make()), Err(CommitError::Conflict { .. })));
}

/// Nothing to write is not nothing to say.
pub fn a_commit_may_only_check(open: Open) {
    let fixture = StoreFixture::new(open);
    fixture.commit(Commit::default()).unwrap();
    fixture.commit(Commit::default().check(Table::Blocks, "a", None)).unwrap();
    fixture.put(Table::Blocks, "a", json!(1));
    fixture.commit(Commit::default().check(Table::Blocks, "a", None)).unwrap_err();
}

/// In the order in which they stand.
pub fn the_last_write_of_a_row_wins(open: Open) {
    let fixture = StoreFixture::new(open);
    let commit = Commit::default()
        .put(Table::Values, "a", json!(1))
        .delete(Table::Values, "a")
        .put(Table::Values, "a", json!(2))
        .put(Table::Values, "b", json!(1))
        .delete(Table::Values, "b");
    fixture.commit(commit).unwrap();
    assert_eq!(fixture.value(Table::Values, "a"), Some(json!(2)));
    assert_eq!(fixture.row(Table::Values, "b"), None);
}

/// Deleted and written again, with the same value.
pub fn a_row_that_was_made_anew_is_not_the_old_one(open: Open) {
    let fixture = StoreFixture::new(open);
    fixture.put(Table::Values, "a", json!(1));
    let old = fixture.version(Table::Values, "a");
    fixture.commit(Commit::default().delete(Table::Values, "a")).unwrap();
    fixture.put(Table::Values, "a", json!(1));
    let commit = Commit::default().check(Table::Values, "a", old).put(Table::Values, "a", json!(2));
    fixture.commit(commit).unwrap_err();
}

/// Whether committed or queued, and whichever row.
pub fn versions_grow(open: Open) {
    let fixture = StoreFixture::new(open);
    let mut last = 0;
    for n in 0..50 {
        let key = format!("{}", n % 3);
        let commit = Commit::default().put(Table::Values, key.as_str(), json!(n));
        if n % 2 == 0 {
            fixture.commit(commit).unwrap();
        } else {
            fixture.store.queue(commit).unwrap();
        }
        let version = fixture.version(Table::Values, &key).unwrap();
        assert!(version > last, "{version} came after {last}");
        last = version;
    }
}

/// By gets, by scans, and by the checks of later commits.
pub fn a_queued_commit_is_seen_at_once_and_comes_before_later_ones(open: Open) {
    let fixture = StoreFixture::new(open);
    for n in 0..200 {
        fixture.store.queue(Commit::default().put(Table::Calls, "a", json!(n))).unwrap();
        match n % 3 {
            0 => assert_eq!(fixture.value(Table::Calls, "a"), Some(json!(n))),
            1 => {
                let rows = block_on(fixture.store.scan(Table::Calls, Scan::prefix("", 9))).unwrap();
                assert_eq!(rows[0].1.value, json!(n));
            }
            _ => fixture.put(Table::Calls, "b", json!(n)),
        }
        let seen = fixture.version(Table::Calls, "a");
        let commit = Commit::default().check(Table::Calls, "a", seen).delete(Table::Calls, "a");
        fixture.store.queue(commit).unwrap();
        assert_eq!(fixture.row(Table::Calls, "a"), None);
    }
    fixture.store.queue(Commit::default().put(Table::Calls, "a", json!("queued"))).unwrap();
    fixture.commit(Commit::default().put(Table::Calls, "a", json!("committed"))).unwrap();
    assert_eq!(fixture.value(Table::Calls, "a"), Some(json!("committed")));
}

/// And takes nothing else with it.
pub fn a_queued_commit_whose_check_fails_is_dropped(open: Open) {
    let fixture = StoreFixture::new(open);
    let queue = |commit| fixture.store.queue(commit).unwrap();
    queue(Commit::default().put(Table::Calls, "a", json!(1)));
    queue(Commit::default().check(Table::Calls, "a", None).put(Table::Calls, "a", json!(2)));
    queue(Commit::default().put(Table::Calls, "b", json!(3)));
    assert_eq!(fixture.value(Table::Calls, "a"), Some(json!(1)));
    assert_eq!(fixture.value(Table::Calls, "b"), Some(json!(3)));
}

/// Several rounds, each on the row that the last one left.
pub fn of_a_hundred_commits_from_one_version_one_wins(open: Open) {
    let fixture = StoreFixture::new(open);
    for round in 0..5 {
        let seen = fixture.version(Table::Sessions, "a");
        let results: Vec<_> = thread::scope(|scope| {
            let attempts: Vec<_> = (0..100)
                .map(|n| {
                    let commit = Commit::default().check(Table::Sessions, "a", seen).put(
                        Table::Sessions,
                        "a",
                        json!([round, n]),
                    );
                    let store = &fixture.store;
                    scope.spawn(move || block_on(store.commit(commit)))
                })
                .collect();
            attempts.into_iter().map(|attempt| attempt.join().unwrap()).collect()
        });
        let winners: Vec<_> = (0..100).filter(|n| results[*n].is_ok()).collect();
        assert_eq!(winners.len(), 1, "round {round}");
        assert_eq!(fixture.value(Table::Sessions, "a"), Some(json!([round, winners[0]])));
        let lost = CommitError::Conflict { table: Table::Sessions, key: "a".into() };
        assert_eq!(results.iter().filter(|result| **result == Err(lost.clone())).count(), 99);
    }
}

/// The future is dropped at once, or after it was looked at.
pub fn commit_whose_caller_is_gone_is_applied_as_a_whole(open: Open) {
    let fixture = StoreFixture::new(open);
    for n in 0..100 {
        let key = format!("{n:03}");
        let commit = Commit::default().put(Table::Calls, key.as_str(), json!(n)).put(
            Table::Values,
            key.as_str(),
            json!(n),
        );
        drop(fixture.store.commit(commit));
    }
    fixture.put(Table::Blocks, "after", json!(1));
    // Some may still be under way. What is read later then has at least the commits that were read before.
    let deadline = Instant::now() + Duration::from_secs(10);
    loop {
        let calls = fixture.keys(Table::Calls, Scan::prefix("", 1000));
        let values = fixture.keys(Table::Values, Scan::prefix("", 1000));
        assert!(calls.iter().all(|key| values.contains(key)), "{calls:?} is not within {values:?}");
        if calls == values {
            return;
        }
        assert!(Instant::now() < deadline, "{calls:?} and {values:?} stay different");
    }
}

/// What the queue takes, it keeps, in order; what it refuses leaves no trace.
pub fn a_flood_is_refused_or_kept(open: Open) {
    let fixture = StoreFixture::new(open);
    let mut kept = Vec::new();
    for n in 0..20_000 {
        let key = format!("{n:05}");
        match fixture.store.queue(Commit::default().put(Table::Calls, key.as_str(), json!("x".repeat(200)))) {
            Ok(_) => kept.push(key),
            Err(error) => assert_eq!(error, StoreError::QueueFull),
        }
    }
    assert_eq!(fixture.keys(Table::Calls, Scan::prefix("", 30_000)), kept);
}
