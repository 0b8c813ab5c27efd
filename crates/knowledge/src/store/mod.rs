//! A base in one SQLite file: records with their content hashes, and vectors with the model that made them.
//!
//! What is derived and cheap is not in it. A damaged file is set aside, never overwritten; one that is not ours is left
//! as it was.

mod open;
mod save;

use std::path::PathBuf;

use quarterdeck_contracts::{EmbeddingModel, KnowledgeRecord, sha256};
use rusqlite::{Connection, params};

pub use save::Changes;

use crate::snapshot::KnownVectors;

/// Why a file cannot be used.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum FileError {
    /// Somebody else's database, or something that is none.
    #[error("{0} is not a knowledge base; give another path")]
    NotOurs(PathBuf),
    /// Written by a newer program.
    #[error("{0} was written by a newer version of Quarterdeck; update, or give another path")]
    Newer(PathBuf),
    /// What was read is not what was written.
    #[error("{path} is damaged: {what}")]
    Damaged {
        /// Which file.
        path: PathBuf,
        /// How that is known.
        what: String,
    },
    /// The disk, or another process that holds the file.
    #[error("the knowledge base cannot be read or written")]
    Sqlite(#[from] rusqlite::Error),
    /// The disk.
    #[error("the knowledge base's file cannot be handled")]
    Io(#[from] std::io::Error),
}

/// The file of a base.
pub struct KnowledgeFile {
    path: PathBuf,
    connection: Connection,
}

/// A file, and what had to be done to have it.
pub struct Opened {
    /// The file.
    pub file: KnowledgeFile,
    /// Where a damaged file was put, if there was one. The base is empty then, and is built again from its sources.
    pub set_aside: Option<PathBuf>,
}

impl KnowledgeFile {
    /// Every record, sorted by id. One whose content is not what its hash says is damage.
    pub fn records(&self) -> Result<Vec<KnowledgeRecord>, FileError> {
        let mut statement = self.connection.prepare("SELECT hash, body FROM records ORDER BY id")?;
        let mut rows = statement.query([])?;
        let mut records = Vec::new();
        while let Some(row) = rows.next()? {
            let (hash, body): (String, String) = (row.get(0)?, row.get(1)?);
            if sha256(body.as_bytes()) != hash {
                return Err(self.damaged("a record does not have the content that was stored"));
            }
            let record = serde_json::from_str(&body).map_err(|error| self.damaged(&error.to_string()))?;
            records.push(record);
        }
        Ok(records)
    }

    /// The vectors of a model.
    pub fn vectors(&self, model: &EmbeddingModel) -> Result<KnownVectors, FileError> {
        let mut statement =
            self.connection.prepare("SELECT key, vector FROM vectors WHERE model = ?1 AND dimension = ?2")?;
        let mut rows = statement.query(params![model.digest, model.dimension as i64])?;
        let mut known = KnownVectors { model: model.clone(), vectors: Default::default() };
        while let Some(row) = rows.next()? {
            let bytes: Vec<u8> = row.get(1)?;
            if bytes.len() != model.dimension * 4 {
                return Err(self.damaged("a vector has another length than its model's"));
            }
            let (numbers, _) = bytes.as_chunks::<4>();
            known
                .vectors
                .insert(row.get(0)?, numbers.iter().map(|bytes| f32::from_le_bytes(*bytes)).collect());
        }
        Ok(known)
    }

    fn damaged(&self, what: &str) -> FileError {
        FileError::Damaged { path: self.path.clone(), what: what.to_owned() }
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use quarterdeck_contracts::{Namespace, RecordKind};

    use super::*;

    fn record(id: &str, text: &str) -> KnowledgeRecord {
        let record = serde_json::json!({
            "id": id, "type": RecordKind::Doc, "namespace": Namespace::Studio, "title": id, "text": text,
        });
        serde_json::from_value(record).unwrap()
    }

    fn known(digest: &str, key: &str) -> KnownVectors {
        let model = EmbeddingModel { name: "m".into(), dimension: 2, digest: digest.into() };
        KnownVectors { model, vectors: [(key.to_owned(), vec![0.25, -1.5])].into() }
    }

    #[test]
    fn what_is_saved_is_there_again_and_only_changes_are_written() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("kb.sqlite");
        let mut file = KnowledgeFile::open(&path).unwrap().file;
        let first = vec![record("doc:a", "one"), record("doc:b", "two")];
        let changes = file.save(&first, Some(&known("1", "k"))).unwrap();
        assert_eq!(changes, Changes { added: 2, changed: 0, removed: 0, unchanged: 0 });
        let second = vec![record("doc:a", "one"), record("doc:b", "three"), record("doc:c", "")];
        let changes = file.save(&second, None).unwrap();
        assert_eq!(changes, Changes { added: 1, changed: 1, removed: 0, unchanged: 1 });
        assert_eq!(file.save(&second[..1], None).unwrap().removed, 2);
        drop(file);

        let opened = KnowledgeFile::open(&path).unwrap();
        assert_eq!(opened.set_aside, None);
        assert_eq!(opened.file.records().unwrap(), second[..1]);
        assert_eq!(opened.file.vectors(&known("1", "k").model).unwrap(), known("1", "k"));
        assert!(opened.file.vectors(&known("2", "k").model).unwrap().vectors.is_empty());
    }

    #[test]
    fn vectors_of_another_model_go_when_new_ones_come() {
        let folder = tempfile::tempdir().unwrap();
        let mut file = KnowledgeFile::open(&folder.path().join("kb.sqlite")).unwrap().file;
        file.save(&[], Some(&known("1", "k"))).unwrap();
        file.save(&[], Some(&known("2", "l"))).unwrap();
        assert!(file.vectors(&known("1", "k").model).unwrap().vectors.is_empty());
        assert_eq!(file.vectors(&known("2", "l").model).unwrap(), known("2", "l"));
    }

    #[test]
    fn a_damaged_file_is_set_aside_and_a_foreign_one_is_left() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("kb.sqlite");
        let mut file = KnowledgeFile::open(&path).unwrap().file;
        let many: Vec<_> = (0..500).map(|at| record(&format!("doc:{at}"), &"words ".repeat(50))).collect();
        file.save(&many, None).unwrap();
        drop(file);
        let mut bytes = fs::read(&path).unwrap();
        let middle = bytes.len() / 2;
        bytes[middle..middle + 8_192].fill(0xff);
        fs::write(&path, &bytes).unwrap();
        let opened = KnowledgeFile::open(&path).unwrap();
        assert_eq!(fs::read(opened.set_aside.unwrap()).unwrap(), bytes);
        assert!(opened.file.records().unwrap().is_empty());

        let foreign = folder.path().join("letter.txt");
        fs::write(&foreign, "Dear all, this is a letter that nobody wants to lose.").unwrap();
        assert!(matches!(KnowledgeFile::open(&foreign), Err(FileError::NotOurs(_))));
        let other = folder.path().join("other.sqlite");
        Connection::open(&other).unwrap().execute_batch("CREATE TABLE t (a)").unwrap();
        assert!(matches!(KnowledgeFile::open(&other), Err(FileError::NotOurs(_))));
        assert!(fs::read_to_string(&foreign).unwrap().starts_with("Dear all"));
    }

    #[test]
    fn a_record_that_was_altered_is_noticed() {
        let folder = tempfile::tempdir().unwrap();
        let mut file = KnowledgeFile::open(&folder.path().join("kb.sqlite")).unwrap().file;
        file.save(&[record("doc:a", "one")], None).unwrap();
        file.connection.execute("UPDATE records SET body = replace(body, 'one', 'two')", []).unwrap();
        assert!(matches!(file.records(), Err(FileError::Damaged { .. })));
    }
}
