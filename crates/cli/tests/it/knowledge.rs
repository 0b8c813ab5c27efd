//! `quarterdeck kb`, on a small base of its own.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use expect_test::expect;
use quarterdeck_contracts::{Knowledge, KnowledgeQuery, Namespace, RecordFilters};
use quarterdeck_knowledge::{KnowledgeBase, read_folder};
use quarterdeck_testkit::{Tree, block_on, tree};

use crate::terminal::{check, quarterdeck, stdout_json};

fn base() -> Tree {
    tree(
        "
        //- kb/studio/doc/hull.md
        ---
        tags: [ship]
        last_updated: 2025-03-14
        ---
        # The hull of the Fram

        Colin Archer gave her a rounded hull. The ice was to lift her instead of crushing her.

        //- kb/studio/person/otto-sverdrup.md
        ---
        tags: [captain]
        ---
        # Otto Sverdrup

        He was captain of the Fram, and led her second expedition.

        //- kb/personal/doc/diary.md
        # A diary

        The hull leaks, says the diary.
        ",
    )
}

#[test]
fn a_search_shows_what_answers_and_why() {
    check(
        base().path(),
        &["kb", "search", "rounded hull"],
        expect![[r#"
            exit 0
            --- stdout
            The hull of the Fram  ██████████████······ 0.71  doc:hull
                Colin Archer gave her a rounded hull. The ice was to lift her instead of crushing her.
                matched by hull, rounded

            (searched by words only; `quarterdeck kb build` adds meaning)
            --- stderr
        "#]],
    );
}

#[test]
fn a_misspelt_name_is_found_and_nothing_is_said_to_be_nothing() {
    let files = base();
    let found = stdout_json(&quarterdeck(files.path(), &["kb", "search", "Svedrup", "--format", "json"]));
    assert_eq!(found["results"][0]["record"]["id"], "person:otto-sverdrup");
    check(
        files.path(),
        &["kb", "search", "tax returns"],
        expect![[r#"
            exit 1
            --- stdout
            no results
            (searched by words only; `quarterdeck kb build` adds meaning)
            --- stderr
        "#]],
    );
    check(
        files.path(),
        &["kb", "search", "hull", "--type", "person"],
        expect![[r#"
            exit 1
            --- stdout
            no results with these filters; 1 record without them
            (searched by words only; `quarterdeck kb build` adds meaning)
            --- stderr
        "#]],
    );
}

#[test]
fn a_record_is_shown_whole_and_an_unknown_one_has_neighbours() {
    let files = base();
    check(
        files.path(),
        &["kb", "get", "doc:hull"],
        expect![[r#"
        exit 0
        --- stdout
        The hull of the Fram
        doc:hull in studio, last changed on 2025-03-14, filed under ship

        # The hull of the Fram

        Colin Archer gave her a rounded hull. The ice was to lift her instead of crushing her.

        --- stderr
    "#]],
    );
    check(
        files.path(),
        &["kb", "get", "doc:hul"],
        expect![[r#"
        exit 2
        --- stdout
        --- stderr
        error: there is no record `doc:hul`; the nearest ids are doc:hull
    "#]],
    );
}

#[test]
fn every_fault_of_a_base_is_told_with_its_place() {
    let files = base();
    files.write("kb/studio/doc/bad.md", "---\ntags: yes\n---\n# Bad\n\nSee [Hansen](person:hansen).\n");
    files.write("kb/studio/doc/untitled.md", "No heading.\n");
    check(
        files.path(),
        &["kb", "check"],
        expect![[r#"
        exit 1
        --- stdout
        --- stderr
        kb/studio/doc/bad.md:6 the link to `person:hansen` leads nowhere
        kb/studio/doc/untitled.md:1 a record has a `title`, or a first heading `# …`
        4 sound records, 2 problems
    "#]],
    );
    // Only of a record that is not served it is said that it was left out.
    let printed = String::from_utf8(quarterdeck(files.path(), &["kb", "stats"]).stderr).unwrap();
    assert!(
        printed.contains("noticed: kb/studio/doc/bad.md:6") && printed.contains("4 records"),
        "{printed}"
    );
    assert!(printed.contains("left out: kb/studio/doc/untitled.md:1"), "{printed}");
    check(
        files.path(),
        &["kb", "check", "--kb", "nowhere"],
        expect![[r#"
            exit 2
            --- stdout
            --- stderr
            error: there is no folder nowhere; point `--kb` or `kb.folder` at one that holds records
        "#]],
    );
}

#[test]
fn search_is_measured_on_questions_of_ones_own() {
    let files = tree("");
    files.write("corpus.jsonl", "{\"_id\":\"a\",\"title\":\"Ice\",\"text\":\"Frozen water.\"}\n{\"_id\":\"b\",\"title\":\"Dogs\",\"text\":\"They pull sledges.\"}\n");
    files.write(
        "queries.jsonl",
        "{\"_id\":\"1\",\"text\":\"frozen\"}\n{\"_id\":\"2\",\"text\":\"sledge dog\"}\n",
    );
    files.write("qrels.tsv", "query-id\tcorpus-id\tscore\n1\ta\t1\n2\tb\t1\n");
    let arguments = [
        "kb",
        "eval",
        "--corpus",
        "corpus.jsonl",
        "--queries",
        "queries.jsonl",
        "--qrels",
        "qrels.tsv",
        "--run-out",
        "run.tsv",
    ];
    check(
        files.path(),
        &arguments,
        expect![[r#"
        exit 0
        --- stdout
        questions  2
        nDCG@10    1.0000
        recall@10  1.0000
        mode       lexical
        --- stderr
        indexing 2 records
    "#]],
    );
    let run = fs::read_to_string(files.join("run.tsv")).unwrap();
    let first: Vec<_> = run.lines().map(|line| line.rsplit_once('\t').unwrap().0).collect();
    assert_eq!(first, ["1\ta", "2\tb"]);
}

#[test]
fn the_sample_base_is_sound_and_answers_what_it_can() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../kb");
    let (records, problems) = read_folder(&folder);
    assert!(problems.is_empty(), "{problems:?}");
    assert!(records.len() >= 60);
    let home: BTreeMap<String, Namespace> =
        records.iter().map(|record| (record.id.clone(), record.namespace)).collect();
    let base = KnowledgeBase::from_records(records, None, None).unwrap();
    let find = |query: &str, namespace: Namespace| -> Vec<String> {
        let query = KnowledgeQuery {
            query: query.to_owned(),
            namespace,
            filters: RecordFilters::default(),
            top_k: 5,
            include_snippets: false,
            snippet_length: 0,
        };
        block_on(base.search(query)).unwrap().results.into_iter().map(|found| found.record.id).collect()
    };
    let lines = |name: &str| fs::read_to_string(folder.join("_questions").join(name)).unwrap();
    let missed = |name: &str| -> Vec<String> {
        let text = lines(name);
        let pairs = text.lines().filter_map(|line| line.split_once('\t'));
        pairs
            .filter(|(query, id)| !find(query, home[*id]).contains(&(*id).to_owned()))
            .map(|(query, _)| query.to_owned())
            .collect()
    };
    assert_eq!(missed("misspelt.tsv"), [""; 0], "misspelt names are found");
    assert_eq!(missed("plain.tsv"), [""; 0], "plain questions are answered");
    let nothing = lines("nothing.txt");
    let noise: Vec<_> = nothing.lines().filter(|query| !find(query, Namespace::Studio).is_empty()).collect();
    // By words alone, a question that shares its rarest word with a record by chance cannot be told from one about it.
    assert!(noise.len() <= 4, "what is not there comes back empty: {noise:?}");
}
