//! Opens a file as a store, or says why it is not one.

use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

use rusqlite::{Connection, ErrorCode, OpenFlags};

use super::file::{self, Found};
use super::schema;

/// How long to wait for another process that writes to the same file.
pub(super) const BUSY: Duration = Duration::from_secs(5);

/// Why a file could not be opened as a store. The file is as it was.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum OpenError {
    /// It cannot be read or made.
    #[error("the store {} cannot be opened; check that its folder exists and is yours", path.display())]
    Io {
        /// Which file.
        path: PathBuf,
        /// What the system said.
        #[source]
        source: io::Error,
    },
    /// It is something else.
    #[error(
        "{} is not a Quarterdeck store and was left alone; move it away, or choose another path",
        path.display()
    )]
    NotAStore {
        /// Which file.
        path: PathBuf,
    },
    /// A newer Quarterdeck wrote it.
    #[error(
        "the store {} has format {found}, and this version of Quarterdeck knows formats up to {known}; \
         use the newer version, or go back to a backup from before the upgrade",
        path.display()
    )]
    Newer {
        /// Which file.
        path: PathBuf,
        /// Its format.
        found: i64,
        /// The newest format that this version knows.
        known: i64,
    },
    /// The engine failed.
    #[error("the store {} cannot be opened; if it is damaged, go back to a backup", path.display())]
    Engine {
        /// Which file.
        path: PathBuf,
        /// What the engine said.
        #[source]
        source: rusqlite::Error,
    },
}

/// Opens the connection that writes, with the file checked, tightened and up to date.
pub(super) fn open_writer(path: &Path, busy: Duration) -> Result<Connection, OpenError> {
    let io_error = |source| OpenError::Io { path: path.to_owned(), source };
    let not_a_store = || OpenError::NotAStore { path: path.to_owned() };
    let engine_error = |source: rusqlite::Error| match source.sqlite_error_code() {
        Some(ErrorCode::NotADatabase) => not_a_store(),
        _ => OpenError::Engine { path: path.to_owned(), source },
    };

    let found = file::prepare(path).map_err(io_error)?;
    if matches!(found, Found::SomethingElse) {
        return Err(not_a_store());
    }
    let mut connection = connect(path, busy).map_err(engine_error)?;
    // Nothing is changed before the file is known to be ours.
    if !schema::is_ours(&connection).map_err(engine_error)? {
        return Err(not_a_store());
    }
    let version = schema::version(&connection).map_err(engine_error)?;
    if version > schema::VERSION {
        return Err(OpenError::Newer { path: path.to_owned(), found: version, known: schema::VERSION });
    }
    file::tighten(path).map_err(io_error)?;
    settle(&mut connection).map_err(engine_error)?;
    file::sync_folder_of(path).map_err(io_error)?;
    Ok(connection)
}

/// Opens a connection that only reads, beside the writer.
pub(super) fn open_reader(path: &Path, busy: Duration) -> rusqlite::Result<Connection> {
    let connection = connect(path, busy)?;
    connection.pragma_update(None, "query_only", true)?;
    Ok(connection)
}

/// Opens a file that is there.
pub(super) fn connect(path: &Path, busy: Duration) -> rusqlite::Result<Connection> {
    // Without its own lock: a connection is used by one thread.
    let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let connection = Connection::open_with_flags(path, flags)?;
    connection.busy_timeout(busy)?;
    connection.set_prepared_statement_cache_capacity(32);
    Ok(connection)
}

fn settle(connection: &mut Connection) -> rusqlite::Result<()> {
    connection.pragma_update_and_check(None, "journal_mode", "WAL", |_| Ok(()))?;
    // A commit is on the disk when it is answered, not only in the system's memory.
    connection.pragma_update(None, "synchronous", "FULL")?;
    // On a Mac, "on the disk" has to be asked for separately.
    connection.pragma_update(None, "fullfsync", true)?;
    // After a burst the log shrinks again.
    connection.pragma_update_and_check(None, "journal_size_limit", 16 << 20, |_| Ok(()))?;
    schema::migrate(connection)
}
