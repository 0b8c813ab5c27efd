//! Closes the newest segment and begins the next one.
//!
//! The next file is complete, with its header and its lock, before it takes the place of the one that lines were appended
//! to; that one gets its name in the folder first. So the path always leads to a log, at most one process has its lock,
//! and no moment loses a line.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::path::Path;

use super::crash_point::{CrashPoint, reach};
use super::files::SegmentFiles;

/// Closes the file at the path as the segment of this number, and begins the next with its header. The file that is
/// returned is locked. After an error everything is as it was.
pub(in crate::audit) fn replace_active(path: &Path, segment: u64, header: &[u8]) -> io::Result<File> {
    let files = SegmentFiles::new(path);
    create_folder(files.folder())?;
    let next = files.folder().join("next");
    let result = begin_next(&next, header).and_then(|file| {
        let closed = files.plain(segment);
        close_active(path, &closed)?;
        reach(CrashPoint::SegmentLinked);
        if let Err(error) = fs::rename(&next, path) {
            reopen_active(path, &closed);
            return Err(error);
        }
        reach(CrashPoint::ActiveReplaced);
        Ok(file)
    });
    if result.is_err() {
        let _ = fs::remove_file(&next);
        return result;
    }
    sync_folder(files.folder());
    path.parent().into_iter().for_each(sync_folder);
    result
}

fn begin_next(next: &Path, header: &[u8]) -> io::Result<File> {
    match fs::remove_file(next) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
        _ => {}
    }
    let mut options = OpenOptions::new();
    options.read(true).append(true).create_new(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    let mut file = options.open(next)?;
    reach(CrashPoint::NextBegun);
    file.try_lock().map_err(io::Error::other)?;
    file.write_all(header)?;
    file.sync_all()?;
    reach(CrashPoint::NextWritten);
    Ok(file)
}

/// Gives the file a second name, so that its path is never without one. Where a file can have only one, it is moved, and
/// opening the log finds the segment without a next one.
#[cfg(unix)]
fn close_active(path: &Path, closed: &Path) -> io::Result<()> {
    match fs::hard_link(path, closed) {
        Err(error) if error.kind() != io::ErrorKind::AlreadyExists && !closed.exists() => {
            fs::rename(path, closed)
        }
        linked => linked,
    }
}

#[cfg(not(unix))]
fn close_active(path: &Path, closed: &Path) -> io::Result<()> {
    fs::rename(path, closed)
}

fn reopen_active(path: &Path, closed: &Path) {
    let undone = match path.exists() {
        true => fs::remove_file(closed),
        false => fs::rename(closed, path),
    };
    if let Err(error) = undone {
        tracing::error!(error = %error, path = %path.display(), "audit segment could not be reopened");
    }
}

fn create_folder(folder: &Path) -> io::Result<()> {
    let mut builder = fs::DirBuilder::new();
    builder.recursive(true);
    #[cfg(unix)]
    std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
    builder.create(folder)
}

/// Makes changes of names outlast a power cut. Where a folder cannot be synced, the next start mends what is missing.
pub(super) fn sync_folder(folder: &Path) {
    if let Err(error) = File::open(folder).and_then(|folder| folder.sync_all()) {
        tracing::debug!(error = %error, folder = %folder.display(), "folder could not be synced");
    }
}
