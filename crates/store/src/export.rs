//! Rows as engines keep them, for copies from one engine to another.

use quarterdeck_contracts::Table;

/// One row. Its version is left behind: the engine that takes it gives it one of its own.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ExportedRow {
    pub table: Table,
    pub key: String,
    /// JSON, letter for letter as it was written.
    pub value: String,
    /// When it may be forgotten, in milliseconds since 1970.
    pub expires_ms: Option<u64>,
}
