//! Classifies engine errors: the disk, another process, or the file itself. Only the last is damage.

use std::io::{Seek, SeekFrom, Write};
use std::path::Path;

use quarterdeck_contracts::DiskError;
use rusqlite::ErrorCode;

use super::file;

/// Written to find out what is wrong with a disk. The engine's shared memory needs as much.
const PROBE_BYTES: usize = 64 << 10;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Fault {
    /// The disk refused, or may not be used as we need it.
    Disk(DiskError),
    /// The file is not what was written.
    Damage,
    /// A single row is not what was written.
    Row,
    /// Another process holds the file.
    Busy,
    Other,
}

/// Classifies an error of the store at `path`.
pub(super) fn classify(error: &rusqlite::Error, path: &Path) -> Fault {
    use rusqlite::Error;
    if let Error::Utf8Error(..)
    | Error::FromSqlConversionFailure(..)
    | Error::InvalidColumnType(..)
    | Error::IntegralValueOutOfRange(..) = error
    {
        return Fault::Row;
    }
    // Our statements never change: one that does not fit the file has met a damaged schema or header.
    if matches!(error, Error::SqlInputError { .. }) {
        return Fault::Damage;
    }
    match error.sqlite_error_code() {
        Some(ErrorCode::DiskFull) => Fault::Disk(DiskError::Full),
        Some(ErrorCode::ReadOnly) => Fault::Disk(probe(path).unwrap_or(DiskError::ReadOnly)),
        Some(ErrorCode::PermissionDenied) => Fault::Disk(DiskError::NotPermitted),
        // The engine does not say why; trying the same tells.
        Some(ErrorCode::SystemIoFailure) => Fault::Disk(probe(path).unwrap_or(DiskError::Failing)),
        Some(ErrorCode::CannotOpen) => probe(path).map_or(Fault::Other, Fault::Disk),
        Some(ErrorCode::DatabaseCorrupt | ErrorCode::NotADatabase) => Fault::Damage,
        Some(ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked) => Fault::Busy,
        _ => Fault::Other,
    }
}

/// Writes as far into a file as the store would, beside it, and says what the system thinks of that.
fn probe(path: &Path) -> Option<DiskError> {
    let write = || -> std::io::Result<()> {
        std::fs::OpenOptions::new().read(true).write(true).open(path)?;
        let files = [path.to_owned(), file::sibling(path, "-wal")];
        let lengths = files.iter().filter_map(|file| file.metadata().ok()).map(|file| file.len());
        let length = lengths.max().unwrap_or(0);
        let mut probe = tempfile::tempfile_in(file::folder_of(path))?;
        probe.seek(SeekFrom::Start(length))?;
        probe.write_all(&[0; PROBE_BYTES])?;
        probe.sync_all()
    };
    write().err().as_ref().and_then(DiskError::of)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_was_read_wrong_is_damage() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("store.db");
        std::fs::write(&path, "").unwrap();
        let of =
            |code| classify(&rusqlite::Error::SqliteFailure(rusqlite::ffi::Error::new(code), None), &path);
        use rusqlite::ffi;
        for code in [ffi::SQLITE_CORRUPT, ffi::SQLITE_NOTADB] {
            assert_eq!(of(code), Fault::Damage);
        }
        for code in [ffi::SQLITE_BUSY, ffi::SQLITE_LOCKED] {
            assert_eq!(of(code), Fault::Busy);
        }
        assert_eq!(of(ffi::SQLITE_FULL), Fault::Disk(DiskError::Full));
        assert_eq!(of(ffi::SQLITE_READONLY), Fault::Disk(DiskError::ReadOnly));
        assert_eq!(of(ffi::SQLITE_PERM), Fault::Disk(DiskError::NotPermitted));
        assert_eq!(of(ffi::SQLITE_IOERR), Fault::Disk(DiskError::Failing));
        assert_eq!(of(ffi::SQLITE_CANTOPEN), Fault::Other);
        assert_eq!(of(ffi::SQLITE_ERROR), Fault::Other);
    }
}
