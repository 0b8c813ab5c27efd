//! Windows on a store in memory, at given times.

use std::sync::Arc;

use quarterdeck_contracts::{Commit, CommitError, Store, Table};
use quarterdeck_store::MemoryStore;
use quarterdeck_testkit::block_on;

use super::*;

fn limit(calls: u64, window_ms: u64) -> RateLimit {
    RateLimit { calls, window_ms, per: RateLimitScope::Client }
}

/// The window of these tests.
const KEY: &str = "t/client/ann";

/// Takes a slot at a time, or returns when to retry.
fn take(store: &MemoryStore, limit: &RateLimit, now_ms: u64) -> Result<(), u64> {
    let commit = Commit::default().take(super::take("t", limit, "ann", "s1", now_ms));
    match block_on(store.commit(commit)) {
        Ok(_) => Ok(()),
        Err(CommitError::Exhausted { key, retry_after_ms }) if key == KEY => Err(retry_after_ms),
        Err(error) => panic!("{error}"),
    }
}

fn groups(store: &MemoryStore) -> usize {
    block_on(store.get(Table::Rates, KEY)).unwrap().unwrap().value.as_array().unwrap().len()
}

#[test]
fn a_window_is_exact_to_the_millisecond() {
    let (store, limit) = (MemoryStore::new(), limit(2, 1_000));
    assert_eq!(take(&store, &limit, 10_000), Ok(()));
    assert_eq!(take(&store, &limit, 10_003), Ok(()));
    assert_eq!(take(&store, &limit, 10_003), Err(997), "when the first one leaves the window");
    assert_eq!(take(&store, &limit, 10_999), Err(1));
    assert_eq!(take(&store, &limit, 11_000), Ok(()), "a window later it is free");
    assert_eq!(take(&store, &limit, 11_002), Err(1));
    assert_eq!(take(&store, &limit, 11_003), Ok(()));
}

#[test]
fn a_refusal_takes_nothing() {
    let (store, limit) = (MemoryStore::new(), limit(1, 1_000));
    assert_eq!(take(&store, &limit, 0), Ok(()));
    for now_ms in 1..1_000 {
        assert_eq!(take(&store, &limit, now_ms), Err(1_000 - now_ms));
    }
    assert_eq!(take(&store, &limit, 1_000), Ok(()));
}

#[test]
fn steady_traffic_below_the_limit_is_never_refused() {
    // Six hundred calls a minute where a thousand are allowed.
    let (store, limit) = (MemoryStore::new(), limit(1_000, 60_000));
    for n in 0..1_500 {
        assert_eq!(take(&store, &limit, 1_000_000 + n * 100), Ok(()), "call {n}");
    }
}

#[test]
fn many_calls_are_kept_in_few_groups_and_never_exceed_the_limit() {
    for window_ms in [100, 60_000] {
        let (store, limit) = (MemoryStore::new(), limit(1_000, window_ms));
        let taken = (0..1_200).filter(|n| take(&store, &limit, 7 + n * window_ms / 2_000).is_ok()).count();
        assert_eq!(taken, 1_000);
        assert!(groups(&store) <= 257, "{}", groups(&store));
        assert_eq!(take(&store, &limit, 7 + 2 * window_ms), Ok(()));
        assert_eq!(groups(&store), 1, "what has left the window is forgotten");
    }
}

#[test]
fn a_clock_that_goes_back_does_not_open_the_window() {
    let (store, limit) = (MemoryStore::new(), limit(1, 1_000));
    assert_eq!(take(&store, &limit, 5_000), Ok(()));
    assert_eq!(take(&store, &limit, 4_000), Err(2_000));
}

#[test]
fn each_scope_has_a_window_of_its_own() {
    let of = |per| super::take("t", &RateLimit { per, ..limit(1, 1) }, "ann", "s1", 0).key;
    assert_eq!(of(RateLimitScope::Client), "t/client/ann");
    assert_eq!(of(RateLimitScope::Session), "t/session/s1");
    assert_eq!(of(RateLimitScope::Global), "t/global");
}

#[test]
fn fifty_who_come_at_once_take_no_more_than_there_is() {
    let (store, limit) = (Arc::new(MemoryStore::new()), limit(7, 1_000));
    let takers: Vec<_> = (0..50)
        .map(|_| {
            let (store, limit) = (store.clone(), limit.clone());
            std::thread::spawn(move || take(&store, &limit, 500).is_ok())
        })
        .collect();
    let taken = takers.into_iter().map(|taker| taker.join().unwrap()).filter(|it| *it).count();
    assert_eq!(taken, 7);
}

#[test]
fn a_clock_that_was_set_back_takes_no_slot_for_longer_than_two_windows() {
    for back in [1_000, 1_500, 3_600_000] {
        let (store, limit) = (MemoryStore::new(), limit(1, 1_000));
        assert_eq!(take(&store, &limit, 10_000_000), Ok(()));
        let now = 10_000_000 - back;
        let wait = take(&store, &limit, now).err().unwrap_or(0);
        assert!(wait <= 2_000, "{back}: {wait}");
        if wait > 0 {
            assert_eq!(take(&store, &limit, now + wait), Ok(()), "{back}");
        }
    }
}
