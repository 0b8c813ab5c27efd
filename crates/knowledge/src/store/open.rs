//! Opening: is it ours, is it whole, can we read it?

use std::fs::{self, OpenOptions};
use std::io::Read;
use std::path::{Path, PathBuf};
use std::time::Duration;

use rusqlite::{Connection, ErrorCode};

use super::{FileError, KnowledgeFile, Opened};

/// `QDKB`, in the header of our files.
const APPLICATION: i32 = 0x5144_4b42;
const VERSION: i32 = 1;
const TABLES: &str = "
    CREATE TABLE records (id TEXT PRIMARY KEY, hash TEXT NOT NULL, body TEXT NOT NULL) WITHOUT ROWID;
    CREATE TABLE vectors (model TEXT NOT NULL, dimension INTEGER NOT NULL, key TEXT NOT NULL, vector BLOB NOT NULL,
        PRIMARY KEY (model, key)) WITHOUT ROWID;
";

impl KnowledgeFile {
    /// Opens a file, or makes it. One of ours that is damaged is set aside under another name and begun anew.
    pub fn open(path: &Path) -> Result<Opened, FileError> {
        let is_ours = header(path)?.is_some_and(|header| is_ours(&header));
        match connect(path) {
            Ok(connection) => {
                Ok(Opened { file: Self { path: path.to_owned(), connection }, set_aside: None })
            }
            Err(error) if is_ours && is_damage(&error) => {
                let aside = set_aside(path)?;
                let file = Self { path: path.to_owned(), connection: connect(path)? };
                Ok(Opened { file, set_aside: Some(aside) })
            }
            Err(FileError::Sqlite(error)) if error.sqlite_error_code() == Some(ErrorCode::NotADatabase) => {
                Err(FileError::NotOurs(path.to_owned()))
            }
            Err(error) => Err(error),
        }
    }
}

fn connect(path: &Path) -> Result<Connection, FileError> {
    create(path)?;
    let mut connection = Connection::open(path)?;
    connection.busy_timeout(Duration::from_secs(5))?;
    let number = |name: &str| connection.pragma_query_value(None, name, |row| row.get::<_, i32>(0));
    let (application, version) = (number("application_id")?, number("user_version")?);
    let tables: i64 = connection.query_row("SELECT count(*) FROM sqlite_schema", [], |row| row.get(0))?;
    match (application, version) {
        (0, 0) if tables == 0 => {
            let transaction = connection.transaction()?;
            transaction.execute_batch(TABLES)?;
            transaction.pragma_update(None, "application_id", APPLICATION)?;
            transaction.pragma_update(None, "user_version", VERSION)?;
            transaction.commit()?;
        }
        (APPLICATION, VERSION) => {
            let verdict: String = connection.query_row("PRAGMA quick_check(1)", [], |row| row.get(0))?;
            if verdict != "ok" {
                return Err(FileError::Damaged { path: path.to_owned(), what: verdict });
            }
        }
        (APPLICATION, _) => return Err(FileError::Newer(path.to_owned())),
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
    header[68..72] == APPLICATION.to_be_bytes()
}

fn is_damage(error: &FileError) -> bool {
    match error {
        FileError::Damaged { .. } => true,
        FileError::Sqlite(error) => {
            matches!(error.sqlite_error_code(), Some(ErrorCode::DatabaseCorrupt | ErrorCode::NotADatabase))
        }
        _ => false,
    }
}

/// Gives a file the first free name beside its own.
fn set_aside(path: &Path) -> Result<PathBuf, FileError> {
    let mut number = 1;
    let aside = loop {
        let mut name = path.as_os_str().to_owned();
        name.push(format!(".damaged-{number}"));
        if !Path::new(&name).exists() {
            break PathBuf::from(name);
        }
        number += 1;
    };
    fs::rename(path, &aside)?;
    Ok(aside)
}
