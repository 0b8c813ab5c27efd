//! Opening: is it ours, is it whole, can we read it?

use std::fs::{self, OpenOptions};
use std::io::Read;
use std::path::{Path, PathBuf};
use std::time::Duration;

use rusqlite::{Connection, ErrorCode, OpenFlags};

use super::{FileError, KnowledgeFile, OpenedFile};

/// `QDKB`, in the header of our files.
const APPLICATION_ID: i32 = 0x5144_4b42;
/// The version of today's files.
pub const FORMAT_VERSION: i32 = 2;
const CREATE_TABLES: &str = "
    CREATE TABLE records (id TEXT PRIMARY KEY, hash TEXT NOT NULL, body TEXT NOT NULL) WITHOUT ROWID;
    CREATE TABLE vectors (model TEXT NOT NULL, key BLOB NOT NULL, vector BLOB NOT NULL, PRIMARY KEY (model, key))
        WITHOUT ROWID;
    CREATE TABLE parts (name TEXT NOT NULL, number INTEGER NOT NULL, bytes BLOB NOT NULL, UNIQUE (name, number));
    CREATE TABLE sources (fingerprint TEXT NOT NULL, left_out INTEGER NOT NULL);
";
/// What older versions had. All of it can be made again.
const DROP_OLDER_TABLES: &str = "DROP TABLE IF EXISTS records; DROP TABLE IF EXISTS vectors;";

impl KnowledgeFile {
    /// Opens a file, or makes it. One of ours that is damaged is set aside under another name and begun anew; damage
    /// that does not show here shows when it is read.
    pub fn open(path: &Path) -> Result<OpenedFile, FileError> {
        let is_ours = header(path)?.is_some_and(|header| is_ours(&header));
        match connect(path) {
            Ok(connection) => {
                Ok(OpenedFile { file: Self { path: path.to_owned(), connection }, set_aside: None })
            }
            Err(error) if is_ours && error.is_damage() => {
                let aside = set_aside(path)?;
                let file = Self { path: path.to_owned(), connection: connect(path)? };
                Ok(OpenedFile { file, set_aside: Some(aside) })
            }
            Err(FileError::Sqlite(error)) if error.sqlite_error_code() == Some(ErrorCode::NotADatabase) => {
                Err(FileError::NotOurs(path.to_owned()))
            }
            Err(error) => Err(error),
        }
    }
}

/// Writes a copy of a file as of one moment, while others may be at work on it. The copy must not be there.
pub fn copy_file(from: &Path, to: &Path) -> Result<(), FileError> {
    create(to)?;
    let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let connection = Connection::open_with_flags(from, flags)?;
    connection.busy_timeout(Duration::from_secs(5))?;
    let copied = connection.execute("VACUUM INTO ?1", [to.to_string_lossy()]);
    if let Err(error) = copied {
        fs::remove_file(to)?;
        return Err(error.into());
    }
    fs::File::open(to)?.sync_all()?;
    Ok(())
}

fn connect(path: &Path) -> Result<Connection, FileError> {
    create(path)?;
    let mut connection = Connection::open(path)?;
    connection.busy_timeout(Duration::from_secs(5))?;
    // Large values are read by the page, and there are many of them. It has an effect on a new file only.
    connection.pragma_update(None, "page_size", 16_384)?;
    let number = |name: &str| connection.pragma_query_value(None, name, |row| row.get::<_, i32>(0));
    let (application, version) = (number("application_id")?, number("user_version")?);
    let tables: i64 = connection.query_row("SELECT count(*) FROM sqlite_schema", [], |row| row.get(0))?;
    match (application, version) {
        (0, 0) if tables == 0 => {
            let transaction = connection.transaction()?;
            transaction.execute_batch(CREATE_TABLES)?;
            transaction.pragma_update(None, "application_id", APPLICATION_ID)?;
            transaction.pragma_update(None, "user_version", FORMAT_VERSION)?;
            transaction.commit()?;
        }
        (APPLICATION_ID, FORMAT_VERSION) => {}
        (APPLICATION_ID, older) if (1..FORMAT_VERSION).contains(&older) => {
            let transaction = connection.transaction()?;
            transaction.execute_batch(DROP_OLDER_TABLES)?;
            transaction.execute_batch(CREATE_TABLES)?;
            transaction.pragma_update(None, "user_version", FORMAT_VERSION)?;
            transaction.commit()?;
        }
        (APPLICATION_ID, _) => return Err(FileError::Newer(path.to_owned())),
        _ => return Err(FileError::NotOurs(path.to_owned())),
    }
    Ok(connection)
}

/// Makes the file if it is not there, readable by its owner alone: records may be personal.
fn create(path: &Path) -> Result<(), FileError> {
    let mut options = OpenOptions::new();
    options.write(true).create_new(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    match options.open(path) {
        Err(error) if error.kind() != std::io::ErrorKind::AlreadyExists => Err(error.into()),
        _ => Ok(()),
    }
}

/// The first hundred bytes, if there are as many.
fn header(path: &Path) -> Result<Option<[u8; 100]>, FileError> {
    let mut header = [0; 100];
    match fs::File::open(path).and_then(|mut file| file.read_exact(&mut header)) {
        Ok(()) => Ok(Some(header)),
        Err(error)
            if matches!(error.kind(), std::io::ErrorKind::NotFound | std::io::ErrorKind::UnexpectedEof) =>
        {
            Ok(None)
        }
        Err(error) => Err(error.into()),
    }
}

fn is_ours(header: &[u8; 100]) -> bool {
    header[68..72] == APPLICATION_ID.to_be_bytes()
}

/// Gives a damaged file the first free name beside its own, and returns that. What SQLite keeps beside it goes with it:
/// a journal would be played back into the next file of that name.
pub fn set_aside(path: &Path) -> Result<PathBuf, FileError> {
    let beside = |path: &Path, ending: &str| {
        let mut name = path.as_os_str().to_owned();
        name.push(ending);
        PathBuf::from(name)
    };
    let mut number = 1;
    let mut aside = beside(path, ".damaged-1");
    while aside.exists() {
        number += 1;
        aside = beside(path, &format!(".damaged-{number}"));
    }
    fs::rename(path, &aside)?;
    for ending in ["-journal", "-wal", "-shm"] {
        match fs::rename(beside(path, ending), beside(&aside, ending)) {
            Err(error) if error.kind() != std::io::ErrorKind::NotFound => return Err(error.into()),
            _ => {}
        }
    }
    Ok(aside)
}
