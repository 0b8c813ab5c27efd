//! The file on disk: created for its owner alone, and examined before SQLite touches it.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Read};
use std::path::{Path, PathBuf};

const HEADER: &[u8; 16] = b"SQLite format 3\0";

/// What is at a path before the store is opened.
pub(super) enum FileState {
    Empty,
    Database,
    SomethingElse,
    /// No database but a log, which may hold the last commits and which the engine would delete.
    LogAlone,
    /// A database whose last page is incomplete.
    Cut,
    /// A database, and something else under the name of its log, which the engine would overwrite.
    ForeignLog,
}

/// Creates the file and its folder if they are missing, and says what was there.
pub(super) fn prepare(path: &Path) -> io::Result<FileState> {
    if let Some(folder) = path.parent().filter(|folder| !folder.as_os_str().is_empty()) {
        create_folder(folder)?;
    }
    let is_log_there = sibling(path, "-wal").metadata().is_ok_and(|log| log.len() > 0);
    if is_log_there && path.metadata().map_or(true, |file| file.len() == 0) {
        return Ok(FileState::LogAlone);
    }
    match create_new(path) {
        Ok(_) => return Ok(FileState::Empty),
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
        Err(error) => return Err(error),
    }
    let start = start(path, HEADER.len() + 2)?;
    Ok(match start.as_slice() {
        [] => FileState::Empty,
        start if !start.starts_with(HEADER) => FileState::SomethingElse,
        _ if is_log_there && !is_log(&sibling(path, "-wal"))? => FileState::ForeignLog,
        // With a log or a journal, its last page may be half written, and stands there.
        start if !is_log_there && !sibling(path, "-journal").exists() && !is_whole_pages(start, path)? => {
            FileState::Cut
        }
        _ => FileState::Database,
    })
}

/// Whether a file is as long as some number of its pages, whose size stands after the first words.
fn is_whole_pages(start: &[u8], path: &Path) -> io::Result<bool> {
    let size = match start.get(HEADER.len()..) {
        Some([high, low]) => u64::from(u16::from_be_bytes([*high, *low])),
        _ => return Ok(false),
    };
    // What does not fit into two bytes is written as a one.
    let size = if size == 1 { 65_536 } else { size };
    Ok(size > 0 && path.metadata()?.len().is_multiple_of(size))
}

/// The first bytes of a file, as many as there are.
fn start(path: &Path, bytes: usize) -> io::Result<Vec<u8>> {
    let mut start = Vec::with_capacity(bytes);
    File::open(path)?.take(bytes as u64).read_to_end(&mut start)?;
    Ok(start)
}

/// Whether a file is a log of SQLite's, or what a crash may leave of one that was just begun.
fn is_log(path: &Path) -> io::Result<bool> {
    let start = start(path, 4)?;
    Ok(matches!(start.as_slice(), [0x37, 0x7f, 0x06, 0x82 | 0x83]) || start.iter().all(|byte| *byte == 0))
}

/// Removes the permissions of other users on the file and on those that SQLite keeps beside it.
pub(super) fn restrict_permissions(path: &Path) -> io::Result<()> {
    for file in [path.to_owned(), sibling(path, "-wal"), sibling(path, "-shm")] {
        match make_private(&file) {
            Ok(false) => {}
            Ok(true) => {
                tracing::warn!(file = %file.display(), "store was accessible to other users, permissions restricted");
            }
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            Err(error) => return Err(error),
        }
    }
    Ok(())
}

/// A file that SQLite keeps beside this one.
pub(super) fn sibling(path: &Path, ending: &str) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(ending);
    PathBuf::from(name)
}

/// Makes a new file. What SQLite makes beside it later has the same permissions.
fn create_new(path: &Path) -> io::Result<File> {
    let mut options = OpenOptions::new();
    options.write(true).create_new(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    options.open(path)
}

fn create_folder(folder: &Path) -> io::Result<()> {
    let mut builder = fs::DirBuilder::new();
    builder.recursive(true);
    #[cfg(unix)]
    std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
    builder.create(folder)
}

/// Returns whether there was something to change.
#[cfg(unix)]
fn make_private(file: &Path) -> io::Result<bool> {
    use std::os::unix::fs::PermissionsExt;
    let mut permissions = fs::metadata(file)?.permissions();
    if permissions.mode() & 0o077 == 0 {
        return Ok(false);
    }
    permissions.set_mode(permissions.mode() & 0o7700);
    fs::set_permissions(file, permissions)?;
    Ok(true)
}

/// Elsewhere a file has the permissions of its folder.
#[cfg(not(unix))]
fn make_private(_file: &Path) -> io::Result<bool> {
    Ok(false)
}

/// Makes a file's name durable, as its contents are.
pub(super) fn sync_folder_of(path: &Path) -> io::Result<()> {
    if !cfg!(unix) {
        return Ok(());
    }
    File::open(folder_of(path))?.sync_all()
}

pub(super) fn folder_of(path: &Path) -> &Path {
    path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."))
}
