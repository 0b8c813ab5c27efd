//! `.ics` files (RFC 5545): in and out.
//!
//! The reader is our own and small: it works line by line, so that a fault has a line number, nothing recurses, and the
//! time is proportional to the size. What a file says that we do not keep (alarms, attachments, colours) is lost.

mod component;
mod edit;
mod event;
mod invite;
mod line;
mod read;
mod text;
mod write;
mod zone;

use quarterdeck_contracts::{Overlay, StoreError, Table};
use serde_json::Value;

use crate::local::next_revision;

pub use edit::{cancel_in_object, move_in_object};
pub use invite::invitation;
pub use read::{import, read_rows};
pub use write::{export, write_object};

pub const MAX_ICS_BYTES: usize = 5 * 1024 * 1024;
pub const MAX_EVENTS: usize = 20_000;

#[derive(Debug, Clone, PartialEq)]
pub struct Import {
    /// The rows of the table `calendar`, with their keys. A row replaces the one with the same key.
    pub rows: Vec<(String, Value)>,
    /// How many events were read; occurrences that differ from their series count with it.
    pub events: usize,
    /// What was not taken as it stands, and why, one sentence each.
    pub skipped: Vec<String>,
}

impl Import {
    /// Writes the rows. They are there once the overlay's changes have been committed.
    pub async fn write_to(self, overlay: &Overlay) -> Result<(), StoreError> {
        if self.rows.is_empty() {
            return Ok(());
        }
        next_revision(overlay).await?;
        for (key, row) in self.rows {
            overlay.put(Table::Calendar, key, row);
        }
        Ok(())
    }
}

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum IcsError {
    #[error("the file has {bytes} bytes; at most {MAX_ICS_BYTES} are read")]
    TooLarge { bytes: usize },
    #[error("the file holds more than {MAX_EVENTS} events")]
    TooManyEvents,
    /// It is not an iCalendar file, or a damaged one.
    #[error("line {line}: {message}")]
    Malformed {
        /// Counted from one.
        line: usize,
        message: String,
    },
}

impl IcsError {
    fn at(line: usize, message: impl Into<String>) -> Self {
        Self::Malformed { line, message: message.into() }
    }
}
