//! Why the base in the database cannot be built or loaded, and what to do.

use std::error::Error as _;

use quarterdeck_knowledge::BuildError;
use quarterdeck_postgres::DatabaseError;

#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum KnowledgeError {
    #[error("the knowledge base's database cannot be used; check `store.url`, and that PostgreSQL runs")]
    Database(#[from] DatabaseError),
    /// In a transaction of many statements, which was undone.
    #[error("the knowledge base's database did not do what it was asked: {0}")]
    Statement(String),
    #[error(
        "the knowledge base in the database was made by a newer version of Quarterdeck (its tables are version {found}, this \
         is {known}); update this node"
    )]
    Newer { found: i32, known: i32 },
    #[error("the knowledge base in the database is damaged: {0}; `quarterdeck kb build` mends it")]
    Damaged(String),
    #[error(
        "another node took over while this one built; nothing was changed, run `quarterdeck kb build` again"
    )]
    LeaseLost,
    #[error(transparent)]
    Build(#[from] BuildError),
    #[error("the build was stopped before it was done")]
    Stopped,
}

impl From<tokio_postgres::Error> for KnowledgeError {
    /// Without the server's details, which may name what records say.
    fn from(error: tokio_postgres::Error) -> Self {
        let text = match error.as_db_error() {
            Some(refused) => format!("{} (SQLSTATE {})", refused.message(), refused.code().code()),
            None => match error.source() {
                Some(cause) => format!("{error}: {cause}"),
                None => error.to_string(),
            },
        };
        Self::Statement(text)
    }
}

/// Why meaning cannot be searched in the database.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum PgvectorError {
    #[error(
        "the base has {passages} passages, more than the {limit} of `kb.max_passages_in_memory`, and the database has no \
         pgvector, so that search is by words\nhelp: install pgvector 0.8 or later on the database server (Debian: \
         postgresql-17-pgvector), run `CREATE EXTENSION vector` there if this role may not, and build again; or raise the \
         limit, if the nodes have the memory"
    )]
    Missing { passages: usize, limit: usize },
    #[error(
        "pgvector {found} is too old to search with filters, so that search is by words\nhelp: install 0.8 or later, run \
         `ALTER EXTENSION vector UPDATE`, and build again"
    )]
    TooOld { found: String },
    #[error(
        "vectors of {dimension} numbers are more than pgvector indexes ({limit}), so that search is by words\nhelp: use a \
         model with fewer, or raise `kb.max_passages_in_memory`"
    )]
    TooLong { dimension: usize, limit: usize },
}
