//! What every store promises, as tests that any engine can run.
//!
//! An engine is a function that opens a store in a folder. [`store_promises!`](crate::store_promises) makes one test
//! of each promise, or with a name one test of all; [`durable_store_promises!`](crate::durable_store_promises) adds those of engines that find their
//! rows again when the same folder is opened a second time.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

mod commits;
mod durable;
mod rows;
mod shared;

use std::path::Path;
use std::sync::Arc;

use quarterdeck_contracts::{Commit, CommitError, Row, Scan, Store, Table};
use serde_json::Value;
use tempfile::TempDir;

use crate::block_on;

pub use commits::*;
pub use durable::*;
pub use rows::*;
pub use shared::*;

/// Opens the store of a folder.
pub type Open = fn(&Path) -> Arc<dyn Store>;

/// One store in a folder of its own.
struct StoreFixture {
    store: Arc<dyn Store>,
    open: Open,
    folder: TempDir,
}

impl StoreFixture {
    fn new(open: Open) -> Self {
        let folder = tempfile::tempdir().unwrap();
        Self { store: open(folder.path()), open, folder }
    }

    /// Lets go of the store and opens the folder again.
    fn reopen(self) -> Self {
        let Self { store, open, folder } = self;
        drop(store);
        Self { store: open(folder.path()), open, folder }
    }

    fn row(&self, table: Table, key: &str) -> Option<Row> {
        block_on(self.store.get(table, key)).unwrap()
    }

    fn value(&self, table: Table, key: &str) -> Option<Value> {
        self.row(table, key).map(|row| row.value)
    }

    fn version(&self, table: Table, key: &str) -> Option<u64> {
        self.row(table, key).map(|row| row.version)
    }

    fn keys(&self, table: Table, scan: Scan) -> Vec<String> {
        block_on(self.store.scan(table, scan)).unwrap().into_iter().map(|(key, _)| key).collect()
    }

    fn commit(&self, commit: Commit) -> Result<u64, CommitError> {
        block_on(self.store.commit(commit))
    }

    fn put(&self, table: Table, key: &str, value: Value) {
        self.commit(Commit::default().put(table, key, value)).unwrap();
    }
}

/// Makes a test of each named promise.
#[doc(hidden)]
#[macro_export]
macro_rules! __promises {
    ($open:expr; $($promise:ident),* $(,)?) => {
        $(
            #[test]
            fn $promise() {
                $crate::store_conformance::$promise($open);
            }
        )*
    };
}

/// Makes one test of all named promises, for an engine that takes longer to start than to keep them.
#[doc(hidden)]
#[macro_export]
macro_rules! __promises_in_one_test {
    ($test:ident, $open:expr; $($promise:ident),* $(,)?) => {
        #[test]
        fn $test() {
            $(
                println!("{}", stringify!($promise));
                $crate::store_conformance::$promise($open);
            )*
        }
    };
}

/// The promises of every engine, each as a test of its own.
#[macro_export]
macro_rules! store_promises {
    ($open:expr) => {
        $crate::__store_promises! { __promises; $open }
    };
    (in $test:ident, $open:expr) => {
        $crate::__store_promises! { __promises_in_one_test; $test, $open }
    };
}

/// Hands the names of the promises to another macro.
#[doc(hidden)]
#[macro_export]
macro_rules! __store_promises {
    ($make:ident; $($arguments:tt)*) => {
        $crate::$make! {
            $($arguments)*;
            a_row_is_there_once_it_was_put_and_gone_once_it_was_deleted,
            a_scan_goes_by_bytes,
            a_scan_keeps_to_its_prefix_and_its_limit,
            a_scan_goes_on_after_a_key,
            keys_may_be_odd,
            a_key_that_is_too_long_is_refused,
            tables_do_not_mix,
            values_come_back_to_the_last_digit,
            a_megabyte_is_a_value_like_any_other,
            a_value_is_refused_before_it_is_too_deep_to_be_read,
            a_sweep_forgets_what_has_expired_and_nothing_else,
            a_row_that_is_written_again_has_the_new_expiry,
            a_commit_is_applied_as_a_whole,
            a_failed_check_writes_nothing_and_says_which,
            checks_see_what_was_before_the_commit,
            a_commit_may_only_check,
            the_last_write_of_a_row_wins,
            a_row_that_was_made_anew_is_not_the_old_one,
            versions_grow,
            a_queued_commit_is_seen_at_once_and_comes_before_later_ones,
            a_queued_commit_whose_check_fails_is_dropped,
            of_a_hundred_commits_from_one_version_one_wins,
            commit_whose_caller_is_gone_is_applied_as_a_whole,
            a_flood_is_refused_or_kept,
            a_commit_tells_the_version_of_its_rows,
            a_rate_limit_is_counted_with_its_commit,
            a_rate_limit_has_room_again_after_its_window,
            of_a_hundred_takers_as_many_win_as_there_is_room,
            a_flush_waits_for_what_was_queued,
            watchers_hear_of_changes,
        }
    };
}

/// What engines promise besides whose rows outlive them.
#[macro_export]
macro_rules! durable_store_promises {
    ($open:expr) => {
        $crate::__durable_store_promises! { __promises; $open }
    };
    (in $test:ident, $open:expr) => {
        $crate::__durable_store_promises! { __promises_in_one_test; $test, $open }
    };
}

/// Hands the names of the promises to another macro.
#[doc(hidden)]
#[macro_export]
macro_rules! __durable_store_promises {
    ($make:ident; $($arguments:tt)*) => {
        $crate::$make! {
            $($arguments)*;
            rows_are_there_when_it_is_opened_again,
            queued_commits_are_there_after_an_orderly_end,
            versions_grow_across_openings,
            a_deleted_row_is_not_mistaken_across_openings,
        }
    };
}
