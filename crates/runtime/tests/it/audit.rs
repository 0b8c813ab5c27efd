//! The trail on a real disk: what is missing, changed or cut off is found, and nobody waits for it.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, Mutex};
use std::time::{Duration, Instant, SystemTime};

use quarterdeck_contracts::handler::BoxFuture;
use quarterdeck_contracts::{Commit, CommitError, Row, Scan, Store, StoreError, Table};
use quarterdeck_runtime::audit::{Audit, AuditLog, AuditLogError, Happening, Verification, verify};
use quarterdeck_store::{MemoryStore, SqliteStore};
use quarterdeck_testkit::{Tree, tree};
use serde_json::{Map, Value, json};

fn happening(event: &str) -> Happening {
    let fields = Map::from_iter([("args".to_owned(), json!({ "text": "one\ntwo é" }))]);
    Happening { event: event.into(), time: SystemTime::UNIX_EPOCH, fields }
}

async fn open(path: &Path, store: &Arc<dyn Store>) -> AuditLog {
    AuditLog::open(path, "node", store.clone()).await.unwrap()
}

/// Writes so many lines more and closes the trail.
async fn write(path: &Path, store: &Arc<dyn Store>, lines: usize) {
    let log = open(path, store).await;
    (0..lines).for_each(|n| log.record(happening(&format!("event {n}"))));
    log.flush();
}

async fn check(path: &Path, store: &Arc<dyn Store>) -> Verification {
    verify(path, "node", &**store).await.unwrap()
}

fn sound(lines: u64) -> Verification {
    Verification { lines, unconfirmed: 0, fault: None }
}

