//! Many at once: one order of locks, a small pool, and the clock of the server.

use std::collections::BTreeMap;
use std::thread;

use quarterdeck_contracts::{Commit, CommitError, Store, Table, Take};
use quarterdeck_testkit::{PostgresServer, PostgresVersion, block_on};
use serde_json::{Value, json};

use super::support::{database_of, open};

#[test]
fn rows_in_opposite_orders_from_two_nodes_do_not_deadlock() {
    let Some(server) = PostgresServer::shared(PostgresVersion::V18) else { return };
    let url = server.create_database();
    let nodes = [open(&url), open(&url)];
    thread::scope(|scope| {
        for writer in 0..16_usize {
            let store = &nodes[writer % 2];
            scope.spawn(move || {
                for n in 0..25_usize {
                    // Two of twenty, and half of the writers name the higher one first.
                    let (low, high) = ((writer + n) % 19, 19);
                    let rows = if writer % 4 < 2 { [low, high] } else { [high, low] };
                    let mut commit = Commit::default();
                    for row in rows {
                        commit = commit.put(Table::Values, format!("{row:02}"), json!([writer, n]));
                    }
                    let queued = commit.clone();
                    block_on(store.commit(commit)).unwrap();
                    if n % 5 == 0 {
                        store.queue(queued).unwrap();
                    }
                }
            });
        }
    });
    for node in &nodes {
        block_on(node.flush()).unwrap();
    }
    let deadlocks = server.execute(
        "postgres",
        &format!(
            "SELECT pg_stat_force_next_flush() IS NULL, deadlocks FROM pg_stat_database WHERE datname = '{}'",
            database_of(&url)
        ),
    );
    assert!(deadlocks.ends_with("|0"), "{deadlocks}");
}

#[test]
fn two_connections_serve_two_hundred_calls() {
    let Some(server) = PostgresServer::shared(PostgresVersion::V18) else { return };
    let url = server.create_database();
    let store = open(&format!("{url}&pool_size=2"));
    thread::scope(|scope| {
        for n in 0..200 {
            let store = &store;
            scope.spawn(move || {
                let key = format!("{n}");
                store.queue(Commit::default().put(Table::Calls, key.as_str(), json!(n))).unwrap();
                block_on(store.commit(Commit::default().put(Table::Values, key.as_str(), json!(n)))).unwrap();
                assert!(block_on(store.get(Table::Calls, &key)).unwrap().is_some());
            });
        }
    });
    let connections = server.execute(
        "postgres",
        &format!(
            "SELECT count(*) FROM pg_stat_activity WHERE datname = '{}' AND application_name = 'quarterdeck'",
            database_of(&url)
        ),
    );
    assert_eq!(connections, "2");
}

#[test]
fn rate_limit_goes_by_the_clock_of_the_server() {
    let Some(server) = PostgresServer::shared(PostgresVersion::V18) else { return };
    let url = server.create_database();
    let nodes = [open(&url), open(&url)];
    // One node's clock stands at 1970, the other's is far ahead.
    let take = |now_ms| Take { key: "calls".into(), count: 1, limit: 50, window_ms: 60_000, now_ms };
    let results: Vec<_> = thread::scope(|scope| {
        let takers: Vec<_> = (0..500_usize)
            .map(|n| {
                let (node, now_ms) = (&nodes[n % 2], if n % 2 == 0 { 0 } else { 9_000_000_000_000 });
                scope.spawn(move || block_on(node.commit(Commit::default().take(take(now_ms)))))
            })
            .collect();
        takers.into_iter().map(|taker| taker.join().unwrap()).collect()
    });
    assert_eq!(results.iter().filter(|result| result.is_ok()).count(), 50);
    for result in results {
        if let Err(error) = result {
            assert!(matches!(error, CommitError::Exhausted { .. }), "{error}");
        }
    }
}

/// The window has the form that every engine reads, and stays small.
#[test]
fn long_window_is_kept_in_groups_that_every_engine_reads() {
    let Some(server) = PostgresServer::shared(PostgresVersion::V16) else { return };
    let store = open(&server.create_database());
    let take = Take { key: "many".into(), count: 2, limit: 1_000, window_ms: 60_000, now_ms: 0 };
    for _ in 0..300 {
        block_on(store.commit(Commit::default().take(take.clone()))).unwrap();
    }
    let window = block_on(store.get(Table::Rates, "many")).unwrap().unwrap().value;
    let groups = window.as_array().unwrap();
    assert!(groups.len() <= 256, "{}", groups.len());
    let calls =
        |groups: &[Value]| -> u64 { groups.iter().map(|group| group["calls"].as_u64().unwrap()).sum() };
    assert_eq!(calls(groups), 600);
    let newest = groups.iter().map(|group| group["at"].as_u64().unwrap()).max().unwrap();
    let counted = take.count_in(Some(window.clone()), newest);
    let quarterdeck_contracts::Taken::Counted { window, .. } = counted else { panic!("there was room") };
    assert_eq!(calls(window.as_array().unwrap()), 602);
}

/// What the queue puts together has the same outcome as one commit after the other.
#[test]
fn queued_commits_that_depend_on_each_other_keep_their_order() {
    let Some(server) = PostgresServer::shared(PostgresVersion::V18) else { return };
    let store = open(&server.create_database());
    let lease = block_on(store.commit(Commit::default().put(Table::Leases, "s", json!("mine")))).unwrap();
    let mut expected = BTreeMap::new();
    for n in 0..200_u64 {
        let key = format!("{}", n % 7);
        let mut commit = Commit::default().put(Table::Calls, key.as_str(), json!(n));
        match n % 5 {
            // Holds for the first time only.
            0 => commit = commit.check(Table::Calls, key.as_str(), None),
            1 => commit = commit.check(Table::Leases, "s", Some(lease)),
            // Never holds.
            2 => commit = commit.check(Table::Leases, "s", Some(lease + 1)),
            _ => {}
        }
        let holds = n % 5 != 2 && (n % 5 != 0 || !expected.contains_key(&key));
        if holds {
            expected.insert(key, json!(n));
        }
        store.queue(commit).unwrap();
    }
    for (key, value) in expected {
        assert_eq!(block_on(store.get(Table::Calls, &key)).unwrap().unwrap().value, value, "{key}");
    }
}
