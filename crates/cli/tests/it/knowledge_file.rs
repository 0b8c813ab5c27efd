//! The file of the knowledge base: built, damaged, interrupted and imported into.

use std::fs;
use std::path::Path;
use std::process::{Command, Output, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use quarterdeck_knowledge::ScoreThresholds;
use quarterdeck_knowledge::store::KnowledgeFile;
use quarterdeck_testkit::{Tree, tree};

use crate::terminal::command;

/// How many records the base has that is killed while it is built.
const MANY: usize = 500;
/// How often it is killed.
const KILLS: u32 = 6;

/// A terminal without an embedding model.
fn without_model(folder: &Path) -> Command {
    let mut command = command(folder);
    command.env("XDG_CACHE_HOME", folder.join("no-cache"));
    command
}

fn run(folder: &Path, arguments: &[&str]) -> Output {
    without_model(folder).args(arguments).output().unwrap()
}

fn run_output(output: &Output) -> (Option<i32>, String, String) {
    let text = |bytes: &[u8]| String::from_utf8(bytes.to_vec()).unwrap();
    (output.status.code(), text(&output.stdout), text(&output.stderr))
}

fn base() -> Tree {
    tree(
        "
        //- kb/studio/doc/hull.md
        # The hull of the Fram

        Colin Archer gave her a rounded hull.

        //- kb/studio/doc/untitled.md
        Nothing but words.
        ",
    )
}

#[test]
fn a_base_is_built_without_a_model_and_says_so() {
    let files = base();
    let (code, _, printed) = run_output(&run(files.path(), &["kb", "build"]));
    assert_eq!(code, Some(0), "{printed}");
    assert!(printed.contains("no embedding model is installed: search is by words"), "{printed}");
    assert!(printed.contains("1 record in") && printed.contains("1 new, 0 changed, 0 gone"), "{printed}");
    let (_, _, printed) = run_output(&run(files.path(), &["kb", "build"]));
    assert!(printed.contains("0 new, 0 changed, 0 gone"), "{printed}");

    let (code, found, printed) = run_output(&run(files.path(), &["kb", "search", "rounded hull"]));
    assert_eq!(code, Some(0));
    assert!(found.contains("doc:hull") && found.contains("searched by words only"), "{found}");
    assert!(printed.contains("1 problem; `quarterdeck kb check` lists them"), "{printed}");

    // What changes afterwards is found without another build.
    files.write("kb/studio/doc/sails.md", "# Sails\n\nThree masts carried them.\n");
    let (code, found, _) = run_output(&run(files.path(), &["kb", "search", "sails on masts"]));
    assert_eq!(code, Some(0));
    assert!(found.contains("doc:sails"), "{found}");
    fs::remove_file(files.join("kb/studio/doc/hull.md")).unwrap();
    let (code, found, _) = run_output(&run(files.path(), &["kb", "search", "rounded hull"]));
    assert_eq!(code, Some(1), "{found}");
}

#[test]
fn a_damaged_file_is_told_set_aside_and_built_anew() {
    let files = base();
    assert_eq!(run(files.path(), &["kb", "build"]).status.code(), Some(0));
    let path = files.join(".quarterdeck/kb.db");
    let whole = fs::read(&path).unwrap();
    let mut flipped = whole.clone();
    // A letter of the record, wherever it lies.
    let at = flipped.windows(12).position(|part| part == b"rounded hull").unwrap();
    flipped[at] ^= 1;
    for (number, damaged) in [&whole[..whole.len() / 2], &flipped].into_iter().enumerate() {
        fs::write(&path, damaged).unwrap();
        let command = [["kb", "search", "rounded hull"].as_slice(), &["kb", "build"]][number];
        let (code, _, printed) = run_output(&run(files.path(), command));
        assert_eq!(code, Some(0), "{printed}");
        assert!(printed.contains("kb.db was damaged and is now"), "{printed}");
        assert_eq!(
            fs::read(files.join(&format!(".quarterdeck/kb.db.damaged-{}", number + 1))).unwrap(),
            damaged
        );
        let (code, found, printed) = run_output(&run(files.path(), &["kb", "search", "rounded hull"]));
        assert!(
            code == Some(0) && found.contains("doc:hull") && !printed.contains("damaged"),
            "{found}{printed}"
        );
    }

    fs::write(&path, "This is a letter, and no database at all. ".repeat(100)).unwrap();
    let (code, found, printed) = run_output(&run(files.path(), &["kb", "search", "rounded hull"]));
    assert!(code == Some(0) && found.contains("doc:hull"), "{found}{printed}");
    assert!(printed.contains("is not a knowledge base; move it away"), "{printed}");
    assert!(fs::read_to_string(&path).unwrap().starts_with("This is a letter"), "a foreign file stays");
    assert_eq!(run(files.path(), &["kb", "build"]).status.code(), Some(2));
}

fn write_generation(files: &Tree, number: usize) {
    let line = |at: usize| {
        let text = format!("Base {number} says words about ice, ships and dogs. ").repeat(8);
        format!("{{\"id\": \"doc:{at:05}\", \"title\": \"Record {at}\", \"text\": \"{text}\"}}\n")
    };
    files.write("kb/records.jsonl", (0..MANY).map(line).collect::<String>());
}

/// Which base the file holds, whole.
fn held(path: &Path) -> String {
    let loaded = KnowledgeFile::open(path).unwrap();
    assert_eq!(loaded.set_aside, None, "a build that was killed is no damage");
    let loaded = loaded.file.load(ScoreThresholds::NONE).unwrap().unwrap();
    assert!(!loaded.is_rebuilt, "index and records belong together");
    let records = loaded.base.records();
    assert_eq!(records.len(), MANY);
    let first = records[0].text.clone();
    assert!(records.iter().all(|record| record.text == first), "half a base");
    first.split(' ').nth(1).unwrap().to_owned()
}

#[test]
fn a_build_that_is_killed_leaves_the_old_base_or_the_new_one() {
    let files = tree("");
    let path = files.join(".quarterdeck/kb.db");
    write_generation(&files, 0);
    let began = Instant::now();
    assert_eq!(run(files.path(), &["kb", "build"]).status.code(), Some(0));
    let whole = began.elapsed();
    let mut at = "0".to_owned();
    assert_eq!(held(&path), at);
    for kill in 1..=KILLS {
        write_generation(&files, kill as usize);
        let mut build =
            without_model(files.path()).args(["kb", "build"]).stderr(Stdio::null()).spawn().unwrap();
        // Later and later, up to about when it would be finished.
        thread::sleep(whole * kill / KILLS + Duration::from_millis(1));
        build.kill().unwrap();
        build.wait().unwrap();
        let now = held(&path);
        assert!(now == at || now == kill.to_string(), "base {now} after {at}");
        at = now;
    }
    assert_eq!(run(files.path(), &["kb", "build"]).status.code(), Some(0));
    assert_eq!(held(&path), KILLS.to_string());
}

#[test]
fn records_are_imported_line_by_line_and_only_once() {
    let files = base();
    files.write(
        "more.jsonl",
        concat!(
            "{\"id\": \"person:juell\", \"title\": \"Adolf Juell\", \"text\": \"Steward and cook.\", \"namespace\": \"studio\"}\n",
            "not a record\n",
            "{\"id\": \"doc:hull\", \"title\": \"Another hull\"}\n",
            "{\"id\": \"person:juell\", \"title\": \"Someone else\"}\n",
            "{\"title\": \"Nameless\"}\n",
        ),
    );
    let (code, _, printed) = run_output(&run(files.path(), &["kb", "import", "more.jsonl"]));
    assert_eq!(code, Some(1), "{printed}");
    for expected in [
        "left out: more.jsonl:2 the line is not a JSON object",
        "left out: more.jsonl:3 the id `doc:hull` is taken by a file in kb; change that",
        "left out: more.jsonl:4 the id `person:juell` is taken by line 1",
        "left out: more.jsonl:5 a record has an `id`",
        "1 imported record in kb/imported.jsonl: 1 new, 0 changed, 0 unchanged, 4 left out",
    ] {
        assert!(printed.contains(expected), "{expected}: {printed}");
    }
    let first = fs::read(files.join("kb/imported.jsonl")).unwrap();
    let (_, _, printed) = run_output(&run(files.path(), &["kb", "import", "more.jsonl"]));
    assert!(printed.contains("0 new, 0 changed, 1 unchanged"), "{printed}");
    assert_eq!(fs::read(files.join("kb/imported.jsonl")).unwrap(), first);

    files.write(
        "more.jsonl",
        "{\"id\": \"person:juell\", \"title\": \"Adolf Juell\", \"text\": \"He baked.\"}\n",
    );
    let (code, _, printed) = run_output(&run(files.path(), &["kb", "import", "more.jsonl"]));
    assert!(code == Some(0) && printed.contains("0 new, 1 changed, 0 unchanged, 0 left out"), "{printed}");
    let (_, found, _) = run_output(&run(files.path(), &["kb", "get", "person:juell"]));
    assert!(found.contains("He baked."), "{found}");
}