fn lines(path: &Path) -> Vec<Value> {
    fs::read_to_string(path).unwrap().lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

fn stores(folder: &Tree) -> [(PathBuf, Arc<dyn Store>); 2] {
    [
        (folder.join("memory.jsonl"), Arc::new(MemoryStore::new())),
        (folder.join("sqlite.jsonl"), Arc::new(SqliteStore::open(folder.join("store.db")).unwrap())),
    ]
}

#[tokio::test]
async fn a_trail_goes_on_where_it_ended() {
    let folder = tree("");
    for (path, store) in stores(&folder) {
        write(&path, &store, 3).await;
        write(&path, &store, 2).await;
        assert_eq!(check(&path, &store).await, sound(5));
        let numbers: Vec<_> = lines(&path).iter().map(|line| line["seq"].as_u64().unwrap()).collect();
        assert_eq!(numbers, [1, 2, 3, 4, 5]);
    }
}

#[cfg(unix)]
#[tokio::test]
async fn nobody_else_may_read_it() {
    use std::os::unix::fs::PermissionsExt;
    let folder = tree("");
    let store: Arc<dyn Store> = Arc::new(MemoryStore::new());
    let path = folder.join("audit.jsonl");
    write(&path, &store, 1).await;
    assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
}

#[tokio::test]
async fn whatever_is_done_to_its_lines_is_found() {
    let folder = tree("");
    for (path, store) in stores(&folder) {
        write(&path, &store, 5).await;
        let whole = fs::read_to_string(&path).unwrap();
        let line: Vec<_> = whole.split_inclusive('\n').collect();
        let mut spoilt = vec![String::new(), whole.replacen("event 2", "event 9", 1), format!("\n{whole}")];
        for n in 0..5 {
            let mut fewer = line.clone();
            fewer.remove(n);
            spoilt.push(fewer.concat());
            spoilt.push(line[..n].concat());
            let mut twice = line.clone();
            twice.insert(n, line[n]);
            spoilt.push(twice.concat());
        }
        for n in 0..4 {
            let mut swapped = line.clone();
            swapped.swap(n, n + 1);
            spoilt.push(swapped.concat());
        }
        for text in spoilt {
            fs::write(&path, &text).unwrap();
            assert!(check(&path, &store).await.fault.is_some(), "{text}");
        }
        fs::remove_file(&path).unwrap();
        assert!(check(&path, &store).await.fault.is_some(), "no file at all");
        fs::write(&path, &whole).unwrap();
        assert_eq!(check(&path, &store).await, sound(5));
    }
}

#[tokio::test]
async fn a_trail_that_was_forged_from_the_first_line_on_is_found_and_said_when_it_goes_on() {
    let folder = tree("");
    let store: Arc<dyn Store> = Arc::new(MemoryStore::new());
    let (path, forged) = (folder.join("audit.jsonl"), folder.join("forged.jsonl"));
    write(&path, &store, 3).await;
    let elsewhere: Arc<dyn Store> = Arc::new(MemoryStore::new());
    let log = open(&forged, &elsewhere).await;
    (0..4).for_each(|_| log.record(happening("made up")));
    drop(log);
    fs::copy(&forged, &path).unwrap();
    let fault = check(&path, &store).await.fault.unwrap();
    assert_eq!(
        fault,
        "the trail ends at line 4, and the line 3 that the store knows is not in it: it was cut off or replaced"
    );
    write(&path, &store, 1).await;
    let gap = &lines(&path)[4];
    assert_eq!((&gap["event"], &gap["expected"], &gap["found"]), (&json!("audit_gap"), &json!(3), &json!(4)));
}

#[tokio::test]
async fn a_torn_last_line_is_taken_off_and_the_chain_goes_on() {
    let folder = tree("");
    for (path, store) in stores(&folder) {
        write(&path, &store, 2).await;
        let mut torn = fs::read_to_string(&path).unwrap();
        torn.push_str("{\"seq\":3,\"prev\":\"ab");
        fs::write(&path, torn).unwrap();
        let found = check(&path, &store).await;
        assert_eq!(found.lines, 2);
        assert!(found.fault.unwrap().starts_with("line 3: it has no end"));
        write(&path, &store, 1).await;
        assert_eq!(check(&path, &store).await, sound(3));
    }
}

#[tokio::test]
async fn what_was_cut_off_is_said_by_the_trail_itself() {
    let folder = tree("");
    let store: Arc<dyn Store> = Arc::new(MemoryStore::new());
    let path = folder.join("audit.jsonl");
    write(&path, &store, 3).await;
    let text = fs::read_to_string(&path).unwrap();
    fs::write(&path, text.split_inclusive('\n').next().unwrap()).unwrap();
    write(&path, &store, 1).await;
    let gap = &lines(&path)[1];
    assert_eq!((&gap["event"], &gap["expected"], &gap["found"]), (&json!("audit_gap"), &json!(3), &json!(1)));
    assert_eq!(check(&path, &store).await, sound(3));
}

#[tokio::test]
async fn a_damaged_last_line_is_refused_with_what_to_do() {
    let folder = tree("");
    let store: Arc<dyn Store> = Arc::new(MemoryStore::new());
    let path = folder.join("audit.jsonl");
    write(&path, &store, 2).await;
    let text = fs::read_to_string(&path).unwrap().replace("event 1", "event 7");
    fs::write(&path, text).unwrap();
    let error = AuditLog::open(&path, "node", store.clone()).await.err().unwrap();
    assert!(matches!(error, AuditLogError::Damaged { .. }));
    assert_eq!(
        error.to_string().replace(&path.display().to_string(), "audit.jsonl"),
        "the last line of audit.jsonl is not a line of the audit trail; move the file away and keep it, a new one is begun"
    );
    fs::rename(&path, folder.join("kept.jsonl")).unwrap();
    write(&path, &store, 1).await;
    assert_eq!(lines(&path)[0]["event"], "audit_gap");
    assert_eq!(check(&path, &store).await, sound(2));
}

#[tokio::test]
async fn lines_that_the_store_has_not_heard_of_are_sound_but_not_vouched_for() {
    let folder = tree("");
    let store: Arc<dyn Store> = Arc::new(MemoryStore::new());
    let path = folder.join("audit.jsonl");
    write(&path, &store, 2).await;
    let head = store.get(Table::Audit, "node").await.unwrap().unwrap().value;
    write(&path, &store, 3).await;
    // A crash came before the head was stored.
    store.commit(Commit::default().put(Table::Audit, "node", head)).await.unwrap();
    assert_eq!(check(&path, &store).await, Verification { lines: 5, unconfirmed: 3, fault: None });
    store.commit(Commit::default().delete(Table::Audit, "node")).await.unwrap();
    assert_eq!(check(&path, &store).await, Verification { lines: 5, unconfirmed: 5, fault: None });
    write(&path, &store, 1).await;
    assert_eq!(check(&path, &store).await, sound(6));
    store.commit(Commit::default().put(Table::Audit, "node", json!("?"))).await.unwrap();
    assert!(verify(&path, "node", &*store).await.is_err(), "a head that cannot be read vouches for nothing");
}

/// A store whose queue takes nothing until it is told to.
#[derive(Default)]
struct Stuck {
    store: MemoryStore,
    is_asked: AtomicBool,
    is_free: Mutex<bool>,
    freed: Condvar,
}

impl Stuck {
    fn free(&self) {
        *self.is_free.lock().unwrap() = true;
        self.freed.notify_all();
    }
}

impl Store for Stuck {
    fn get(&self, table: Table, key: &str) -> BoxFuture<Result<Option<Row>, StoreError>> {
        self.store.get(table, key)
    }
    fn scan(&self, table: Table, scan: Scan) -> BoxFuture<Result<Vec<(String, Row)>, StoreError>> {
        self.store.scan(table, scan)
    }
    fn commit(&self, commit: Commit) -> BoxFuture<Result<(), CommitError>> {
        self.store.commit(commit)
    }
    fn queue(&self, commit: Commit) -> Result<(), StoreError> {
        self.is_asked.store(true, Ordering::Release);
        let _free = self.freed.wait_while(self.is_free.lock().unwrap(), |is_free| !*is_free).unwrap();
        self.store.queue(commit)
    }
    fn sweep(&self, now_ms: u64) -> BoxFuture<Result<u64, StoreError>> {
        self.store.sweep(now_ms)
    }
    fn backup(&self, to: &Path) -> BoxFuture<Result<(), StoreError>> {
        self.store.backup(to)
    }
}

#[tokio::test]
async fn a_stuck_writer_holds_up_nobody_and_the_trail_counts_what_was_lost() {
    let folder = tree("");
    let path = folder.join("audit.jsonl");
    let stuck = Arc::new(Stuck::default());
    let store: Arc<dyn Store> = stuck.clone();
    let log = Arc::new(open(&path, &store).await);
    log.record(happening("first"));
    while !stuck.is_asked.load(Ordering::Acquire) {
        std::thread::yield_now();
    }
    let flood = 10_000_u64;
    let begun = Instant::now();
    (0..flood).for_each(|_| log.record(happening("flood")));
    // Somebody who waits for the disk must not make others wait with them.
    let waits = std::thread::spawn({
        let log = log.clone();
        move || log.flush()
    });
    std::thread::sleep(Duration::from_millis(50));
    log.record(happening("one more"));
    assert!(begun.elapsed() < Duration::from_secs(5), "{:?}", begun.elapsed());
    let lost = log.lost();
    assert_eq!(lost, flood + 1 - 4_096, "what the queue does not hold");
    assert!(!waits.is_finished());
    stuck.free();
    waits.join().unwrap();
    log.record(happening("after"));
    log.flush();
    assert_eq!(log.lost(), 0);
    let lines = lines(&path);
    let told: u64 = lines.iter().filter_map(|line| line["lost"].as_u64()).sum();
    assert_eq!(told, lost);
    assert_eq!(lines.len() as u64 + told, flood + 3, "each one was written or counted");
    assert_eq!(check(&path, &store).await, sound(lines.len() as u64));
}
