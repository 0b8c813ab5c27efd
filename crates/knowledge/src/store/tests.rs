use std::fs;
use std::path::Path;
use std::sync::Arc;

use quarterdeck_contracts::{EmbedError, Embedder, EmbeddingModel, KnowledgeRecord};

use super::*;
use crate::ScoreThresholds;

struct Letters(EmbeddingModel);

impl Letters {
    fn embedder(digest: &str) -> Arc<dyn Embedder> {
        Arc::new(Self(EmbeddingModel { name: "letters".into(), dimension: 26, digest: digest.into() }))
    }
}

impl Embedder for Letters {
    fn model(&self) -> &EmbeddingModel {
        &self.0
    }

    fn embed(&self, texts: &[&str]) -> Result<Vec<Vec<f32>>, EmbedError> {
        let count = |text: &&str, letter: u8| text.bytes().filter(|byte| *byte == letter).count() as f32;
        if texts.iter().any(|text| text.contains("unspeakable")) {
            return Err(EmbedError("it will not".into()));
        }
        Ok(texts.iter().map(|text| (b'a'..=b'z').map(|letter| count(text, letter)).collect()).collect())
    }
}

fn record(id: &str, text: &str) -> KnowledgeRecord {
    let record =
        serde_json::json!({ "id": id, "type": "doc", "namespace": "studio", "title": id, "text": text });
    serde_json::from_value(record).unwrap()
}

fn open(path: &Path) -> KnowledgeFile {
    KnowledgeFile::open(path).unwrap().file
}

fn sources(fingerprint: &str) -> Sources {
    Sources { fingerprint: fingerprint.into(), left_out: 1 }
}

fn build(
    file: &mut KnowledgeFile,
    records: &[KnowledgeRecord],
    embedder: Option<Arc<dyn Embedder>>,
) -> Result<Changes, FileError> {
    Ok(file.build(records.to_vec(), embedder, ScoreThresholds::NONE, &sources("f"), &mut |_| {})?.1)
}

#[test]
fn what_is_saved_is_there_again_and_only_changes_are_written() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("kb.db");
    let mut file = open(&path);
    assert!(file.load(ScoreThresholds::NONE).unwrap().is_none());
    assert_eq!(file.sources().unwrap(), None);
    let first = [record("doc:a", "one"), record("doc:b", "two")];
    let changes = build(&mut file, &first, Some(Letters::embedder("1"))).unwrap();
    assert_eq!(changes, Changes { added: 2, changed: 0, removed: 0, unchanged: 0 });
    let second = [record("doc:a", "one"), record("doc:b", "three"), record("doc:c", "")];
    let changes = build(&mut file, &second, Some(Letters::embedder("1"))).unwrap();
    assert_eq!(changes, Changes { added: 1, changed: 1, removed: 0, unchanged: 1 });
    drop(file);

    let file = open(&path);
    let loaded = file.load(ScoreThresholds::NONE).unwrap().unwrap();
    assert!(!loaded.is_rebuilt);
    assert_eq!(loaded.base.records(), second);
    assert_eq!(file.sources().unwrap(), Some(sources("f")));
    let fresh =
        crate::KnowledgeBase::from_records(second.to_vec(), Some(Letters::embedder("1")), None).unwrap();
    assert_eq!(loaded.base.known_vectors(), fresh.known_vectors());
    assert_eq!(
        file.vectors(Letters::embedder("1").model()).unwrap().len(),
        3,
        "vectors that are not needed any more are gone"
    );
    assert!(file.vectors(Letters::embedder("2").model()).unwrap().is_empty());
}

