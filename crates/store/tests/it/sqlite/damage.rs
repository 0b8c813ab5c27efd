//! A file that is not what was written: whatever was done to it, nothing wrong is served.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::time::{Duration, Instant};

use proptest::prelude::*;
use quarterdeck_contracts::{Commit, CommitError, Scan, Store, StoreError, Table};
use quarterdeck_store::{OpenError, SqliteOptions, SqliteStore};
use quarterdeck_testkit::block_on;
use rusqlite::Connection;
use serde_json::{Value, json};

use super::{place, put, value};

/// Rows that are forgotten at this time, in milliseconds.
const EARLY: u64 = 1_000;
/// Rows that are kept beyond it.
const LATE: u64 = 2_000;

type Rows = BTreeMap<(Table, String), (Value, Option<u64>)>;

/// Some rows of every table, of many sizes; every third is forgotten early, every third late.
fn rows() -> Rows {
    let mut rows = Rows::new();
    for (number, table) in Table::ALL.iter().cycle().take(180).enumerate() {
        let text = format!("{number} ").repeat(number * number % 977);
        let expires = [None, Some(EARLY), Some(LATE)][number % 3];
        rows.insert((*table, format!("{number:03}/{}", table.as_str())), (json!({ "text": text }), expires));
    }
    rows
}

fn fill(path: &Path) -> Rows {
    let store = SqliteStore::open(path).unwrap();
    let rows = rows();
    for ((table, key), (value, expires)) in &rows {
        let commit = Commit::default().put_until(*table, key.clone(), value.clone(), *expires);
        block_on(store.commit(commit)).unwrap();
    }
    block_on(store.close()).unwrap();
    rows
}

/// Opens a file that was damaged and holds it to this: it is refused and left as it is, or each row is as it was
/// written or refused. Says whether damage was told.
fn nothing_wrong_is_served(path: &Path, rows: &Rows) -> Result<bool, TestCaseError> {
    let before = fs::read(path).unwrap();
    let store = match SqliteStore::open(path) {
        Ok(store) => store,
        Err(error) => {
            prop_assert!(
                fs::read(path).unwrap() == before,
                "a file that is refused is left as it is: {error}"
            );
            let is_told = matches!(
                error,
                OpenError::Damaged { .. } | OpenError::NotAStore { .. } | OpenError::Newer { .. }
            );
            prop_assert!(is_told, "{error:?}");
            return Ok(true);
        }
    };
    let mut is_told = false;
    for ((table, key), (expected, _)) in rows {
        match block_on(store.get(*table, key)) {
            Ok(row) => prop_assert_eq!(row.map(|row| row.value), Some(expected.clone()), "{}", key),
            Err(StoreError::Failed(message)) => {
                prop_assert!(message.contains("damaged"), "{message}");
                is_told = true;
            }
            Err(error) => prop_assert!(false, "{error}"),
        }
    }
    for table in Table::ALL {
        if let Ok(found) = block_on(store.scan(table, Scan::prefix("", 1_000))) {
            let expected = rows.keys().filter(|(of, _)| *of == table).count();
            prop_assert_eq!(found.len(), expected, "{:?}", table);
        }
    }
    // What is swept is what has had its time, whatever the index says.
    if block_on(store.sweep(EARLY)).is_ok() {
        for ((table, key), (_, expires)) in rows {
            let is_kept = *expires != Some(EARLY);
            if is_kept && let Ok(row) = block_on(store.get(*table, key)) {
                prop_assert!(row.is_some(), "{key} was swept");
            }
        }
    }
    Ok(is_told)
}

/// A file to damage again and again.
fn original() -> (Vec<u8>, Rows) {
    let (_folder, path) = place();
    let rows = fill(&path);
    (fs::read(&path).unwrap(), rows)
}

