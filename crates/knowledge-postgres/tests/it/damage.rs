//! What is read with a digest is what was written, or it is said that it is not.

use quarterdeck_knowledge::ScoreThresholds;
use quarterdeck_knowledge_postgres::{DEFAULT_SCHEMA, KnowledgeDatabase, KnowledgeError};
use quarterdeck_postgres::{Database, PostgresSettings};

use crate::world::{Letters, build, load, on_each_version, records};

#[test]
fn damage_is_found_and_the_next_build_mends_it() {
    on_each_version(async |database| {
        let node = database.node(1_000).await;
        build(&node, &records(60), Some(Letters::new("1"))).await.unwrap();
        let damages = [
            ("UPDATE qd_knowledge.records SET body = body || ' ' WHERE id = 'doc:000007'", 0),
            (
                "UPDATE qd_knowledge.vectors SET vector = set_byte(vector, 9, 255 - get_byte(vector, 9)) WHERE key = \
              (SELECT min(key::text)::uuid FROM qd_knowledge.vectors)",
                1,
            ),
        ];
        for (damage, made_again) in damages {
            database.execute(damage);
            let loaded = node.load(ScoreThresholds::NONE).await;
            assert!(matches!(loaded, Err(KnowledgeError::Damaged(_))), "{damage}");
            let model = Letters::new("1");
            build(&node, &records(60), Some(model.clone())).await.unwrap();
            assert_eq!(model.embedded(), made_again, "{damage}");
            assert_eq!(load(&node).await.unwrap().base.base.records(), records(60), "{damage}");
        }
        database.execute("UPDATE qd_knowledge.parts SET bytes = set_byte(bytes, 40, 255) WHERE name = 'index' AND number = 1");
        let loaded = load(&node).await.unwrap();
        assert!(loaded.base.is_rebuilt, "the index is built again from the records");
        assert!(build(&node, &records(60), Some(Letters::new("1"))).await.unwrap().is_new);
        assert!(!load(&node).await.unwrap().base.is_rebuilt);
    });
}

#[test]
fn vectors_that_are_gone_are_made_again_for_all_nodes() {
    on_each_version(async |database| {
        let node = database.node(1_000).await;
        build(&node, &records(60), Some(Letters::new("1"))).await.unwrap();
        database.execute(
            "DELETE FROM qd_knowledge.vectors WHERE key = (SELECT min(key::text)::uuid FROM qd_knowledge.vectors)",
        );
        assert_eq!(load(&node).await.unwrap().base.base.stats().model, None, "it is searched by words");
        let model = Letters::new("1");
        let built = build(&node, &records(60), Some(model.clone())).await.unwrap();
        assert_eq!((built.generation, built.is_new, model.embedded()), (2, true, 1));
        assert_eq!(load(&node).await.unwrap().base.base.stats().passages, 60);
    });
}

#[test]
fn tables_of_a_newer_version_are_left_alone() {
    on_each_version(async |database| {
        database.node(1_000).await;
        let open = || async {
            let connected = Database::connect(PostgresSettings::from_url(&database.url).unwrap()).unwrap();
            KnowledgeDatabase::open(connected, DEFAULT_SCHEMA, 1_000).await
        };
        database.execute("UPDATE qd_knowledge.versions SET version = 2");
        assert!(open().await.is_ok(), "the version after this one keeps what this one needs");
        database.execute("UPDATE qd_knowledge.versions SET version = 3, compatible_with = 2");
        let refused = open().await.err();
        assert!(matches!(refused, Some(KnowledgeError::Newer { found: 2, known: 1 })), "{refused:?}");
    });
}