#[test]
fn vectors_of_another_model_go_when_new_ones_come_and_stay_when_none_do() {
    let folder = tempfile::tempdir().unwrap();
    let mut file = open(&folder.path().join("kb.db"));
    let records = [record("doc:a", "one")];
    build(&mut file, &records, Some(Letters::embedder("1"))).unwrap();
    build(&mut file, &records, None).unwrap();
    assert_eq!(file.load(ScoreThresholds::NONE).unwrap().unwrap().base.stats().model, None);
    assert_eq!(file.vectors(Letters::embedder("1").model()).unwrap().len(), 1);
    build(&mut file, &records, Some(Letters::embedder("2"))).unwrap();
    assert!(file.vectors(Letters::embedder("1").model()).unwrap().is_empty());
    assert_eq!(file.load(ScoreThresholds::NONE).unwrap().unwrap().base.stats().model.unwrap().digest, "2");
}

#[test]
fn a_build_that_fails_keeps_the_old_base_and_the_vectors_it_made() {
    let folder = tempfile::tempdir().unwrap();
    let mut file = open(&folder.path().join("kb.db"));
    build(&mut file, &[record("doc:a", "one")], Some(Letters::embedder("1"))).unwrap();
    let mut many: Vec<_> = (0..200).map(|at| record(&format!("doc:{at:03}"), "words")).collect();
    many.push(record("doc:z", "unspeakable"));
    assert!(matches!(build(&mut file, &many, Some(Letters::embedder("1"))), Err(FileError::Build(_))));
    let old = file.load(ScoreThresholds::NONE).unwrap().unwrap().base;
    assert_eq!(old.records(), [record("doc:a", "one")]);
    assert!(file.vectors(Letters::embedder("1").model()).unwrap().len() > 100, "they need not be made again");
}

#[test]
fn a_base_is_replaced_in_its_file_too() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("kb.db");
    let mut file = open(&path);
    let (base, _) = file
        .build(vec![record("doc:a", "one")], None, ScoreThresholds::NONE, &sources("1"), &mut |_| {})
        .unwrap();
    base.use_model(Letters::embedder("1"));
    file.replace(&base, vec![record("doc:b", "two")], &sources("2"), &mut |_| {}).unwrap();
    let loaded = open(&path).load(ScoreThresholds::NONE).unwrap().unwrap().base;
    assert_eq!(loaded.records(), base.records());
    assert_eq!(loaded.stats(), base.stats());
    assert_eq!(loaded.stats().model.unwrap().digest, "1");
    assert_eq!(file.sources().unwrap(), Some(sources("2")));
}

/// Whatever happens to a byte of the file, a reader gets what was saved, or an error.
#[test]
fn damage_anywhere_is_noticed_or_does_no_harm() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("kb.db");
    let many: Vec<_> =
        (0..300).map(|at| record(&format!("doc:{at:03}"), &format!("words {at} ").repeat(40))).collect();
    build(&mut open(&path), &many, Some(Letters::embedder("1"))).unwrap();
    let whole = fs::read(&path).unwrap();
    let expected = open(&path).load(ScoreThresholds::NONE).unwrap().unwrap().base;
    let (mut refused, mut rebuilt) = (0, 0);
    for at in (100..whole.len()).step_by(whole.len() / 150) {
        let mut bytes = whole.clone();
        bytes[at] ^= 0x5a;
        fs::write(&path, &bytes).unwrap();
        let loaded = KnowledgeFile::open(&path).and_then(|opened| opened.file.load(ScoreThresholds::NONE));
        match loaded {
            Ok(Some(loaded)) => {
                rebuilt += usize::from(loaded.is_rebuilt);
                assert_eq!(loaded.base.records(), expected.records(), "byte {at}");
                let (vectors, known) = (loaded.base.known_vectors(), expected.known_vectors());
                assert!(vectors.is_none() || vectors == known, "byte {at}");
            }
            // Set aside when it was opened, or refused when it was read.
            Ok(None) => refused += 1,
            Err(error) => {
                assert!(error.is_damage(), "byte {at}: {error}");
                refused += 1;
            }
        }
    }
    assert!(refused > 20 && rebuilt > 5, "{refused} refused, {rebuilt} rebuilt");
}

