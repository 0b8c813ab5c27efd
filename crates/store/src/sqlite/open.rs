//! Opens a file as a store, or says why it is not one.

use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

use quarterdeck_contracts::DiskError;
use rusqlite::config::DbConfig;
use rusqlite::{Connection, ErrorCode, OpenFlags};

use super::SqliteOptions;
use super::check::{Check, Finding};
use super::fault::{self, Fault};
use super::file::{self, FileState};
use super::schema;

pub(super) const DEFAULT_BUSY_TIMEOUT: Duration = Duration::from_secs(5);

/// Why a file could not be opened as a store. The file is as it was.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum OpenError {
    #[error("the store {} cannot be opened; {}", path.display(), advice(source))]
    Io {
        path: PathBuf,
        #[source]
        source: io::Error,
    },
    /// The disk refused, or does not let itself be used as a store needs it.
    #[error("the store {} cannot be opened; {fault}", path.display())]
    Disk {
        path: PathBuf,
        fault: DiskError,
        #[source]
        source: rusqlite::Error,
    },
    #[error("the store {} is being written by another process; wait for that one, or stop it", path.display())]
    Busy {
        path: PathBuf,
        #[source]
        source: rusqlite::Error,
    },
    #[error(
        "{} is not a Quarterdeck store (or its first bytes are damaged) and was left alone; move it away, \
         or choose another path",
        path.display()
    )]
    NotAStore { path: PathBuf },
    #[error("the store {} is damaged and was left as it is: {what}; restore a backup", path.display())]
    Damaged { path: PathBuf, what: String },
    /// The file is gone, and what was written to it last is not.
    #[error(
        "the store {} is missing, and its log {} is there, which may hold what was written last; \
         put the file back where it was, or move the log away and restore a backup",
        path.display(), log.display()
    )]
    LogAlone { path: PathBuf, log: PathBuf },
    /// Another program's file has the name of the store's log.
    #[error("{} is not the log of a store and was left alone; move it away", log.display())]
    ForeignLog { log: PathBuf },
    #[error(
        "the store {} has format {found}, and this version of Quarterdeck knows formats up to {known}; \
         use the newer version, or restore a backup from before the upgrade",
        path.display()
    )]
    Newer {
        path: PathBuf,
        found: i64,
        /// The newest format that this version knows.
        known: i64,
    },
    #[error("the store {} cannot be opened", path.display())]
    Engine {
        path: PathBuf,
        #[source]
        source: rusqlite::Error,
    },
}

fn advice(error: &io::Error) -> String {
    DiskError::of(error)
        .map_or_else(|| "check that its folder exists and is yours".into(), |fault| fault.to_string())
}

pub(super) struct OpenedWriter {
    pub(super) connection: Connection,
    /// The check, if it is still running.
    pub(super) check: Option<Check>,
    /// Never [`Finding::Damaged`], which is refused.
    pub(super) found: Finding,
}

/// Opens the connection that writes, with the file checked, private and migrated.
pub(super) fn open_writer(path: &Path, options: &SqliteOptions) -> Result<OpenedWriter, OpenError> {
    let io_error = |source| OpenError::Io { path: path.to_owned(), source };
    let engine_error = |source| engine_error(source, path);
    let is_new = match file::prepare(path).map_err(io_error)? {
        FileState::Empty => true,
        FileState::Database => false,
        FileState::SomethingElse => return Err(OpenError::NotAStore { path: path.to_owned() }),
        FileState::Cut => {
            let what = "it is not as long as its pages: its end is missing".to_owned();
            return Err(OpenError::Damaged { path: path.to_owned(), what });
        }
        FileState::LogAlone => {
            return Err(OpenError::LogAlone { path: path.to_owned(), log: file::sibling(path, "-wal") });
        }
        FileState::ForeignLog => return Err(OpenError::ForeignLog { log: file::sibling(path, "-wal") }),
    };
    let mut connection = connect(path, options.busy_timeout).map_err(engine_error)?;
    // Nothing is changed before the file is known to be ours and whole, not even by closing it.
    keep_log_on_close(&connection, true).map_err(engine_error)?;
    if !schema::is_ours(&connection).map_err(engine_error)? {
        return Err(OpenError::NotAStore { path: path.to_owned() });
    }
    let version = schema::version(&connection).map_err(engine_error)?;
    if version > schema::VERSION {
        return Err(OpenError::Newer { path: path.to_owned(), found: version, known: schema::VERSION });
    }
    let (check, found) = if is_new { (None, Finding::Sound) } else { check(path, options)? };
    keep_log_on_close(&connection, false).map_err(engine_error)?;
    file::restrict_permissions(path).map_err(io_error)?;
    configure(&mut connection).map_err(engine_error)?;
    file::sync_folder_of(path).map_err(io_error)?;
    Ok(OpenedWriter { connection, check, found })
}

fn check(path: &Path, options: &SqliteOptions) -> Result<(Option<Check>, Finding), OpenError> {
    let check = Check::start(path, options.busy_timeout)?;
    match check.wait(options.check_timeout) {
        None => Ok((Some(check), Finding::Sound)),
        Some(Finding::Damaged(what)) => Err(OpenError::Damaged { path: path.to_owned(), what }),
        Some(found) => Ok((None, found)),
    }
}

pub(super) fn engine_error(source: rusqlite::Error, path: &Path) -> OpenError {
    let path = path.to_owned();
    match source.sqlite_error_code() {
        Some(ErrorCode::NotADatabase) => return OpenError::NotAStore { path },
        // Our statements never change: one that does not fit was asked of a file whose header or schema is wrong.
        Some(ErrorCode::Unknown) => {
            let what = format!("its header does not fit its content: {source}");
            return OpenError::Damaged { path, what };
        }
        _ => {}
    }
    match fault::classify(&source, &path) {
        Fault::Disk(fault) => OpenError::Disk { path, fault, source },
        Fault::Damage | Fault::Row => OpenError::Damaged { path, what: source.to_string() },
        Fault::Busy => OpenError::Busy { path, source },
        Fault::Other => OpenError::Engine { path, source },
    }
}

/// Whether closing the last connection leaves the log as it is, instead of moving it into the file.
pub(super) fn keep_log_on_close(connection: &Connection, leave: bool) -> rusqlite::Result<()> {
    connection.set_db_config(DbConfig::SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, leave).map(drop)
}

/// Opens a connection that only reads, beside the writer.
pub(super) fn open_reader(path: &Path, busy_timeout: Duration) -> rusqlite::Result<Connection> {
    let connection = connect(path, busy_timeout)?;
    connection.pragma_update(None, "query_only", true)?;
    Ok(connection)
}

/// Opens an existing file.
pub(super) fn connect(path: &Path, busy_timeout: Duration) -> rusqlite::Result<Connection> {
    // Without its own lock: a connection is used by one thread.
    let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let connection = Connection::open_with_flags(path, flags)?;
    connection.busy_timeout(busy_timeout)?;
    connection.set_prepared_statement_cache_capacity(32);
    Ok(connection)
}

fn configure(connection: &mut Connection) -> rusqlite::Result<()> {
    connection.pragma_update_and_check(None, "journal_mode", "WAL", |_| Ok(()))?;
    // A commit is on the disk when it is answered, not only in the system's memory.
    connection.pragma_update(None, "synchronous", "FULL")?;
    // On a Mac, "on the disk" has to be asked for separately.
    connection.pragma_update(None, "fullfsync", true)?;
    // After a burst the log shrinks again.
    connection.pragma_update_and_check(None, "journal_size_limit", 16 << 20, |_| Ok(()))?;
    schema::migrate(connection)
}