#[test]
fn every_byte_of_the_header_may_be_damaged() {
    let (bytes, rows) = original();
    for at in 0..100 {
        for mask in [0x01, 0x80, 0xff] {
            let (_folder, path) = place();
            let mut damaged = bytes.clone();
            damaged[at] ^= mask;
            fs::write(&path, &damaged).unwrap();
            nothing_wrong_is_served(&path, &rows)
                .unwrap_or_else(|error| panic!("byte {at} ^ {mask:x}: {error}"));
        }
    }
}

#[test]
fn a_value_with_one_changed_letter_is_refused() {
    let (mut bytes, rows) = original();
    // Wherever it stands: unused pages hold what they held before.
    let all: Vec<_> = bytes.windows(8).enumerate().filter(|(_, part)| *part == b"100 100 ").collect();
    let all: Vec<_> = all.into_iter().map(|(at, _)| at).collect();
    all.into_iter().for_each(|at| bytes[at] = b'9');
    let (_folder, path) = place();
    fs::write(&path, &bytes).unwrap();
    assert!(nothing_wrong_is_served(&path, &rows).unwrap(), "it is told");
}

#[test]
fn a_changed_letter_in_the_schema_is_damage() {
    for (name, changed) in
        [("value TEXT", "valve TEXT"), ("key TEXT", "kay TEXT"), ("TABLE rows", "TABLE rowz")]
    {
        let (mut bytes, rows) = original();
        let places = bytes.windows(name.len()).enumerate().filter(|(_, part)| *part == name.as_bytes());
        for at in places.map(|(at, _)| at).collect::<Vec<_>>() {
            bytes[at..at + name.len()].copy_from_slice(changed.as_bytes());
        }
        let (_folder, path) = place();
        fs::write(&path, &bytes).unwrap();
        assert!(nothing_wrong_is_served(&path, &rows).unwrap(), "{changed}");
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 300, max_shrink_iters: 20, ..ProptestConfig::default() })]

    #[test]
    fn flipped_bytes_anywhere_are_told_or_do_no_harm(
        flips in prop::collection::vec((any::<prop::sample::Index>(), 1..=255_u8), 1..6)
    ) {
        let (mut bytes, rows) = original_once();
        for (at, mask) in &flips {
            let at = at.index(bytes.len());
            bytes[at] ^= mask;
        }
        let (_folder, path) = place();
        fs::write(&path, &bytes).unwrap();
        nothing_wrong_is_served(&path, &rows)?;
    }

    #[test]
    fn overwritten_and_swapped_pages_are_told_or_do_no_harm(
        one in any::<prop::sample::Index>(), other in any::<prop::sample::Index>(), fill in any::<Option<u8>>()
    ) {
        const PAGE: usize = 4_096;
        let (mut bytes, rows) = original_once();
        let pages = bytes.len() / PAGE;
        let (one, other) = (one.index(pages) * PAGE, other.index(pages) * PAGE);
        match fill {
            Some(fill) => bytes[one..one + PAGE].fill(fill),
            None => bytes.copy_within(other..other + PAGE, one),
        }
        let (_folder, path) = place();
        fs::write(&path, &bytes).unwrap();
        nothing_wrong_is_served(&path, &rows)?;
    }

    #[test]
    fn a_file_that_was_cut_is_told(length in any::<prop::sample::Index>()) {
        let (bytes, rows) = original_once();
        let length = length.index(bytes.len() - 1) + 1;
        let (_folder, path) = place();
        fs::write(&path, &bytes[..length]).unwrap();
        prop_assert!(nothing_wrong_is_served(&path, &rows)?, "cut to {length} bytes");
    }
}

fn original_once() -> (Vec<u8>, Rows) {
    static ORIGINAL: std::sync::OnceLock<(Vec<u8>, Rows)> = std::sync::OnceLock::new();
    ORIGINAL.get_or_init(original).clone()
}

