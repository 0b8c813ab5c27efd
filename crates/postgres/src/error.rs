//! What can go wrong between us and the server, by what is known of the statement then.

use std::error::Error;
use std::path::PathBuf;

use deadpool_postgres::{PoolError, TimeoutType};
use tokio_postgres::error::SqlState;

/// Why a database cannot be used at all.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ConnectError {
    #[error("the certificates in {} cannot be used: {reason}; check sslrootcert", file.display())]
    RootCertificates { file: PathBuf, reason: String },
    #[error("encryption cannot be set up: {0}")]
    Tls(String),
    #[error("the pool of connections cannot be made: {0}")]
    Pool(String),
}

/// Why a call came to nothing. No variant shows a password or a value.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum DatabaseError {
    /// No connection was to be had: nothing was sent.
    #[error("no connection to {address}: {reason}")]
    NoConnection {
        address: String,
        reason: String,
        /// Trying again would not help: the password is wrong, or there is no such database.
        is_final: bool,
    },
    /// The answer did not come, so it is not known what the statement did.
    #[error("the connection to {address} was lost: {reason}")]
    Lost { address: String, reason: String },
    /// The server refused the statement and undid it.
    #[error("PostgreSQL refused: {0}")]
    Refused(Refusal),
}

/// What the server said.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{message} (SQLSTATE {code})")]
pub struct Refusal {
    pub code: String,
    pub message: String,
    /// May name values, so it is not shown.
    pub detail: Option<String>,
}

/// What to do about an error.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ErrorClass {
    /// Nothing was done, because there is no connection: try again a little later.
    NotSent,
    /// It may have been done: whatever is tried again must find out.
    Lost,
    /// It was undone, because of others: try again.
    Retry,
    /// It would fail again.
    Final,
}

impl DatabaseError {
    pub fn class(&self) -> ErrorClass {
        match self {
            Self::NoConnection { is_final: false, .. } => ErrorClass::NotSent,
            Self::NoConnection { is_final: true, .. } => ErrorClass::Final,
            Self::Lost { .. } => ErrorClass::Lost,
            Self::Refused(refusal) if is_contention(&refusal.code) => ErrorClass::Retry,
            Self::Refused(_) => ErrorClass::Final,
        }
    }

    /// What came of getting a connection.
    pub(crate) fn of_pool(error: PoolError, address: &str) -> Self {
        let (reason, is_final) = match error {
            PoolError::Backend(error) => {
                let is_final = error.code().is_some_and(is_hopeless);
                (describe(&error), is_final)
            }
            PoolError::Timeout(TimeoutType::Wait) => ("all connections are in use".to_owned(), false),
            PoolError::Timeout(_) => ("it does not answer".to_owned(), false),
            PoolError::Closed => ("the pool is closed".to_owned(), true),
            other => (other.to_string(), true),
        };
        Self::NoConnection { address: address.to_owned(), reason, is_final }
    }

    /// What came of making a connection outside the pool.
    pub(crate) fn of_connecting(error: &tokio_postgres::Error, address: &str) -> Self {
        let is_final = error.code().is_some_and(is_hopeless);
        Self::NoConnection { address: address.to_owned(), reason: describe(error), is_final }
    }

    /// What came of a statement.
    pub(crate) fn of_statement(error: &tokio_postgres::Error, address: &str) -> Self {
        match error.as_db_error() {
            Some(refused) if !ends_connection(refused.code()) => Self::Refused(Refusal {
                code: refused.code().code().to_owned(),
                message: refused.message().to_owned(),
                detail: refused.detail().map(str::to_owned),
            }),
            _ => Self::Lost { address: address.to_owned(), reason: describe(error) },
        }
    }
}

/// The error with its causes, without details, which may name values.
pub(crate) fn describe(error: &tokio_postgres::Error) -> String {
    if let Some(refused) = error.as_db_error() {
        return format!("{} (SQLSTATE {})", refused.message(), refused.code().code());
    }
    let mut text = error.to_string();
    let mut source = error.source();
    while let Some(cause) = source {
        let cause_text = cause.to_string();
        if !text.contains(&cause_text) {
            text = format!("{text}: {cause_text}");
        }
        source = cause.source();
    }
    text
}

/// The server ended the connection, or is no longer the one that may be written to. A backend that was told to end while it
/// waited for a standby has committed already.
fn ends_connection(code: &SqlState) -> bool {
    [
        SqlState::ADMIN_SHUTDOWN,
        SqlState::CRASH_SHUTDOWN,
        SqlState::CANNOT_CONNECT_NOW,
        SqlState::QUERY_CANCELED,
        SqlState::IDLE_SESSION_TIMEOUT,
        SqlState::READ_ONLY_SQL_TRANSACTION,
    ]
    .contains(code)
        || code.code().starts_with("08")
}

/// Connecting again would give the same answer.
fn is_hopeless(code: &SqlState) -> bool {
    code.code().starts_with("28") || *code == SqlState::UNDEFINED_DATABASE
}

fn is_contention(code: &str) -> bool {
    let contention =
        [SqlState::T_R_SERIALIZATION_FAILURE, SqlState::T_R_DEADLOCK_DETECTED, SqlState::LOCK_NOT_AVAILABLE];
    contention.iter().any(|known| known.code() == code)
}
