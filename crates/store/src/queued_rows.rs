//! Which rows have queued changes that are not in the store yet.
//!
//! Only the writer knows such a row as its readers must see it. Every other row can be read beside the writer, without
//! waiting for it.

use std::hash::{BuildHasher, RandomState};
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use quarterdeck_contracts::Table;

/// Rows share slots by their hash. A shared slot sends a reader the slow way, never the wrong one.
const SLOTS: usize = 4096;

/// How many queued changes are under way, by slot and by table.
pub(crate) struct QueuedRows {
    hash: RandomState,
    slots: Box<[AtomicU32]>,
    tables: [AtomicU32; Table::ALL.len()],
}

impl QueuedRows {
    pub(crate) fn new() -> Self {
        let slots = (0..SLOTS).map(|_| AtomicU32::new(0)).collect();
        Self { hash: RandomState::new(), slots, tables: Default::default() }
    }

    /// Marks rows as changing, until the answer is dropped.
    pub(crate) fn mark<'a>(self: &Arc<Self>, rows: impl Iterator<Item = (Table, &'a str)>) -> QueuedMark {
        let rows: Vec<_> = rows.map(|(table, key)| (table, self.slot(table, key))).collect();
        for (table, slot) in &rows {
            self.slots[*slot].fetch_add(1, Ordering::AcqRel);
            self.tables[*table as usize].fetch_add(1, Ordering::AcqRel);
        }
        QueuedMark { queued_rows: Arc::clone(self), rows }
    }

    /// Whether a row may have queued changes.
    pub(crate) fn has_row(&self, table: Table, key: &str) -> bool {
        self.slots[self.slot(table, key)].load(Ordering::Acquire) > 0
    }

    /// Whether any row of a table has queued changes.
    pub(crate) fn has_table(&self, table: Table) -> bool {
        self.tables[table as usize].load(Ordering::Acquire) > 0
    }

    fn slot(&self, table: Table, key: &str) -> usize {
        (self.hash.hash_one((table, key)) % SLOTS as u64) as usize
    }
}

/// The rows of one queued commit. Dropped when they are in the store, or will never be.
pub(crate) struct QueuedMark {
    queued_rows: Arc<QueuedRows>,
    rows: Vec<(Table, usize)>,
}

impl Drop for QueuedMark {
    fn drop(&mut self) {
        for (table, slot) in &self.rows {
            self.queued_rows.slots[*slot].fetch_sub(1, Ordering::AcqRel);
            self.queued_rows.tables[*table as usize].fetch_sub(1, Ordering::AcqRel);
        }
    }
}
