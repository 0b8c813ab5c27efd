//! Segments under the threads of a real log: no line waits for compression, and copies in the store are cut as well.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant, SystemTime};

use quarterdeck_contracts::{Scan, Store, Table};
use quarterdeck_runtime::audit::{
    AuditEntry, AuditEvent, AuditLog, AuditLogParts, AuditReader, AuditSink, SegmentSettings, verify,
    verify_kept,
};
use quarterdeck_runtime::{Clock, SystemClock};
use quarterdeck_testkit::{new_store, tree};
use serde_json::{Map, json};

const DAY: u64 = 86_400;

fn event(number: u64, bytes: usize) -> AuditEvent {
    // Text that is not just one letter, so that compressing takes its time.
    let text: String = (0..bytes as u64).map(|n| char::from(b'a' + ((n * n + number) % 23) as u8)).collect();
    let fields = Map::from_iter([("number".to_owned(), json!(number)), ("text".to_owned(), json!(text))]);
    AuditEvent { event: "test".into(), time: SystemTime::UNIX_EPOCH, fields }
}

fn plain_segments(path: &Path) -> usize {
    let folder = path.with_extension("jsonl.segments");
    let names = std::fs::read_dir(folder).into_iter().flatten().flatten().map(|entry| entry.file_name());
    names.filter(|name| name.to_string_lossy().ends_with(".jsonl")).count()
}

fn numbers(path: &Path) -> Vec<u64> {
    let mut reader = AuditReader::open(path).unwrap();
    let mut numbers = Vec::new();
    loop {
        match reader.next_entry().unwrap() {
            AuditEntry::Line(_, line) => numbers.extend(line["number"].as_u64()),
            AuditEntry::End => return numbers,
            other => panic!("{other:?}"),
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn lines_are_written_while_a_segment_is_compressed() {
    let folder = tree("");
    let (path, store) = (folder.join("audit.jsonl"), new_store());
    let segments = SegmentSettings { max_bytes: 24 << 20, ..SegmentSettings::default() };
    let (clock, keep_in_store) = (Arc::new(SystemClock), false);
    let parts =
        AuditLogParts { path: &path, node: "node", store: store.clone(), clock, keep_in_store, segments };
    let log = AuditLog::open_with(parts).await.unwrap();
    let mut number = 0;
    while plain_segments(&path) == 0 {
        number += 1;
        log.record(event(number, 60_000));
        log.flush();
    }
    let (mut longest, mut during) = (Duration::ZERO, 0);
    let begun = Instant::now();
    while plain_segments(&path) > 0 && begun.elapsed() < Duration::from_secs(120) {
        number += 1;
        let one = Instant::now();
        log.record(event(number, 100));
        log.flush();
        longest = longest.max(one.elapsed());
        during += 1;
        // Without a pause the lines take the core from the compression, on a busy machine until the test times out.
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
    let whole = begun.elapsed();
    assert!(during > 20, "{during} lines in {whole:?}");
    assert!(
        longest * 2 < whole.max(Duration::from_millis(200)),
        "no line waits for it: {longest:?} of {whole:?}"
    );
    assert_eq!(verify(&path, "node", &*store).await.unwrap().fault, None);
    assert_eq!(numbers(&path), (1..=number).collect::<Vec<_>>());
}

struct DaysClock(AtomicU64);

impl Clock for DaysClock {
    fn now(&self) -> SystemTime {
        SystemTime::UNIX_EPOCH + Duration::from_secs(self.0.load(Ordering::Relaxed) * DAY)
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn retention_cuts_the_copies_in_the_store_and_both_verify() {
    let folder = tree("");
    let path = folder.join("audit.jsonl");
    let store: Arc<dyn Store> = new_store();
    let clock = Arc::new(DaysClock(AtomicU64::new(20_000)));
    let segments = SegmentSettings {
        daily: true,
        retain: Some(Duration::from_secs(3 * DAY)),
        ..SegmentSettings::default()
    };
    let parts = AuditLogParts {
        path: &path,
        node: "node",
        store: store.clone(),
        clock: clock.clone(),
        keep_in_store: true,
        segments,
    };
    let log = AuditLog::open_with(parts).await.unwrap();
    for number in 1..=40 {
        log.record(event(number, 40_000));
        log.flush();
        if number % 4 == 0 {
            clock.0.fetch_add(1, Ordering::Relaxed);
        }
    }
    let is_trimmed = async || {
        let rows = store.scan(Table::Audit, Scan::prefix("~lines/node/", 1_000)).await.unwrap();
        rows.first().is_some_and(|(key, _)| !key.ends_with("/00000000000000000001"))
    };
    let begun = Instant::now();
    while !(is_trimmed().await && numbers(&path)[0] > 20) {
        assert!(begun.elapsed() < Duration::from_secs(60));
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    let file = verify(&path, "node", &*store).await.unwrap();
    assert_eq!((&file.fault, file.unconfirmed), (&None, 0));
    assert!(file.cut.is_some_and(|cut| cut.lines > 20 && !cut.since.is_empty()));
    let kept = verify_kept("node", &*store).await.unwrap().unwrap();
    assert_eq!(kept.fault, None);
    assert!(kept.cut.is_some());
    drop(log);
}
