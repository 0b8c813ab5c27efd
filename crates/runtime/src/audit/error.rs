//! Why an audit log cannot be opened.

use std::path::PathBuf;

use quarterdeck_contracts::{DiskError, StoreError};

/// Why a log cannot be continued. The file is as it was.
#[derive(Debug, thiserror::Error)]
pub enum AuditLogError {
    /// The file cannot be opened or read.
    #[error("cannot open the audit trail {path}: {}", DiskError::explain(reason))]
    Unreadable {
        /// Its file.
        path: PathBuf,
        /// What the operating system said.
        reason: std::io::Error,
    },
    /// It does not end with a line of ours.
    #[error(
        "line {line} of {path} is not a line of the audit trail, and the file was left as it was; \
         move it away and keep it, a new one is begun"
    )]
    Damaged {
        /// Its file.
        path: PathBuf,
        /// The number of the line.
        line: u64,
    },
    /// Another process writes it.
    #[error("the audit trail {path} is written by another process; stop that one first")]
    InUse {
        /// Its file.
        path: PathBuf,
    },
    /// The store cannot be read or written.
    #[error(transparent)]
    Store(#[from] StoreError),
}
