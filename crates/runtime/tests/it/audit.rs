//! The trail on a real disk: what is missing, changed or cut off is found, and no call waits for it.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, Mutex};
use std::time::{Duration, Instant, SystemTime};

use quarterdeck_contracts::handler::BoxFuture;
use quarterdeck_contracts::{Commit, CommitError, Row, Scan, Store, StoreError, Table};
use quarterdeck_runtime::audit::{AuditEvent, AuditLog, AuditLogError, AuditSink, Verification, verify};
use quarterdeck_store::{MemoryStore, SqliteStore};
use quarterdeck_testkit::{Tree, tree};
use serde_json::{Map, Value, json};

use crate::orchestrator::fixture::ManualClock;

fn event(event: &str) -> AuditEvent {
    let fields = Map::from_iter([("args".to_owned(), json!({ "text": "one\ntwo é" }))]);
    AuditEvent { event: event.into(), time: SystemTime::UNIX_EPOCH, fields }
}

async fn open(path: &Path, store: &Arc<dyn Store>) -> AuditLog {
    AuditLog::open(path, "node", store.clone()).await.unwrap()
}

/// Writes so many lines more and closes the trail.
async fn write(path: &Path, store: &Arc<dyn Store>, lines: usize) {
    let log = open(path, store).await;
    (0..lines).for_each(|n| log.record(event(&format!("event {n}"))));
    log.flush();
}

async fn check(path: &Path, store: &Arc<dyn Store>) -> Verification {
    verify(path, "node", &**store).await.unwrap()
}

fn sound(lines: u64) -> Verification {
    Verification { lines, ..Verification::default() }
}

