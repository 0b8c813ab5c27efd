//! One node builds, once for all.

use std::time::Duration;

use quarterdeck_knowledge::saved::Changes;
use quarterdeck_knowledge_postgres::{KnowledgeError, Meaning};

use quarterdeck_testkit::PostgresVersion;

use crate::world::{Letters, build, load, on_each_version, on_version, record, records};

#[test]
fn what_is_built_is_loaded_by_another_node() {
    on_each_version(async |database| {
        let (one, other) = (database.node(1_000).await, database.node(1_000).await);
        assert!(load(&one).await.is_none() && other.generation().await.unwrap().is_none());
        let built = build(&one, &records(300), Some(Letters::new("1"))).await.unwrap();
        assert_eq!(
            (built.generation, built.is_new, built.records, built.meaning),
            (1, true, 300, Meaning::InMemory)
        );
        assert_eq!(built.changes, Changes { added: 300, ..Changes::default() });
        let loaded = load(&other).await.unwrap();
        assert_eq!(loaded.generation, one.generation().await.unwrap().unwrap());
        assert_eq!(loaded.base.base.records(), records(300));
        assert!(!loaded.base.is_rebuilt);
        assert_eq!(loaded.base.base.stats().passages, 300);
        assert_eq!((loaded.generation.sources.left_out, loaded.generation.records), (1, 300));
    });
}

#[test]
fn unchanged_records_make_no_new_generation_and_changed_ones_only_their_own_vectors() {
    on_each_version(async |database| {
        let node = database.node(1_000).await;
        let mut all = records(200);
        build(&node, &all, Some(Letters::new("1"))).await.unwrap();
        let again = Letters::new("1");
        let built = build(&node, &all, Some(again.clone())).await.unwrap();
        assert_eq!((built.generation, built.is_new, again.embedded()), (1, false, 0));
        all[3].text = "Something else".to_owned();
        all.pop();
        all.push(record("doc:new", "New", "A new record"));
        let built = build(&node, &all, Some(again.clone())).await.unwrap();
        assert_eq!((built.generation, built.is_new, again.embedded()), (2, true, 2));
        assert_eq!(built.changes, Changes { added: 1, changed: 1, removed: 1, unchanged: 198 });
        // The base before is searched until this one is loaded, so its vectors stay; the build after that forgets them.
        let vectors = || database.execute("SELECT count(*) FROM qd_knowledge.vectors");
        assert_eq!(vectors(), "202");
        all.pop();
        build(&node, &all, Some(again)).await.unwrap();
        assert_eq!(vectors(), "200");
        assert_eq!(load(&node).await.unwrap().base.base.stats().records, 199);
    });
}

#[test]
fn a_node_without_a_model_builds_for_words_and_leaves_the_vectors() {
    on_each_version(async |database| {
        let node = database.node(1_000).await;
        build(&node, &records(50), Some(Letters::new("1"))).await.unwrap();
        let built = build(&node, &records(50), None).await.unwrap();
        assert_eq!((built.generation, built.meaning), (2, Meaning::None));
        assert_eq!(load(&node).await.unwrap().base.base.stats().model, None);
        let again = Letters::new("1");
        build(&node, &records(50), Some(again.clone())).await.unwrap();
        assert_eq!(again.embedded(), 0, "the vectors were there");
        let other = Letters::new("2");
        build(&node, &records(50), Some(other.clone())).await.unwrap();
        assert_eq!(other.embedded(), 50, "vectors of another model are never used");
    });
}

#[test]
fn an_interrupted_build_goes_on_where_it_was() {
    on_each_version(async |database| {
        let node = database.node(1_000).await;
        let mut all = records(400);
        all.push(record("doc:zzz", "unspeakable", "unspeakable"));
        let failed = build(&node, &all, Some(Letters::new("1"))).await;
        assert!(matches!(failed, Err(KnowledgeError::Build(_))), "{failed:?}");
        assert_eq!(node.generation().await.unwrap(), None, "nothing is searched that is not complete");
        all.pop();
        let again = Letters::new("1");
        build(&node, &all, Some(again.clone())).await.unwrap();
        assert!(again.embedded() < 100, "{} were made again", again.embedded());
    });
}

#[test]
fn of_three_nodes_that_build_at_once_one_does_and_the_others_find_it_done() {
    on_each_version(async |database| {
        let slow = |_| Letters::with_pause("1", Duration::from_millis(20));
        let models: Vec<_> = (0..3).map(slow).collect();
        let mut tasks = Vec::new();
        for model in &models {
            let (node, model) = (database.node(1_000).await, model.clone());
            tasks.push(tokio::spawn(async move { build(&node, &records(300), Some(model)).await.unwrap() }));
        }
        let mut new = 0;
        for task in tasks {
            let built = task.await.unwrap();
            assert_eq!(built.generation, 1);
            new += usize::from(built.is_new);
        }
        assert_eq!((new, models.iter().map(|model| model.embedded()).sum::<usize>()), (1, 300));
    });
}

#[test]
fn a_builder_that_was_overtaken_changes_nothing() {
    on_each_version(async |database| {
        let node = database.node(1_000).await;
        let paused = Letters::with_pause("1", Duration::from_millis(200));
        let other = node.clone();
        let building = tokio::spawn(async move { build(&other, &records(100), Some(paused)).await });
        tokio::time::sleep(Duration::from_millis(300)).await;
        // What a node does that saw the lease unchanged for long enough.
        database.execute("UPDATE qd_knowledge.build_lease SET token = token + 1, holder = 'other'");
        let built = building.await.unwrap();
        assert!(matches!(built, Err(KnowledgeError::LeaseLost)), "{built:?}");
        assert_eq!(node.generation().await.unwrap(), None);
        assert_eq!(database.execute("SELECT holder FROM qd_knowledge.build_lease"), "other");
    });
}

#[test]
fn the_lease_of_a_dead_builder_is_taken_over() {
    // It takes its time, and does not depend on the server.
    on_version(PostgresVersion::V18, async |database| {
        let node = database.node(1_000).await;
        let slow = Letters::with_pause("1", Duration::from_secs(30));
        let other = node.clone();
        let building = tokio::spawn(async move { build(&other, &records(10), Some(slow)).await });
        tokio::time::sleep(Duration::from_millis(300)).await;
        // Its future is dropped: it renews nothing any more, and never gives the lease back.
        building.abort();
        let started = std::time::Instant::now();
        let built = build(&node, &records(10), None).await.unwrap();
        assert_eq!(built.generation, 1);
        assert!(started.elapsed() >= Duration::from_secs(15), "{:?}", started.elapsed());
    });
}
