//! What stands at the path, and who may read it.

use std::fs;
use std::path::{Path, PathBuf};

use quarterdeck_contracts::{Commit, CommitError, Scan, Store, StoreError, Table};
use quarterdeck_store::{OpenError, SqliteStore};
use quarterdeck_testkit::block_on;
use rusqlite::Connection;
use serde_json::json;

use super::{place, put, tamper, value};

fn refusal(path: &Path) -> OpenError {
    match SqliteStore::open(path) {
        Ok(_) => panic!("it was opened"),
        Err(error) => error,
    }
}

#[cfg(unix)]
fn mode(path: &Path) -> u32 {
    use std::os::unix::fs::PermissionsExt;
    fs::metadata(path).unwrap().permissions().mode() & 0o777
}

#[cfg(unix)]
fn set_mode(path: &Path, mode: u32) {
    use std::os::unix::fs::PermissionsExt;
    fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
}

#[cfg(unix)]
#[test]
fn what_it_makes_is_its_owners_alone() {
    let (folder, _) = place();
    let path = folder.path().join("data/inner/store.db");
    let store = SqliteStore::open(&path).unwrap();
    block_on(store.commit(put("a", json!(1)))).unwrap();
    for name in ["store.db", "store.db-wal", "store.db-shm"] {
        assert_eq!(mode(&path.with_file_name(name)), 0o600, "{name}");
    }
    assert_eq!(mode(path.parent().unwrap()), 0o700);
    assert_eq!(mode(&folder.path().join("data")), 0o700);
}

#[cfg(unix)]
#[test]
fn a_file_that_others_could_read_gets_private_permissions() {
    let (folder, path) = place();
    set_mode(folder.path(), 0o755);
    drop(SqliteStore::open(&path).unwrap());
    set_mode(&path, 0o644);
    // As a crash would leave them.
    for name in ["store.db-wal", "store.db-shm"] {
        fs::write(path.with_file_name(name), "").unwrap();
        set_mode(&path.with_file_name(name), 0o666);
    }
    let store = SqliteStore::open(&path).unwrap();
    block_on(store.commit(put("a", json!(1)))).unwrap();
    for name in ["store.db", "store.db-wal", "store.db-shm"] {
        assert_eq!(mode(&path.with_file_name(name)), 0o600, "{name}");
    }
    assert_eq!(mode(folder.path()), 0o755, "an existing folder keeps its permissions");
}

#[test]
fn a_newer_file_is_refused_with_a_way_out() {
    let (_folder, path) = place();
    drop(SqliteStore::open(&path).unwrap());
    tamper(&path, "PRAGMA user_version = 99");
    let before = fs::read(&path).unwrap();
    let error = refusal(&path);
    assert!(matches!(error, OpenError::Newer { found: 99, known: 3, .. }), "{error:?}");
    assert!(error.to_string().contains("use the newer version"), "{error}");
    assert_eq!(fs::read(&path).unwrap(), before);
}

/// A process of a newer version that was killed has left its last commits in the log alone.
#[test]
fn newer_version_in_the_log_is_refused_and_the_log_is_kept() {
    let (folder, path) = place();
    drop(SqliteStore::open(&path).unwrap());
    let newer = Connection::open(&path).unwrap();
    newer.pragma_update(None, "user_version", 99).unwrap();
    let killed = folder.path().join("killed");
    fs::create_dir(&killed).unwrap();
    let copy = killed.join(path.file_name().unwrap());
    let log = |path: &Path| {
        let mut name = path.as_os_str().to_owned();
        name.push("-wal");
        PathBuf::from(name)
    };
    fs::copy(&path, &copy).unwrap();
    fs::copy(log(&path), log(&copy)).unwrap();
    let read = || (fs::read(&copy).unwrap(), fs::read(log(&copy)).unwrap());
    let before = read();
    assert!(!before.1.is_empty());
    let error = refusal(&copy);
    assert!(matches!(error, OpenError::Newer { found: 99, .. }), "{error:?}");
    assert!(read() == before, "the newer version finds its commits");
}

