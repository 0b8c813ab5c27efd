//! Meaning in pgvector: the same answers as in memory, as far as its index finds what is near.

use std::collections::BTreeSet;

use quarterdeck_contracts::{EmptyReason, SearchResults};
use quarterdeck_knowledge::KnowledgeBase;
use quarterdeck_knowledge_postgres::{Meaning, PgvectorError};

use quarterdeck_testkit::PostgresVersion;

use crate::world::{
    Letters, TestDatabase, ask, build, load, on_each_version, on_version, record, records, search,
};

const QUESTIONS: [&str; 6] = [
    "the captain and the bear",
    "fog over the hull",
    "sledge dogs in the north",
    "a lamp",
    "rope and tide",
    "nothing of the kind",
];

/// The same base, in memory and in pgvector.
async fn both(database: &TestDatabase, count: usize) -> (KnowledgeBase, KnowledgeBase) {
    let small = database.node(100).await;
    let built = build(&small, &records(count), Some(Letters::new("1"))).await.unwrap();
    assert_eq!(built.meaning, Meaning::Pgvector);
    let elsewhere = load(&small).await.unwrap().base.base;
    let memory = load(&database.node(1_000_000).await).await.unwrap().base.base;
    for base in [&elsewhere, &memory] {
        base.use_model(Letters::new("1"));
    }
    (memory, elsewhere)
}

fn ids(found: &SearchResults) -> Vec<&str> {
    found.results.iter().map(|hit| hit.record.id.as_str()).collect()
}

#[test]
fn filters_return_as_many_as_match_and_scores_are_those_of_memory() {
    on_each_version(async |database| {
        let (memory, elsewhere) = both(&database, 5_000).await;
        for (tags, matching) in [(&["half"][..], 2_500), (&["few"], 50), (&["one"], 1), (&["none"], 0)] {
            for question in QUESTIONS {
                let query = ask(question, 10, tags);
                let (here, there) = (search(&memory, query.clone()).await, search(&elsewhere, query).await);
                assert_eq!(there.results.len(), matching.min(10), "{tags:?} {question}");
                assert_eq!(ids(&there), ids(&here), "{tags:?} {question}");
                assert_eq!((there.degraded, there.empty), (false, here.empty));
                for (one, other) in there.results.iter().zip(&here.results) {
                    assert!((one.score - other.score).abs() < 1e-6, "{tags:?} {question}");
                    assert_eq!(one.snippet, other.snippet);
                }
            }
        }
        let filtered = search(&elsewhere, ask("the captain and the bear", 10, &["none"])).await;
        assert_eq!(filtered.empty, Some(EmptyReason::Filtered));
        assert!(filtered.without_filters.is_some_and(|count| count > 0));
    });
}

#[test]
fn the_index_finds_nearly_all_of_what_is_near() {
    // Both versions have the same pgvector.
    on_version(PostgresVersion::V18, async |database| {
        // More than are compared one by one.
        let (memory, elsewhere) = both(&database, 22_000).await;
        let (mut same, mut all) = (0, 0);
        for question in QUESTIONS {
            let query = ask(question, 10, &[]);
            let (here, there) = (search(&memory, query.clone()).await, search(&elsewhere, query).await);
            let here: BTreeSet<&str> = ids(&here).into_iter().collect();
            assert_eq!(there.results.len(), 10, "{question}");
            same += ids(&there).into_iter().filter(|id| here.contains(id)).count();
            all += here.len();
        }
        assert!(same * 10 >= all * 9, "{same} of {all}");
        let plan = database.execute(
            "SET enable_seqscan = off; SET enable_sort = off; EXPLAIN SELECT key FROM qd_knowledge.embeddings_1 \
             ORDER BY embedding <#> (SELECT embedding FROM qd_knowledge.embeddings_1 LIMIT 1) LIMIT 5",
        );
        assert!(plan.contains("embeddings_1_embedding_idx"), "{plan}");
    });
}

