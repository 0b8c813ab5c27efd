//! What a disk says when it refuses although nothing on it is damaged.

use std::fmt;
use std::io;

/// Why a disk did not do what was asked. None of these says anything about what is in a file, so none of them is a
/// reason to set a file aside or to go back to a backup.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum DiskError {
    /// There is no room, or the user's quota is used up.
    Full,
    /// A file may not grow further: a limit of the process or of the file system.
    FileTooLarge,
    /// The file system is mounted read-only.
    ReadOnly,
    /// The user of this process may not do it.
    NotPermitted,
    /// The process, or the machine, has as many files open as it may.
    TooManyOpenFiles,
    /// The device failed to read or write.
    Failing,
}

impl DiskError {
    /// What an error of the system comes to; `None` when it is about something else.
    pub fn of(error: &io::Error) -> Option<Self> {
        match error.kind() {
            io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => Some(Self::Full),
            io::ErrorKind::FileTooLarge => Some(Self::FileTooLarge),
            io::ErrorKind::ReadOnlyFilesystem => Some(Self::ReadOnly),
            io::ErrorKind::PermissionDenied => Some(Self::NotPermitted),
            _ => Self::of_number(error.raw_os_error()?),
        }
    }

    /// The system's words, and what to do about it.
    pub fn explain(error: &io::Error) -> String {
        Self::of(error).map_or_else(|| error.to_string(), |fault| format!("{error}; {fault}"))
    }

    /// Errors that the standard library has no kind for. The numbers are the same on every Unix.
    fn of_number(number: i32) -> Option<Self> {
        const EIO: i32 = 5;
        const ENFILE: i32 = 23;
        const EMFILE: i32 = 24;
        match number {
            EIO if cfg!(unix) => Some(Self::Failing),
            ENFILE | EMFILE if cfg!(unix) => Some(Self::TooManyOpenFiles),
            _ => None,
        }
    }
}

impl fmt::Display for DiskError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Full => "the disk is full, and nothing is damaged: free some space, and try again",
            Self::FileTooLarge => {
                "a limit on the size of files is reached, and nothing is damaged: raise it (`ulimit -f`), and try again"
            }
            Self::ReadOnly => {
                "the file system or the file is read-only, and nothing is damaged: make it writable, \
                 or choose another folder"
            }
            Self::NotPermitted => {
                "the user of this process may not do that, and nothing is damaged: give the folder and its files \
                 to that user"
            }
            Self::TooManyOpenFiles => {
                "too many files are open, and nothing is damaged: raise the limit (`ulimit -n`), and try again"
            }
            Self::Failing => {
                "the device failed (an I/O error; the system's log names it), which is no sign of a damaged file"
            }
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[cfg(unix)]
    #[test]
    fn every_refusal_of_a_disk_is_told_apart() {
        let of = |number| DiskError::of(&io::Error::from_raw_os_error(number));
        // ENOSPC, EFBIG, EROFS, EACCES, EPERM, EMFILE, ENFILE, EIO, and ENOENT, which is about something else.
        assert_eq!(of(28), Some(DiskError::Full));
        assert_eq!(of(27), Some(DiskError::FileTooLarge));
        assert_eq!(of(30), Some(DiskError::ReadOnly));
        assert_eq!(of(13), Some(DiskError::NotPermitted));
        assert_eq!(of(1), Some(DiskError::NotPermitted));
        assert_eq!(of(24), Some(DiskError::TooManyOpenFiles));
        assert_eq!(of(23), Some(DiskError::TooManyOpenFiles));
        assert_eq!(of(5), Some(DiskError::Failing));
        assert_eq!(of(2), None);
        let text = DiskError::explain(&io::Error::from_raw_os_error(30));
        assert!(
            text.starts_with("Read-only file system (os error 30); ") && text.contains("make it writable")
        );
    }
}