#[test]
fn confirmations_of_an_earlier_format_are_found_by_session() {
    let (_folder, path) = place();
    let store = SqliteStore::open(&path).unwrap();
    for (hash, session) in [("h1", "ann"), ("h2", "bob"), ("h3", "ann")] {
        let row = json!({ "sessionId": session, "status": "open" });
        let commit = Commit::default().put_until(Table::Confirmations, hash, row, Some(1_000));
        block_on(store.commit(commit)).unwrap();
    }
    block_on(store.commit(Commit::default().put(Table::Confirmations, "h4", json!(["no session"])))).unwrap();
    drop(store);
    // The second time, the step has been taken before and changes nothing.
    for _ in 0..2 {
        tamper(&path, "PRAGMA user_version = 2");
        let store = SqliteStore::open(&path).unwrap();
        let keys = |prefix: &str| {
            let rows = block_on(store.scan(Table::SessionConfirmations, Scan::prefix(prefix, 10))).unwrap();
            rows.into_iter().map(|(key, _)| key).collect::<Vec<_>>()
        };
        assert_eq!(keys("ann/"), ["ann/h1", "ann/h3"]);
        assert_eq!(keys("").len(), 3);
    }
    let store = SqliteStore::open(&path).unwrap();
    assert_eq!(block_on(store.sweep(1_000)).unwrap(), 6, "an index row expires with its confirmation");
}

#[test]
fn a_file_that_is_something_else_is_left_alone() {
    let (_folder, path) = place();
    for contents in ["x", "dear diary", &"a long letter ".repeat(1000)] {
        fs::write(&path, contents).unwrap();
        let error = refusal(&path);
        assert!(matches!(error, OpenError::NotAStore { .. }), "{error:?}");
        assert!(error.to_string().contains("was left alone"), "{error}");
        assert_eq!(fs::read(&path).unwrap(), contents.as_bytes());
    }
}

#[test]
fn a_database_of_another_program_is_left_alone() {
    for sql in ["CREATE TABLE t (a)", "PRAGMA application_id = 7", "PRAGMA user_version = 1"] {
        let (_folder, path) = place();
        tamper(&path, sql);
        let before = fs::read(&path).unwrap();
        assert!(matches!(refusal(&path), OpenError::NotAStore { .. }), "{sql}");
        assert_eq!(fs::read(&path).unwrap(), before, "{sql}");
    }
}

#[test]
fn a_damaged_file_is_refused_and_kept() {
    let (_folder, path) = place();
    drop(SqliteStore::open(&path).unwrap());
    let mut bytes = fs::read(&path).unwrap();
    bytes[16..100].fill(0xff);
    fs::write(&path, &bytes).unwrap();
    refusal(&path);
    assert_eq!(fs::read(&path).unwrap(), bytes);
}

#[test]
fn a_folder_is_not_a_file() {
    let (folder, _) = place();
    assert!(matches!(refusal(folder.path()), OpenError::Io { .. }));
}

#[test]
fn an_empty_file_becomes_a_store() {
    let (_folder, path) = place();
    fs::write(&path, "").unwrap();
    let store = SqliteStore::open(&path).unwrap();
    block_on(store.commit(put("a", json!(1)))).unwrap();
}

#[test]
fn two_openings_of_one_file_decide_together() {
    let (_folder, path) = place();
    let (one, other) = (SqliteStore::open(&path).unwrap(), SqliteStore::open(&path).unwrap());
    let mut last = 0;
    for n in 0..20 {
        let (writer, reader) = if n % 2 == 0 { (&one, &other) } else { (&other, &one) };
        let seen = block_on(reader.get(Table::Values, "a")).unwrap().map(|row| row.version);
        let commit = || put("a", json!(n)).check(Table::Values, "a", seen);
        block_on(writer.commit(commit())).unwrap();
        assert!(matches!(block_on(reader.commit(commit())), Err(CommitError::Conflict { .. })));
        let row = block_on(reader.get(Table::Values, "a")).unwrap().unwrap();
        assert_eq!(row.value, json!(n));
        assert!(row.version > last);
        last = row.version;
    }
}

#[test]
fn a_closed_store_says_so_and_leaves_one_file() {
    let (folder, path) = place();
    let store = SqliteStore::open(&path).unwrap();
    store.queue(put("queued", json!(1))).unwrap();
    block_on(store.close()).unwrap();
    assert_eq!(store.queue(put("a", json!(1))), Err(StoreError::Closed));
    assert_eq!(block_on(store.commit(put("a", json!(1)))), Err(StoreError::Closed.into()));
    assert_eq!(block_on(store.get(Table::Values, "a")), Err(StoreError::Closed));
    assert_eq!(block_on(store.sweep(0)), Err(StoreError::Closed));
    assert_eq!(block_on(store.backup(&folder.path().join("copy"))), Err(StoreError::Closed));
    block_on(store.close()).unwrap();
    drop(store);
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1);

    let store = SqliteStore::open(&path).unwrap();
    assert_eq!(value(&store, "queued"), Some(json!(1)));
    block_on(store.commit(Commit::default().delete(Table::Values, "queued"))).unwrap();
}
