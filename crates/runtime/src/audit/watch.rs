//! The file that lines are appended to, and whether it is as it was left.

use std::fs::{self, File, Metadata};
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::path::Path;

use super::chain::ChainHead;
use super::error::AuditLogError;
use super::open::open;
#[cfg(unix)]
use super::segment::is_same_file;
use super::segment::replace_active;

pub(super) trait AppendFile: Write + Sized {
    /// Cuts it back to a length, in bytes.
    fn cut(&mut self, length: u64) -> io::Result<()>;

    /// Its present length, and whether it is still at its path.
    fn state(&mut self, path: &Path) -> io::Result<State>;

    /// Whether the next line begins on a line of its own.
    fn has_line_end(&mut self) -> io::Result<bool>;

    /// Opens or creates the file at the path; the file and its length.
    fn open_anew(path: &Path, head: &ChainHead) -> Result<(Self, u64), AuditLogError>;

    /// Waits until everything written is on the disk.
    fn sync(&mut self) -> io::Result<()>;

    /// Closes the file at the path as the segment of this number, and begins the next one with its header.
    fn begin_next(path: &Path, segment: u64, header: &[u8]) -> io::Result<Self>;
}

/// Where a file is, and its length.
pub(super) struct State {
    /// Whether the path still leads to it.
    pub(super) is_at_path: bool,
    pub(super) length: u64,
}

impl AppendFile for File {
    fn cut(&mut self, length: u64) -> io::Result<()> {
        self.set_len(length)
    }

    fn state(&mut self, path: &Path) -> io::Result<State> {
        Ok(State { is_at_path: is_at_path(self, path)?, length: self.metadata()?.len() })
    }

    fn has_line_end(&mut self) -> io::Result<bool> {
        if self.metadata()?.len() == 0 {
            return Ok(true);
        }
        let mut last = [0];
        self.seek(SeekFrom::End(-1))?;
        self.read_exact(&mut last)?;
        Ok(last == *b"\n")
    }

    fn open_anew(path: &Path, head: &ChainHead) -> Result<(Self, u64), AuditLogError> {
        open(path, head).map(|opened| (opened.file, opened.length))
    }

    fn sync(&mut self) -> io::Result<()> {
        self.sync_data()
    }

    fn begin_next(path: &Path, segment: u64, header: &[u8]) -> io::Result<Self> {
        replace_active(path, segment, header)
    }
}

/// Whether a path leads to a file that was opened.
pub(super) fn is_at_path(file: &File, path: &Path) -> io::Result<bool> {
    match fs::metadata(path) {
        Ok(there) => Ok(is_same(&file.metadata()?, &there)),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(false),
        Err(error) => Err(error),
    }
}

#[cfg(unix)]
fn is_same(one: &Metadata, other: &Metadata) -> bool {
    is_same_file(one, other)
}

/// Elsewhere a file that is open cannot be replaced.
#[cfg(not(unix))]
fn is_same(_: &Metadata, _: &Metadata) -> bool {
    true
}

/// A file, and how much of it is whole lines.
pub(super) struct LogFile<F> {
    pub(super) file: F,
    length: u64,
    /// Whether there is more in the file than whole lines of ours.
    is_torn: bool,
}

impl<F: AppendFile> LogFile<F> {
    pub(super) fn new(file: F, length: u64) -> Self {
        Self { file, length, is_torn: false }
    }

    /// How much of it is whole lines, in bytes.
    pub(super) fn length(&self) -> u64 {
        self.length
    }

    /// Whether the file is where and as it was left after the last line.
    pub(super) fn is_as_left(&mut self, path: &Path) -> io::Result<bool> {
        let state = self.file.state(path)?;
        Ok(state.is_at_path && (state.length == self.length || self.is_torn))
    }

    /// Goes on after another process has changed the file, in the one at the path now. Nothing that is
    /// there is removed: it is evidence.
    pub(super) fn resume(disk: Option<Self>, path: &Path, head: &ChainHead) -> Result<Self, AuditLogError> {
        let unreadable = |reason| AuditLogError::Unreadable { path: path.to_owned(), reason };
        if let Some(mut disk) = disk {
            let state = disk.file.state(path).map_err(unreadable)?;
            if state.is_at_path {
                disk.length = state.length;
                if !disk.file.has_line_end().map_err(unreadable)? {
                    disk.write(b"\n").map_err(unreadable)?;
                }
                return Ok(disk);
            }
            // Dropped before another file is opened: it holds the lock of the one that is gone.
        }
        let (file, length) = F::open_anew(path, head)?;
        Ok(Self::new(file, length))
    }

    /// Writes a line whole or not at all: what a full disk has taken of it is cut off again, before it or with the
    /// next line, so that no later line is glued to half of one.
    pub(super) fn write(&mut self, line: &[u8]) -> io::Result<()> {
        self.mend()?;
        // One write for one line, so that a crash leaves at most the last one torn.
        match self.file.write_all(line) {
            Ok(()) => self.length += line.len() as u64,
            Err(error) => {
                self.is_torn = true;
                let _ = self.mend();
                return Err(error);
            }
        }
        Ok(())
    }

    /// Waits until every whole line is on the disk, and nothing else is in the file.
    pub(super) fn sync(&mut self) -> io::Result<()> {
        self.mend()?;
        self.file.sync()
    }

    fn mend(&mut self) -> io::Result<()> {
        if self.is_torn {
            self.file.cut(self.length)?;
            self.is_torn = false;
        }
        Ok(())
    }
}
