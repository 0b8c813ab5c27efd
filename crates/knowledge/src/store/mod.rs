//! A base in one SQLite file: records with their content hashes, vectors with the model that made them, and the index,
//! so that a start need not build it.
//!
//! Everything in it is read with a digest, and all of it can be made again from the records' sources: a damaged file is
//! set aside, never overwritten; one that is not ours is left as it was.

mod build;
mod derived;
mod load;
mod open;
mod save;
#[cfg(test)]
mod tests;
mod vectors;

use std::path::PathBuf;

use quarterdeck_contracts::DiskError;
use rusqlite::{Connection, ErrorCode};

pub use open::{FORMAT_VERSION as KNOWLEDGE_FORMAT, copy_file, set_aside};

pub use crate::saved::{Changes, LoadedBase, Sources};
use crate::snapshot::BuildError;

#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum FileError {
    /// Another program's database, or no database at all.
    #[error("{0} is not a knowledge base; move it away, and a new one is made")]
    NotOurs(PathBuf),
    #[error(
        "{0} was written by a newer version of Quarterdeck; update, or move it away, and a new one is made"
    )]
    Newer(PathBuf),
    #[error("{path} is damaged: {what}")]
    Damaged { path: PathBuf, what: String },
    /// The disk, or another process that holds the file.
    #[error("the knowledge base cannot be read or written; {}", engine_advice(.0))]
    Sqlite(#[from] rusqlite::Error),
    /// The disk.
    #[error("the knowledge base's file cannot be handled{}", disk_advice(.0))]
    Io(#[from] std::io::Error),
    #[error(transparent)]
    Build(#[from] BuildError),
}

impl FileError {
    /// Whether the file is broken, so that setting it aside and building anew helps.
    pub fn is_damage(&self) -> bool {
        match self {
            Self::Damaged { .. } => true,
            Self::Sqlite(error) => {
                matches!(
                    error.sqlite_error_code(),
                    Some(ErrorCode::DatabaseCorrupt | ErrorCode::NotADatabase)
                )
            }
            _ => false,
        }
    }
}

/// What to do about what the engine says. Only a file that was read wrong is damaged.
fn engine_advice(error: &rusqlite::Error) -> String {
    match error.sqlite_error_code() {
        Some(ErrorCode::DiskFull) => DiskError::Full.to_string(),
        Some(ErrorCode::ReadOnly) => DiskError::ReadOnly.to_string(),
        Some(ErrorCode::PermissionDenied) => DiskError::NotPermitted.to_string(),
        Some(ErrorCode::SystemIoFailure) => DiskError::Failing.to_string(),
        Some(ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked) => {
            "another process is at work on it: wait for that one, or stop it".into()
        }
        Some(ErrorCode::DatabaseCorrupt | ErrorCode::NotADatabase) => {
            "its file is damaged: move it away, and a new one is made from the records".into()
        }
        _ => "check that its folder is there and can be written to".into(),
    }
}

fn disk_advice(error: &std::io::Error) -> String {
    DiskError::of(error).map_or_else(String::new, |fault| format!("; {fault}"))
}

pub struct KnowledgeFile {
    path: PathBuf,
    connection: Connection,
}

/// An open file, and what happened to a damaged one in its place.
pub struct OpenedFile {
    pub file: KnowledgeFile,
    /// Where a damaged file was put, if there was one. The base is empty then, and is built again from its sources.
    pub set_aside: Option<PathBuf>,
}

impl KnowledgeFile {
    fn damaged(&self, what: &str) -> FileError {
        FileError::Damaged { path: self.path.clone(), what: what.to_owned() }
    }
}