#[test]
fn a_log_without_its_file_is_not_thrown_away() {
    for is_empty in [false, true] {
        let (folder, path) = place();
        let store = SqliteStore::open(&path).unwrap();
        block_on(store.commit(put("a", json!(1)))).unwrap();
        // As a crash leaves them.
        let log = fs::read(folder.path().join("store.db-wal")).unwrap();
        drop(store);
        fs::remove_file(&path).unwrap();
        if is_empty {
            fs::write(&path, "").unwrap();
        }
        fs::write(folder.path().join("store.db-wal"), &log).unwrap();
        let Err(error) = SqliteStore::open(&path) else { panic!("it was opened") };
        assert!(matches!(error, OpenError::LogAlone { .. }), "{error:?}");
        assert!(error.to_string().contains("put the file back"), "{error}");
        assert_eq!(fs::read(folder.path().join("store.db-wal")).unwrap(), log);
        assert_eq!(path.exists(), is_empty);
    }
}

#[test]
fn a_foreign_log_is_left_alone_and_one_of_another_store_does_no_harm() {
    let (bytes, rows) = original();
    let (folder, path) = place();
    let log = folder.path().join("store.db-wal");
    fs::write(&path, &bytes).unwrap();
    fs::write(&log, "dear diary").unwrap();
    let Err(error) = SqliteStore::open(&path) else { panic!("it was opened") };
    assert!(matches!(error, OpenError::ForeignLog { .. }), "{error:?}");
    assert_eq!(fs::read(&log).unwrap(), b"dear diary");
    assert_eq!(fs::read(&path).unwrap(), bytes);

    // The shared memory is only a copy of what the log says.
    fs::remove_file(&log).unwrap();
    fs::write(folder.path().join("store.db-shm"), [0xa5; 40_000]).unwrap();
    assert!(!nothing_wrong_is_served(&path, &rows).unwrap());

    // What is left behind by a store that stood there before would be applied to this one.
    let (other_folder, other) = place();
    let store = SqliteStore::open(&other).unwrap();
    for number in 0..50 {
        block_on(store.commit(put(&format!("{number}"), json!("x".repeat(3_000))))).unwrap();
    }
    let left = fs::read(other_folder.path().join("store.db-wal")).unwrap();
    let (folder, path) = place();
    fs::write(&path, &bytes).unwrap();
    fs::write(folder.path().join("store.db-wal"), &left).unwrap();
    match SqliteStore::open(&path) {
        Err(error) => assert!(matches!(error, OpenError::Damaged { .. }), "{error:?}"),
        Ok(store) => {
            let kept = rows.iter().all(|((table, key), (expected, _))| {
                block_on(store.get(*table, key)).unwrap().map(|row| row.value).as_ref() == Some(expected)
            });
            let replaced = (0..50).all(|number| value(&store, &format!("{number}")).is_some());
            assert!(kept || replaced, "half of one and half of the other");
        }
    }
}

#[test]
fn damage_that_is_found_while_it_is_used_stops_every_write() {
    let (mut bytes, rows) = original();
    // The second half of some pages in the middle.
    for page in 8..12 {
        bytes[page * 4_096 + 2_048..(page + 1) * 4_096].fill(0xa5);
    }
    let (_folder, path) = place();
    fs::write(&path, &bytes).unwrap();
    assert!(matches!(SqliteStore::open(&path), Err(OpenError::Damaged { .. })), "with time to look");
    let mut options = SqliteOptions::default();
    options.check_timeout = Duration::ZERO;
    let store = match SqliteStore::open_with(&path, options) {
        Ok(store) => store,
        // The check was faster than we.
        Err(error) => return assert!(matches!(error, OpenError::Damaged { .. }), "{error:?}"),
    };
    let began = Instant::now();
    let refused = loop {
        match block_on(store.commit(put("new", json!(1)))) {
            Err(CommitError::Store(StoreError::Failed(message))) => break message,
            _ => assert!(began.elapsed() < Duration::from_secs(10), "it was not noticed"),
        }
    };
    assert!(refused.contains("is damaged") && refused.contains("restore a backup"), "{refused}");
    for ((table, key), (expected, _)) in &rows {
        if let Ok(row) = block_on(store.get(*table, key)) {
            assert_eq!(row.map(|row| row.value).as_ref(), Some(expected), "{key}");
        }
    }
}

