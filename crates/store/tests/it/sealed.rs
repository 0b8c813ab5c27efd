//! Rows that are encrypted in front of an engine.

use std::fs;
use std::path::Path;
use std::sync::Arc;

use quarterdeck_contracts::{Commit, Scan, Store, StoreError, Table};
use quarterdeck_store::{MemoryStore, SealedStore, SealingKey, SealingKeys, SqliteStore};
use quarterdeck_testkit::{block_on, durable_store_promises, store_promises};
use serde_json::{Value, json};

store_promises!(open);
durable_store_promises!(open);

const PLANTED: &str = "the walrus keeps the spare rudder";

fn open(folder: &Path) -> Arc<dyn Store> {
    let engine = Arc::new(SqliteStore::open(folder.join("store.db")).unwrap());
    Arc::new(SealedStore::new(engine, keys(1, &[])))
}

fn key(byte: u8) -> SealingKey {
    // 32 bytes of the same value.
    let text = ["AQEB", "AgIC", "AwMD"][usize::from(byte) - 1].repeat(11);
    SealingKey::from_base64(&text[..43]).unwrap()
}

fn keys(current: u8, previous: &[u8]) -> SealingKeys {
    SealingKeys::new(Some(key(current)), previous.iter().copied().map(key).collect())
}

fn rows_with_words() -> Vec<(Table, &'static str, Value)> {
    let said = json!({ "clientId": "c_1", "said": PLANTED });
    let session = json!({
        "clientId": "c_1", "turn": 3, "notes": [PLANTED], "state": { "isActive": true, "pendingEndVoiceSession": null },
    });
    vec![
        (Table::History, "s/ses_1/0000000001", said.clone()),
        (Table::Calls, "ses_1/k", said.clone()),
        (Table::Confirmations, "hash", said.clone()),
        (Table::Tasks, "c_1/t", said.clone()),
        (Table::Values, "c_1/tool/key", json!(PLANTED)),
        (Table::Sessions, "s/ses_1", session),
        (Table::Leases, "ses_1", json!({ "state": "free", "turn": { "calls": [PLANTED] } })),
    ]
}

fn write_words(store: &dyn Store) {
    for (table, key, value) in rows_with_words() {
        block_on(store.commit(Commit::default().put(table, key, value))).unwrap();
    }
    // A second time through the queue, which reads without waiting.
    for (table, key, value) in rows_with_words() {
        store.queue(Commit::default().put(table, key, value)).unwrap();
    }
    block_on(store.flush()).unwrap();
}

fn holds(folder: &Path, words: &str) -> bool {
    fs::read_dir(folder).unwrap().any(|entry| {
        let bytes = fs::read(entry.unwrap().path()).unwrap_or_default();
        bytes.windows(words.len()).any(|window| window == words.as_bytes())
    })
}

#[test]
fn no_file_of_the_store_holds_a_planted_sentence_and_every_row_reads_as_written() {
    let folder = tempfile::tempdir().unwrap();
    let store = open(folder.path());
    write_words(&*store);
    assert!(!holds(folder.path(), PLANTED), "the file or its log holds the sentence");
    assert!(!holds(folder.path(), "spare rudder"));
    assert!(holds(folder.path(), "c_1/tool/key"), "the files were looked at");
    for (table, key, value) in rows_with_words() {
        assert_eq!(block_on(store.get(table, key)).unwrap().map(|row| row.value), Some(value), "{table:?}");
    }
    block_on(store.close()).unwrap();
    assert!(!holds(folder.path(), PLANTED));
}

#[test]
fn the_same_rows_without_a_key_do_hold_it() {
    let folder = tempfile::tempdir().unwrap();
    let engine = Arc::new(SqliteStore::open(folder.path().join("store.db")).unwrap());
    let store = block_on(SealedStore::open(engine, SealingKeys::default())).unwrap();
    write_words(&store);
    assert!(holds(folder.path(), PLANTED));
}

#[test]
fn a_server_with_a_wrong_or_missing_key_is_refused_with_a_sentence() {
    let engine = Arc::new(MemoryStore::new());
    let store = block_on(SealedStore::open(engine.clone(), keys(1, &[]))).unwrap();
    write_words(&store);
    for (wrong, have) in
        [(keys(2, &[]), "the configured key is"), (SealingKeys::default(), "no key is configured")]
    {
        let refused = block_on(SealedStore::open(engine.clone(), wrong.clone())).err();
        let Some(StoreError::Failed(sentence)) = refused else { panic!("it was opened") };
        assert!(sentence.contains(key(1).id()) && sentence.contains(have), "{sentence}");
        assert!(sentence.contains("QUARTERDECK_TRANSCRIPTS__KEY"), "{sentence}");
        // A command that only reads gets the same sentence where it meets such a row, and never ciphertext.
        let reader = SealedStore::new(engine.clone(), wrong);
        assert!(block_on(reader.get(Table::History, "s/ses_1/0000000001")).is_err());
        assert!(block_on(reader.scan(Table::History, Scan::prefix("", 10))).is_err());
        let session = block_on(reader.get(Table::Sessions, "s/ses_1")).unwrap().unwrap().value;
        assert_eq!((&session["clientId"], &session["notes"]), (&json!("c_1"), &json!([])));
    }
}

#[test]
fn a_replaced_key_still_reads_what_it_wrote_and_the_new_one_writes() {
    let engine = Arc::new(MemoryStore::new());
    write_words(&block_on(SealedStore::open(engine.clone(), keys(1, &[]))).unwrap());
    let store = block_on(SealedStore::open(engine.clone(), keys(2, &[1]))).unwrap();
    let before = block_on(store.get(Table::History, "s/ses_1/0000000001")).unwrap().unwrap().value;
    assert_eq!(before["said"], PLANTED);
    block_on(store.commit(Commit::default().put(Table::History, "new", json!({ "said": 2 })))).unwrap();
    let raw = block_on(engine.get(Table::History, "new")).unwrap().unwrap().value;
    assert!(raw.to_string().contains(key(2).id()), "{raw}");
    assert!(block_on(SealedStore::open(engine, keys(3, &[2]))).is_err(), "the first key is still needed");
}

#[test]
fn a_row_that_was_moved_or_changed_does_not_open() {
    let engine = Arc::new(MemoryStore::new());
    write_words(&block_on(SealedStore::open(engine.clone(), keys(1, &[]))).unwrap());
    let raw = block_on(engine.get(Table::History, "s/ses_1/0000000001")).unwrap().unwrap().value;
    block_on(engine.commit(Commit::default().put(Table::History, "s/ses_2/0000000001", raw))).unwrap();
    let store = SealedStore::new(engine, keys(1, &[]));
    let error = block_on(store.get(Table::History, "s/ses_2/0000000001")).unwrap_err();
    assert!(error.to_string().contains("was changed since it was encrypted"), "{error}");
}

#[test]
fn a_client_is_found_in_its_rows_without_the_key() {
    let engine = Arc::new(MemoryStore::new());
    write_words(&block_on(SealedStore::open(engine.clone(), keys(1, &[]))).unwrap());
    let raw = block_on(engine.get(Table::Confirmations, "hash")).unwrap().unwrap().value;
    assert_eq!(raw["clientId"], "c_1");
    assert_eq!(raw.get("said"), None);
}