#[test]
fn a_table_is_added_to_while_little_changes_and_made_anew_when_much_does() {
    on_each_version(async |database| {
        let node = database.node(100).await;
        let tables = || {
            database.execute(
                "SELECT string_agg(tablename, ',' ORDER BY tablename) FROM pg_tables WHERE tablename LIKE 'embeddings%'",
            )
        };
        let mut all = records(1_000);
        build(&node, &all, Some(Letters::new("1"))).await.unwrap();
        let old = load(&node).await.unwrap().base.base;
        old.use_model(Letters::new("1"));
        assert_eq!(tables(), "embeddings_1");
        all.push(record("doc:zebra", "Zebra", "Zebra zebra zebra"));
        build(&node, &all, Some(Letters::new("1"))).await.unwrap();
        assert_eq!(tables(), "embeddings_1");
        let new = load(&node).await.unwrap().base.base;
        new.use_model(Letters::new("1"));
        assert_eq!(ids(&search(&new, ask("zebra", 1, &[])).await), ["doc:zebra"]);
        // A node that has not loaded it yet does not stumble over what it does not know.
        assert!(!search(&old, ask("zebra", 10, &[])).await.degraded);

        all.extend(records(2_000).into_iter().skip(1_000));
        build(&node, &all, Some(Letters::new("1"))).await.unwrap();
        assert_eq!(
            tables(),
            "embeddings_1,embeddings_3",
            "the old one is searched until the new one is loaded"
        );
        assert!(!search(&new, ask("zebra", 10, &[])).await.degraded);
        all.pop();
        build(&node, &all, Some(Letters::new("1"))).await.unwrap();
        assert_eq!(tables(), "embeddings_3");
    });
}

#[test]
fn without_pgvector_a_large_base_is_searched_by_words_and_the_way_out_is_told() {
    on_each_version(async |database| {
        // A role that may not create it stands for a server that does not have it.
        database.execute(
            "DROP EXTENSION IF EXISTS vector; DROP ROLE IF EXISTS plain; CREATE ROLE plain LOGIN;
             CREATE SCHEMA qd_knowledge AUTHORIZATION plain",
        );
        let url = database.url.replace("//qd@", "//plain@");
        let plain = database.at(url);
        let node = plain.node(100).await;
        let built = build(&node, &records(300), Some(Letters::new("1"))).await.unwrap();
        assert_eq!(built.meaning, Meaning::Unavailable(PgvectorError::Missing { passages: 300, limit: 100 }));
        let base = load(&node).await.unwrap().base.base;
        base.use_model(Letters::new("1"));
        let found = search(&base, ask("captain bear", 5, &[])).await;
        assert!(found.degraded && found.results.len() == 5);
        // Within the limit of another node no extension is needed.
        let memory = load(&plain.node(1_000).await).await.unwrap().base.base;
        memory.use_model(Letters::new("1"));
        assert!(!search(&memory, ask("captain bear", 5, &[])).await.degraded);
        database.execute("CREATE EXTENSION vector");
        let model = Letters::new("1");
        let built = build(&node, &records(300), Some(model.clone())).await.unwrap();
        assert_eq!((built.meaning, built.is_new, model.embedded()), (Meaning::Pgvector, true, 0));
        database.execute("DROP OWNED BY plain CASCADE; DROP ROLE plain");
    });
}

#[test]
fn a_database_that_cannot_be_asked_leaves_the_words() {
    on_each_version(async |database| {
        let (_, elsewhere) = both(&database, 2_000).await;
        database.execute("ALTER TABLE qd_knowledge.vectors RENAME TO gone");
        let found = search(&elsewhere, ask("captain bear", 5, &[])).await;
        assert!(found.degraded && found.results.len() == 5);
        database.execute("ALTER TABLE qd_knowledge.gone RENAME TO vectors");
        assert!(!search(&elsewhere, ask("captain bear", 5, &[])).await.degraded);
    });
}
