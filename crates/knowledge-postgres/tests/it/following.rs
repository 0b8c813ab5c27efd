//! Nodes follow what one of them builds.

use std::sync::Arc;
use std::time::Duration;

use quarterdeck_contracts::{Knowledge, Namespace, Namespaces, Store};
use quarterdeck_knowledge::KnowledgeBase;
use quarterdeck_knowledge_postgres::announce;
use quarterdeck_store::MemoryStore;

use crate::world::{Letters, ask, build, load, on_each_version, record, records, search};

async fn has(base: &KnowledgeBase, id: &str) -> bool {
    base.get(vec![id.to_owned()], Namespaces::from(Namespace::ALL)).await.is_ok()
}

#[test]
fn a_node_loads_what_another_announces_and_searches_the_old_one_until_then() {
    on_each_version(async |database| {
        let node = database.node(10_000).await;
        let mut all = records(2_000);
        build(&node, &all, Some(Letters::new("1"))).await.unwrap();
        let loaded = load(&node).await.unwrap();
        let base = loaded.base.base;
        base.use_model(Letters::new("1"));
        let store = Arc::new(MemoryStore::new());
        let following =
            tokio::spawn(node.clone().follow(base.clone(), Some(loaded.generation.number), store.watch()));

        all.push(record("doc:zebra", "Zebra", "A zebra on the ice"));
        let searching = base.clone();
        let searches = tokio::spawn(async move {
            loop {
                let found = search(&searching, ask("captain bear", 5, &[])).await;
                assert!(found.results.len() == 5 && !found.degraded);
                tokio::task::yield_now().await;
            }
        });
        let built = build(&database.node(10_000).await, &all, Some(Letters::new("1"))).await.unwrap();
        assert!(!has(&base, "doc:zebra").await, "nothing was announced yet");
        announce(&*store, built.generation);
        for _ in 0..200 {
            if has(&base, "doc:zebra").await {
                break;
            }
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
        assert!(has(&base, "doc:zebra").await);
        assert!(!searches.is_finished(), "searches went on");
        searches.abort();
        following.abort();
    });
}

#[test]
fn a_notification_that_was_lost_is_made_up_for() {
    on_each_version(async |database| {
        let node = database.node(10_000).await;
        build(&node, &records(20), None).await.unwrap();
        let base = load(&node).await.unwrap().base.base;
        let following = tokio::spawn(node.clone().follow(base.clone(), Some(1), MemoryStore::new().watch()));
        build(&node, &records(21), None).await.unwrap();
        let started = std::time::Instant::now();
        while base.stats().records != 21 {
            assert!(started.elapsed() < Duration::from_secs(20), "it was not noticed");
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
        following.abort();
    });
}

#[test]
fn a_node_that_ends_while_it_loads_harms_nothing() {
    on_each_version(async |database| {
        let node = database.node(100_000).await;
        build(&node, &records(3_000), Some(Letters::new("1"))).await.unwrap();
        for after in [1, 3, 10, 30] {
            let other = database.node(100_000).await;
            let loading = tokio::spawn(async move { load(&other).await });
            tokio::time::sleep(Duration::from_millis(after)).await;
            loading.abort();
        }
        let mut all = records(3_000);
        all.pop();
        assert_eq!(build(&node, &all, Some(Letters::new("1"))).await.unwrap().generation, 2);
        assert_eq!(load(&node).await.unwrap().base.base.stats().records, 2_999);
        let idle = "SELECT count(*) FROM pg_stat_activity WHERE state = 'idle in transaction'";
        assert_eq!(database.execute(idle), "0");
    });
}
