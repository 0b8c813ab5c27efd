//! What nodes that share a store rely on: versions as tokens, rate limits, and news of changes.

use std::future::poll_fn;
use std::sync::Arc;
use std::task::Poll;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use quarterdeck_contracts::{Change, ChangeEvent, Changes, Commit, CommitError, Scan, Table, Take};
use serde_json::json;

use super::{Open, StoreFixture};
use crate::block_on;

#[expect(
    clippy::disallowed_methods,
    reason = "a limit of an engine that keeps time itself is tested by the same clock"
)]
fn now_ms() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_millis() as u64
}

/// A limit for an hour, so that no test waits for its end.
fn take(key: &str, limit: u64) -> Take {
    Take { key: key.into(), count: 1, limit, window_ms: 3_600_000, now_ms: now_ms() }
}

/// What a commit answers is what a later check wants.
pub fn a_commit_tells_the_version_of_its_rows(open: Open) {
    let fixture = StoreFixture::new(open);
    let first = fixture.commit(Commit::default().put(Table::Leases, "a", json!(1))).unwrap();
    assert_eq!(fixture.version(Table::Leases, "a"), Some(first));
    let second = Commit::default().check(Table::Leases, "a", Some(first)).put(Table::Leases, "a", json!(2));
    let second = fixture.commit(second).unwrap();
    assert!(second > first);
    assert_eq!(fixture.commit(Commit::default().check(Table::Leases, "a", Some(second))), Ok(0));
}

/// A limit that is full refuses the whole commit, and a commit that fails takes nothing.
pub fn a_rate_limit_is_counted_with_its_commit(open: Open) {
    let fixture = StoreFixture::new(open);
    let commit = |n: u64| Commit::default().take(take("two", 2)).put(Table::Values, n.to_string(), json!(n));
    fixture.commit(commit(1).check(Table::Values, "missing", Some(7))).unwrap_err();
    fixture.commit(commit(2)).unwrap();
    fixture.commit(commit(3)).unwrap();
    match fixture.commit(commit(4)) {
        Err(CommitError::Exhausted { key, retry_after_ms }) => {
            assert_eq!(key, "two");
            assert!((1..=3_600_000).contains(&retry_after_ms), "{retry_after_ms}");
        }
        other => panic!("{other:?}"),
    }
    assert_eq!(fixture.keys(Table::Values, Scan::prefix("", 10)), ["2", "3"]);
    fixture.commit(Commit::default().take(take("another", 2))).unwrap();
    let three = Take { count: 3, ..take("three", 3) };
    fixture.commit(Commit::default().take(three.clone())).unwrap();
    fixture.commit(Commit::default().take(three)).unwrap_err();
}

/// A place is free again when its window is over.
pub fn a_rate_limit_has_room_again_after_its_window(open: Open) {
    let fixture = StoreFixture::new(open);
    let short = |now_ms| Take { key: "short".into(), count: 1, limit: 1, window_ms: 300, now_ms };
    fixture.commit(Commit::default().take(short(now_ms()))).unwrap();
    let Err(CommitError::Exhausted { retry_after_ms, .. }) =
        fixture.commit(Commit::default().take(short(now_ms())))
    else {
        panic!("there was no room");
    };
    assert!(retry_after_ms <= 300, "{retry_after_ms}");
    std::thread::sleep(Duration::from_millis(retry_after_ms + 20));
    fixture.commit(Commit::default().take(short(now_ms()))).unwrap();
}

/// A hundred at once get the places that there are, without trying again.
pub fn of_a_hundred_takers_as_many_win_as_there_is_room(open: Open) {
    let fixture = Arc::new(StoreFixture::new(open));
    let takers: Vec<_> = (0..100)
        .map(|_| {
            let fixture = fixture.clone();
            std::thread::spawn(move || fixture.commit(Commit::default().take(take("seven", 7))))
        })
        .collect();
    let results: Vec<_> = takers.into_iter().map(|taker| taker.join().unwrap()).collect();
    assert_eq!(results.iter().filter(|result| result.is_ok()).count(), 7);
    let others = results.into_iter().filter_map(Result::err);
    assert!(others.into_iter().all(|error| matches!(error, CommitError::Exhausted { .. })));
}

/// After a flush, what was queued is there for everybody.
pub fn a_flush_waits_for_what_was_queued(open: Open) {
    let fixture = StoreFixture::new(open);
    for n in 0..50 {
        fixture.store.queue(Commit::default().put(Table::Values, format!("{n:02}"), json!(n))).unwrap();
    }
    block_on(fixture.store.flush()).unwrap();
    assert_eq!(fixture.keys(Table::Values, Scan::prefix("", 100)).len(), 50);
}

/// Everybody who watches hears of a change, in the order of the changes.
pub fn watchers_hear_of_changes(open: Open) {
    let fixture = StoreFixture::new(open);
    let (mut one, mut two) = (fixture.store.watch(), fixture.store.watch());
    let changes = ["first", "second"].map(|key| Change { topic: "test".into(), key: key.into() });
    // A watcher may begin to hear a moment after it was asked for, so the first change is told until it is heard.
    let deadline = Instant::now() + Duration::from_secs(10);
    for watcher in [&mut one, &mut two] {
        while !hears(watcher, &changes[0]) {
            assert!(Instant::now() < deadline, "nothing was heard");
            fixture.store.notify(changes[0].clone());
            std::thread::sleep(Duration::from_millis(20));
        }
    }
    fixture.store.notify(changes[1].clone());
    for watcher in [&mut one, &mut two] {
        while !hears(watcher, &changes[1]) {
            assert!(Instant::now() < deadline, "the second change was not heard");
            std::thread::sleep(Duration::from_millis(5));
        }
    }
}

/// Whether a change is among those that wait.
fn hears(watcher: &mut Changes, wanted: &Change) -> bool {
    loop {
        let next = block_on(poll_fn(|context| match watcher.as_mut().poll_next(context) {
            Poll::Ready(event) => Poll::Ready(event),
            Poll::Pending => Poll::Ready(None),
        }));
        match next {
            None => return false,
            Some(ChangeEvent::Changed(change)) if change == *wanted => return true,
            Some(_) => {}
        }
    }
}