#[test]
fn a_check_that_is_under_way_does_not_keep_a_store_from_closing() {
    let (_folder, path) = place();
    fill(&path);
    for _ in 0..20 {
        let mut options = SqliteOptions::default();
        options.check_timeout = Duration::ZERO;
        let store = SqliteStore::open_with(&path, options).unwrap();
        block_on(store.commit(put("new", json!(1)))).unwrap();
        block_on(store.close()).unwrap();
        assert_eq!(fs::read_dir(path.parent().unwrap()).unwrap().count(), 1, "one file is left");
    }
}

#[cfg(unix)]
#[test]
fn a_file_that_is_removed_or_replaced_takes_no_commit_with_it() {
    let (folder, path) = place();
    let store = SqliteStore::open(&path).unwrap();
    block_on(store.commit(put("a", json!(1)))).unwrap();
    let away = folder.path().join("away.db");
    fs::rename(&path, &away).unwrap();
    let refused = |store: &SqliteStore| match block_on(store.commit(put("a", json!(2)))) {
        Err(CommitError::Store(StoreError::Failed(message))) => message,
        other => panic!("{other:?}"),
    };
    assert!(refused(&store).contains("was removed or replaced while it was in use"));
    fs::write(&path, "another file").unwrap();
    assert!(refused(&store).contains("was removed or replaced"));
    assert_eq!(value(&store, "a"), Some(json!(1)), "nothing of it was applied");
    fs::rename(&away, &path).unwrap();
    block_on(store.commit(put("a", json!(3)))).unwrap();
    assert_eq!(value(&store, "a"), Some(json!(3)));
}

/// The first step of the format, as it was released.
const FORMAT_1: &str = "
    CREATE TABLE rows (
        table_name TEXT NOT NULL,
        key TEXT NOT NULL,
        value TEXT NOT NULL,
        version INTEGER NOT NULL,
        expires_ms INTEGER,
        PRIMARY KEY (table_name, key)
    ) STRICT, WITHOUT ROWID;
    CREATE INDEX rows_by_expiry ON rows (expires_ms) WHERE expires_ms IS NOT NULL;
    CREATE TABLE meta (name TEXT PRIMARY KEY, value INTEGER NOT NULL) STRICT, WITHOUT ROWID;
    INSERT INTO meta VALUES ('version', 7);
    INSERT INTO rows VALUES ('values', 'old', '{\"a\":1}', 7, NULL), ('values', 'older', '[2]', 3, 9000);
    PRAGMA application_id = 0x5164636b;
    PRAGMA user_version = 1;
";

#[test]
fn a_file_of_the_format_before_is_brought_up_to_date_with_its_rows() {
    let (_folder, path) = place();
    let old = Connection::open(&path).unwrap();
    old.pragma_update_and_check(None, "journal_mode", "WAL", |_| Ok(())).unwrap();
    old.execute_batch(FORMAT_1).unwrap();
    drop(old);
    for _ in 0..2 {
        let store = SqliteStore::open(&path).unwrap();
        assert_eq!(value(&store, "old"), Some(json!({ "a": 1 })));
        assert_eq!(value(&store, "older"), Some(json!([2])));
    }
    let store = SqliteStore::open(&path).unwrap();
    block_on(store.commit(put("old", json!({ "a": 2 })))).unwrap();
    assert_eq!(block_on(store.get(Table::Values, "old")).unwrap().unwrap().version, 8);
    drop(store);
    let raw = Connection::open(&path).unwrap();
    let with_sum = |key: &str| -> bool {
        raw.query_row("SELECT sum IS NOT NULL FROM rows WHERE key = ?1", [key], |row| row.get(0)).unwrap()
    };
    assert!(with_sum("old") && !with_sum("older"), "a row gets its sum when it is written");
}