#[test]
fn a_file_that_was_cut_is_noticed_and_set_aside() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("kb.db");
    let many: Vec<_> = (0..300).map(|at| record(&format!("doc:{at:03}"), &"words ".repeat(60))).collect();
    build(&mut open(&path), &many, None).unwrap();
    let whole = fs::read(&path).unwrap();
    for length in [whole.len() - 20_000, whole.len() / 2, 20_000, 200] {
        fs::write(&path, &whole[..length]).unwrap();
        match KnowledgeFile::open(&path) {
            Ok(OpenedFile { set_aside: Some(_), file }) => {
                assert!(file.load(ScoreThresholds::NONE).unwrap().is_none())
            }
            Ok(opened) => {
                assert!(
                    opened.file.load(ScoreThresholds::NONE).is_err_and(|error| error.is_damage()),
                    "{length}"
                )
            }
            Err(error) => panic!("{length}: {error}"),
        }
    }
    fs::write(&path, &whole[..whole.len() / 2]).unwrap();
    fs::write(folder.path().join("kb.db-journal"), "left behind").unwrap();
    let aside = set_aside(&path).unwrap();
    assert_eq!(fs::read(&aside).unwrap(), whole[..whole.len() / 2]);
    assert!(!path.exists() && !folder.path().join("kb.db-journal").exists());
    assert!(open(&path).load(ScoreThresholds::NONE).unwrap().is_none());
}

#[test]
fn a_foreign_file_and_a_newer_one_are_left_and_an_older_one_is_begun_anew() {
    let folder = tempfile::tempdir().unwrap();
    let foreign = folder.path().join("letter.txt");
    fs::write(&foreign, "Dear all, this is a letter and no database at all.").unwrap();
    assert!(matches!(KnowledgeFile::open(&foreign), Err(FileError::NotOurs(_))));
    let other = folder.path().join("other.sqlite");
    Connection::open(&other).unwrap().execute_batch("CREATE TABLE t (a)").unwrap();
    assert!(matches!(KnowledgeFile::open(&other), Err(FileError::NotOurs(_))));
    assert!(fs::read_to_string(&foreign).unwrap().starts_with("Dear all"));

    let path = folder.path().join("kb.db");
    build(&mut open(&path), &[record("doc:a", "one")], None).unwrap();
    let version =
        |number: i32| Connection::open(&path).unwrap().pragma_update(None, "user_version", number).unwrap();
    version(open::FORMAT_VERSION + 1);
    assert!(matches!(KnowledgeFile::open(&path), Err(FileError::Newer(_))));
    Connection::open(&path).unwrap().execute_batch("DROP TABLE parts; DROP TABLE sources").unwrap();
    version(1);
    let mut file = open(&path);
    assert!(file.load(ScoreThresholds::NONE).unwrap().is_none());
    build(&mut file, &[record("doc:a", "one")], None).unwrap();
    let built = open(&path).load(ScoreThresholds::NONE).unwrap().unwrap();
    assert_eq!(built.base.records(), [record("doc:a", "one")], "as if it were new");
}

#[test]
fn a_record_or_an_index_that_was_altered_is_noticed() {
    let folder = tempfile::tempdir().unwrap();
    let mut file = open(&folder.path().join("kb.db"));
    let records = [record("doc:a", "one"), record("doc:b", "two")];
    build(&mut file, &records, None).unwrap();
    file.connection.execute("DELETE FROM records WHERE id = 'doc:b'", []).unwrap();
    let loaded = file.load(ScoreThresholds::NONE).unwrap().unwrap();
    assert!(loaded.is_rebuilt, "an index of other records is not used");
    assert_eq!(loaded.base.records(), records[..1]);
    file.connection.execute("UPDATE records SET body = replace(body, 'one', 'two')", []).unwrap();
    assert!(matches!(file.load(ScoreThresholds::NONE), Err(FileError::Damaged { .. })));
}
