//! Why an audit log cannot be opened.

use std::path::PathBuf;

use quarterdeck_contracts::{DiskError, StoreError};

/// Why a log cannot be continued. The file is as it was.
#[derive(Debug, thiserror::Error)]
pub enum AuditLogError {
    #[error("cannot open the audit trail {path}: {}", DiskError::explain(reason))]
    Unreadable { path: PathBuf, reason: std::io::Error },
    #[error(
        "line {line} of {path} is not a line of the audit trail, and the file was left as it was; \
         move it away and keep it, a new one is begun"
    )]
    Damaged { path: PathBuf, line: u64 },
    #[error("the audit trail {path} is written by another process; stop that one first")]
    InUse { path: PathBuf },
    #[error(transparent)]
    Store(#[from] StoreError),
}
