//! `quarterdeck kb` where the store is a database: one folder builds, others have no records of their own.

use std::fs;
use std::path::Path;

use quarterdeck_testkit::{PostgresServer, PostgresVersion, tree};

use crate::kb_model::write_model;
use crate::terminal::command;

/// Exit code and everything that was printed.
fn run(folder: &Path, variables: &[(&str, &str)], arguments: &[&str]) -> (Option<i32>, String) {
    let mut command = command(folder);
    command.env("XDG_CACHE_HOME", folder.join("cache")).envs(variables.iter().copied()).args(arguments);
    let output = command.output().unwrap();
    let text = String::from_utf8_lossy(&output.stdout) + String::from_utf8_lossy(&output.stderr);
    (output.status.code(), text.into_owned())
}

const RECORDS: &str = "
    //- kb/studio/doc/hull.md
    # The hull

    The hull is round.

    //- kb/studio/person/captain.md
    # The captain

    The captain led the second expedition.
";

#[test]
fn one_machine_builds_and_another_without_records_searches() {
    for version in PostgresVersion::ALL {
        let Some(server) = PostgresServer::shared(version) else { return };
        let url = server.create_database();
        let shared = [("QUARTERDECK_STORE__URL", &*url)];
        let (files, elsewhere) = (tree(RECORDS), tree("//- notes.txt\nNo records here.\n"));
        for folder in [files.path(), elsewhere.path()] {
            write_model(&folder.join("model"), [[1., 1.], [0., 1.], [1., 0.]]);
            assert_eq!(run(folder, &shared, &["kb", "model", "install", "model"]).0, Some(0));
        }
        let (code, text) = run(elsewhere.path(), &shared, &["kb", "search", "hull"]);
        assert!(code == Some(1) && text.contains("no knowledge base was built yet"), "{text}");
        let (code, text) = run(files.path(), &shared, &["kb", "build"]);
        assert!(code == Some(0) && text.contains("2 records in the database, generation 1: 2 new"), "{text}");
        let (code, text) =
            run(elsewhere.path(), &shared, &["kb", "search", "round hull", "--format", "json"]);
        assert!(
            code == Some(0) && text.contains("doc:hull") && text.contains("\"degraded\": false"),
            "{text}"
        );
        let (code, text) = run(elsewhere.path(), &shared, &["kb", "get", "person:captain"]);
        assert!(code == Some(0) && text.contains("second expedition"), "{text}");

        fs::write(files.join("kb/studio/doc/lamp.md"), "# The lamp\n\nOil for one winter.\n").unwrap();
        let in_database = [shared[0], ("QUARTERDECK_KB__MAX_PASSAGES_IN_MEMORY", "1")];
        let (code, text) = run(files.path(), &in_database, &["kb", "build"]);
        assert!(code == Some(0) && text.contains("generation 2: 1 new, 0 changed, 0 gone"), "{text}");
        assert!(text.contains("vectors are searched in the database"), "{text}");
        let (code, text) = run(elsewhere.path(), &in_database, &["kb", "search", "hull", "--format", "json"]);
        assert!(
            code == Some(0) && text.contains("doc:hull") && text.contains("\"degraded\": false"),
            "{text}"
        );
    }
}

#[test]
fn an_evaluation_in_the_database_agrees_with_that_in_memory_and_leaves_nothing_behind() {
    let Some(server) = PostgresServer::shared(PostgresVersion::V18) else { return };
    let url = server.create_database();
    let files = tree(
        "
        //- corpus.jsonl
        {\"_id\": \"1\", \"title\": \"The hull\", \"text\": \"It is round.\"}
        {\"_id\": \"2\", \"title\": \"The captain\", \"text\": \"He led the ship.\"}
        //- queries.jsonl
        {\"_id\": \"a\", \"text\": \"round hull\"}
        {\"_id\": \"b\", \"text\": \"captain\"}
        //- qrels.tsv
        query-id\tcorpus-id\tscore
        a\t1\t1
        b\t2\t1
        ",
    );
    write_model(&files.join("model"), [[1., 1.], [0., 1.], [1., 0.]]);
    let shared = [("QUARTERDECK_STORE__URL", &*url)];
    assert_eq!(run(files.path(), &shared, &["kb", "model", "install", "model"]).0, Some(0));
    let measure = |engine: &str, variables: &[(&str, &str)]| {
        let set = ["--corpus", "corpus.jsonl", "--queries", "queries.jsonl", "--qrels", "qrels.tsv"];
        let mut arguments = vec!["kb", "eval", "--mode", "hybrid", "--engine", engine];
        arguments.extend(set);
        run(files.path(), variables, &arguments)
    };
    let (code, text) = measure("memory", &shared);
    assert!(code == Some(0) && text.contains("nDCG@10    1.0000"), "{text}");
    let (code, text) = measure("database", &shared);
    assert!(code == Some(0) && text.contains("nDCG@10    1.0000"), "{text}");
    let name = url.rsplit('/').next().unwrap().split('?').next().unwrap();
    assert_eq!(
        server.execute(name, "SELECT count(*) FROM pg_namespace WHERE nspname LIKE 'qd_knowledge%'"),
        "0"
    );
    let (code, text) = measure("database", &[]);
    assert!(code == Some(2) && text.contains("there is no database to measure"), "{text}");
}