fn faulty(lines: u64, fault: &str) -> Verification {
    Verification { lines, fault: Some(fault.to_owned()), ..Verification::default() }
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
async fn a_log_goes_on_where_it_ended() {
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
async fn only_its_owner_may_read_it() {
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
async fn a_log_that_was_forged_from_its_first_line_is_found_and_says_so_when_it_goes_on() {
    let folder = tree("");
    let store: Arc<dyn Store> = Arc::new(MemoryStore::new());
    let (path, forged) = (folder.join("audit.jsonl"), folder.join("forged.jsonl"));
    write(&path, &store, 3).await;
    let elsewhere: Arc<dyn Store> = Arc::new(MemoryStore::new());
    let log = open(&forged, &elsewhere).await;
    (0..4).for_each(|_| log.record(event("made up")));
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
async fn a_log_says_itself_what_was_cut_off() {
    let folder = tree("");
    let store: Arc<dyn Store> = Arc::new(MemoryStore::new());
    let path = folder.join("audit.jsonl");
    write(&path, &store, 3).await;
    let text = fs::read_to_string(&path).unwrap();
    fs::write(&path, text.split_inclusive('\n').next().unwrap()).unwrap();
    write(&path, &store, 1).await;
    let gap = &lines(&path)[1];
    assert_eq!((&gap["event"], &gap["expected"], &gap["found"]), (&json!("audit_gap"), &json!(3), &json!(1)));
    let fault = "line 2: lines were cut off before it: the trail had 3 and was left with 1";
    assert_eq!(check(&path, &store).await, faulty(3, fault));
}

#[tokio::test]
async fn a_gap_line_has_the_time_of_the_clock() {
    let folder = tree("");
    let store: Arc<dyn Store> = Arc::new(MemoryStore::new());
    let path = folder.join("audit.jsonl");
    write(&path, &store, 2).await;
    fs::write(&path, "").unwrap();
    let clock = ManualClock::new();
    drop(AuditLog::open_with_clock(&path, "node", store, clock.clone()).await.unwrap());
    let gap = &lines(&path)[0];
    assert_eq!((&gap["event"], &gap["time"]), (&json!("audit_gap"), &json!("2026-01-13T09:00:00.000Z")));
}

/// A change of a log, given the path and its text.
type Attack = fn(&Path, &str);

/// Every way to change a log that leaves it shorter, longer or elsewhere, and what is found afterwards.
const ATTACKS: [(&str, Attack, &str); 8] = [
    (
        "cut off the last line",
        |path, text| cut(path, text.rfind("{\"seq\"").unwrap()),
        "line 3: it is number 4, and number 3 was expected: lines are missing",
    ),
    (
        "cut in the middle of a line",
        |path, text| cut(path, text.len() - 30),
        "line 3: it is not a line of the audit trail",
    ),
    (
        "empty it",
        |path, _| cut(path, 0),
        "line 1: it is number 4, and number 1 was expected: lines are missing",
    ),
    (
        "delete it",
        |path, _| fs::remove_file(path).unwrap(),
        "line 1: it is number 4, and number 1 was expected: lines are missing",
    ),
    (
        "put an older copy in its place",
        |path, text| replace(path, text.split_inclusive('\n').next().unwrap()),
        "line 2: it is number 4, and number 2 was expected: lines are missing",
    ),
    (
        "append a line that is none",
        |path, text| fs::write(path, format!("{text}a stray line\n")).unwrap(),
        "line 4: it is not a line of the audit trail",
    ),
    (
        "append half a line",
        |path, text| fs::write(path, format!("{text}\0\0")).unwrap(),
        "line 4: it is not a line of the audit trail",
    ),
    (
        "append a line that fits",
        |path, text| fs::write(path, format!("{text}{}\n", forged(text))).unwrap(),
        "line 5: it is number 4, and number 5 was expected: lines are missing",
    ),
];

fn cut(path: &Path, length: usize) {
    fs::OpenOptions::new().write(true).open(path).unwrap().set_len(length as u64).unwrap();
}

/// Another file under the same name.
fn replace(path: &Path, text: &str) {
    let other = path.with_extension("other");
    fs::write(&other, text).unwrap();
    fs::rename(other, path).unwrap();
}

/// A line that follows the last one, as any reader of the trail can make it.
fn forged(text: &str) -> String {
    let last: Value = serde_json::from_str(text.lines().last().unwrap()).unwrap();
    let (seq, prev) = (last["seq"].as_u64().unwrap() + 1, last["hash"].as_str().unwrap());
    let content = format!("{{\"seq\":{seq},\"prev\":\"{prev}\",\"event\":\"forged\"");
    format!("{content},\"hash\":\"{}\"}}", quarterdeck_contracts::sha256(content.as_bytes()))
}

#[tokio::test]
async fn a_log_that_is_changed_while_it_is_written_says_so_and_goes_on() {
    for (what, attack, expected) in ATTACKS {
        let folder = tree("");
        let store: Arc<dyn Store> = Arc::new(MemoryStore::new());
        let path = folder.join("audit.jsonl");
        let log = open(&path, &store).await;
        (0..3).for_each(|n| log.record(event(&format!("event {n}"))));
        log.flush();
        attack(&path, &fs::read_to_string(&path).unwrap());
        // The deck flushes before it verifies, and nothing else need happen.
        log.flush();
        assert_eq!(check(&path, &store).await.fault.as_deref(), Some(expected), "{what}");
        log.record(event("later"));
        log.flush();
        assert_eq!(log.lost(), 0, "{what}");
        let text = String::from_utf8_lossy(&fs::read(&path).unwrap()).into_owned();
        assert!(
            text.contains("audit_gap") && text.trim_end().lines().last().unwrap().contains("later"),
            "{what}: {text}"
        );
        assert_eq!(check(&path, &store).await.fault.as_deref(), Some(expected), "{what}");
        drop(log);
        // The next start goes on after it, and adds nothing but what happens.
        let before = text.lines().count();
        write(&path, &store, 1).await;
        assert_eq!(String::from_utf8_lossy(&fs::read(&path).unwrap()).lines().count(), before + 1, "{what}");
        assert_eq!(check(&path, &store).await.fault.as_deref(), Some(expected), "{what}");
    }
}

#[tokio::test]
async fn a_change_of_a_log_between_two_starts_is_found_however_it_was_done() {
    for (what, attack, _) in ATTACKS {
        let folder = tree("");
        let store: Arc<dyn Store> = Arc::new(MemoryStore::new());
        let path = folder.join("audit.jsonl");
        write(&path, &store, 3).await;
        attack(&path, &fs::read_to_string(&path).unwrap());
        let found = check(&path, &store).await;
        // A line that fits may be one that a crash kept the store from hearing of; it is counted.
        assert!(found.fault.is_some() || found.unconfirmed == 1, "{what}: {found:?}");
        let Ok(log) = AuditLog::open(&path, "node", store.clone()).await else {
            assert_eq!(what, "append a line that is none");
            continue;
        };
        log.record(event("later"));
        drop(log);
        let found = check(&path, &store).await;
        let is_told =
            ["append half a line", "append a line that fits"].contains(&what) || found.fault.is_some();
        assert!(is_told, "{what}: {found:?}");
        assert_eq!(found.unconfirmed, 0, "{what}");
    }
}

#[tokio::test]
async fn a_log_is_known_to_the_store_before_its_first_line() {
    let folder = tree("");
    let store: Arc<dyn Store> = Arc::new(MemoryStore::new());
    let path = folder.join("audit.jsonl");
    assert_eq!(check(&path, &store).await, sound(0), "there was none");
    write(&path, &store, 0).await;
    assert_eq!(check(&path, &store).await, sound(0));
    fs::remove_file(&path).unwrap();
    let fault = "the trail is missing, and the store knows one whose last line is number 0: it was removed";
    assert_eq!(check(&path, &store).await, faulty(0, fault));
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
        "line 2 of audit.jsonl is not a line of the audit trail, and the file was left as it was; \
         move it away and keep it, a new one is begun"
    );
    fs::rename(&path, folder.join("kept.jsonl")).unwrap();
    write(&path, &store, 1).await;
    assert_eq!(lines(&path)[0]["event"], "audit_gap");
    let fault = "line 1: lines were cut off before it: the trail had 2 and was left with 0";
    assert_eq!(check(&path, &store).await, faulty(2, fault));
}

#[tokio::test]
async fn lines_that_are_not_in_the_store_are_sound_but_unconfirmed() {
    let folder = tree("");
    let store: Arc<dyn Store> = Arc::new(MemoryStore::new());
    let path = folder.join("audit.jsonl");
    write(&path, &store, 2).await;
    let head = store.get(Table::Audit, "node").await.unwrap().unwrap().value;
    write(&path, &store, 3).await;
    // A crash came before the head was stored.
    store.commit(Commit::default().put(Table::Audit, "node", head)).await.unwrap();
    assert_eq!(
        check(&path, &store).await,
        Verification { lines: 5, unconfirmed: 3, ..Verification::default() }
    );
    store.commit(Commit::default().delete(Table::Audit, "node")).await.unwrap();
    let unknown = "the store does not know this trail, so it may have been cut off";
    let found = check(&path, &store).await;
    let expected =
        Verification { lines: 5, unconfirmed: 5, fault: Some(unknown.into()), ..Verification::default() };
    assert_eq!(found, expected);
    write(&path, &store, 1).await;
    let fault = "line 6: a new store was begun before it, so lines may be missing before it";
    assert_eq!(check(&path, &store).await, faulty(7, fault));
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
    fn commit(&self, commit: Commit) -> BoxFuture<Result<u64, CommitError>> {
        self.store.commit(commit)
    }
    fn queue(&self, commit: Commit) -> Result<(), StoreError> {
        self.is_asked.store(true, Ordering::Release);
        let _free = self.freed.wait_while(self.is_free.lock().unwrap(), |is_free| !*is_free).unwrap();
        self.store.queue(commit)
    }
    fn flush(&self) -> BoxFuture<Result<(), StoreError>> {
        self.store.flush()
    }

    fn sweep(&self, now_ms: u64) -> BoxFuture<Result<u64, StoreError>> {
        self.store.sweep(now_ms)
    }
}

#[tokio::test]
async fn a_stuck_writer_holds_up_no_call_and_the_log_counts_what_was_lost() {
    let folder = tree("");
    let path = folder.join("audit.jsonl");
    let stuck = Arc::new(Stuck::default());
    let store: Arc<dyn Store> = stuck.clone();
    let log = Arc::new(open(&path, &store).await);
    log.record(event("first"));
    while !stuck.is_asked.load(Ordering::Acquire) {
        std::thread::yield_now();
    }
    let flood = 10_000_u64;
    let begun = Instant::now();
    (0..flood).for_each(|_| log.record(event("flood")));
    // A caller that waits for the disk must not make others wait as well.
    let waits = std::thread::spawn({
        let log = log.clone();
        move || log.flush()
    });
    std::thread::sleep(Duration::from_millis(50));
    log.record(event("one more"));
    assert!(begun.elapsed() < Duration::from_secs(5), "{:?}", begun.elapsed());
    let lost = log.lost();
    assert_eq!(lost, flood + 1 - 4_096, "what the queue does not hold");
    assert!(!waits.is_finished());
    stuck.free();
    waits.join().unwrap();
    log.record(event("after"));
    log.flush();
    assert_eq!((log.lost(), log.lost_lines().total()), (0, lost), "the total stays, as a counter does");
    let lines = lines(&path);
    let told: u64 = lines.iter().filter_map(|line| line["lost"].as_u64()).sum();
    assert_eq!(told, lost);
    assert_eq!(lines.len() as u64 + told, flood + 3, "each one was written or counted");
    assert_eq!(check(&path, &store).await, sound(lines.len() as u64));
}
