//! The chains of several nodes, and their copies in the store.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::SystemTime;

use quarterdeck_contracts::{Commit, Scan, Store, Table};
use quarterdeck_runtime::SystemClock;
use quarterdeck_runtime::audit::{
    AuditEvent, AuditLog, AuditLogParts, AuditSink, ChainSource, NodeVerification, SegmentSettings,
    Verification, verify, verify_kept, verify_nodes,
};
use quarterdeck_testkit::{new_store, tree};
use serde_json::{Map, json};

/// Writes so many lines more and closes the trail.
async fn write(path: &Path, node: &str, store: &Arc<dyn Store>, keep_in_store: bool, lines: usize) {
    let (store, clock, segments) = (store.clone(), Arc::new(SystemClock), SegmentSettings::default());
    let parts = AuditLogParts { path, node, store, clock, keep_in_store, segments };
    let log = AuditLog::open_with(parts).await.unwrap();
    for number in 0..lines {
        // Some are longer than a row.
        let text = "x".repeat(if number % 7 == 3 { 200_000 } else { 100 });
        let fields = Map::from_iter([("text".to_owned(), json!(text))]);
        log.record(AuditEvent { event: "test".into(), time: SystemTime::UNIX_EPOCH, fields });
    }
    log.flush();
}

fn sound(lines: u64) -> Verification {
    Verification { lines, ..Verification::default() }
}

fn of<'a>(all: &'a [NodeVerification], node: &str) -> &'a NodeVerification {
    all.iter().find(|one| one.node == node).unwrap()
}

#[tokio::test]
async fn chains_of_all_nodes_are_verified_together() {
    let folder = tree("");
    let store: Arc<dyn Store> = new_store();
    let [one, two, three] = ["one", "two", "three"].map(|name| folder.join(&format!("{name}.jsonl")));
    write(&one, "one", &store, false, 3).await;
    write(&two, "two", &store, false, 4).await;
    write(&three, "three", &store, true, 25).await;
    let files = BTreeMap::from([("one".to_owned(), one.clone())]);
    let all = verify_nodes(&files, &*store, None).await.unwrap();
    assert_eq!(all.len(), 3);
    assert_eq!(of(&all, "one").found, Some(sound(3)));
    let unseen = of(&all, "two");
    assert_eq!((&unseen.source, unseen.known_lines, &unseen.found), (&ChainSource::NotSeen, 4, &None));
    assert_eq!(
        (&of(&all, "three").source, &of(&all, "three").found),
        (&ChainSource::Store, &Some(sound(25)))
    );
    // With its file, the second is seen too, and a fault in it is its own.
    let text = fs::read_to_string(&two).unwrap().replacen("test", "text", 1);
    fs::write(&two, text).unwrap();
    let files = BTreeMap::from([("one".to_owned(), one), ("two".to_owned(), two)]);
    let all = verify_nodes(&files, &*store, None).await.unwrap();
    assert_eq!(of(&all, "one").found, Some(sound(3)));
    assert!(of(&all, "two").found.as_ref().unwrap().fault.is_some());
}

#[tokio::test]
async fn lines_that_the_store_missed_are_added_from_the_file() {
    let folder = tree("");
    let store: Arc<dyn Store> = new_store();
    let path: PathBuf = folder.join("audit.jsonl");
    write(&path, "one", &store, true, 10).await;
    // Kept only in the file for a while, as when the database cannot be reached.
    write(&path, "one", &store, false, 20).await;
    let found = verify_kept("one", &*store).await.unwrap().unwrap();
    assert!(
        found.fault.unwrap().contains("the trail ends at line 10"),
        "the store knows that more were written"
    );
    write(&path, "one", &store, true, 5).await;
    assert_eq!(verify_kept("one", &*store).await.unwrap(), Some(sound(35)));
    assert_eq!(verify(&path, "one", &*store).await.unwrap(), sound(35));
}

#[tokio::test]
async fn a_changed_or_missing_row_is_found() {
    let folder = tree("");
    let store: Arc<dyn Store> = new_store();
    write(&folder.join("audit.jsonl"), "one", &store, true, 30).await;
    let rows = store.scan(Table::Audit, Scan::prefix("~lines/", 1_000)).await.unwrap();
    assert!(rows.len() > 3, "{}", rows.len());
    let (key, row) = rows[1].clone();
    store.commit(Commit::default().delete(Table::Audit, key.clone())).await.unwrap();
    let fault = verify_kept("one", &*store).await.unwrap().unwrap().fault.unwrap();
    assert!(fault.contains("lines are missing"), "{fault}");
    let changed = row.value.as_str().unwrap().replacen("test", "text", 1);
    store.commit(Commit::default().put(Table::Audit, key, json!(changed))).await.unwrap();
    let fault = verify_kept("one", &*store).await.unwrap().unwrap().fault.unwrap();
    assert!(fault.contains("not a line of the audit trail"), "{fault}");
}
