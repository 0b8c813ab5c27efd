//! Any text as a record, in Markdown and as JSON lines: a record or a reason with its line, never a panic; and a record
//! that was read can be indexed and found by its title.
#![no_main]

use libfuzzer_sys::fuzz_target;
use quarterdeck_contracts::KnowledgeRecord;
use quarterdeck_knowledge::{PathDefaults, KnowledgeBase, parse_markdown, read_jsonl};

fuzz_target!(|data: &str| {
    let path = PathDefaults { slug: Some("any".to_owned()), ..PathDefaults::default() };
    let mut records: Vec<KnowledgeRecord> = Vec::new();
    match parse_markdown(data, &path) {
        Ok(record) => records.push(record),
        Err(faults) => assert!(!faults.is_empty() && faults.iter().all(|fault| fault.line > 0)),
    }
    let (lines, faults) = read_jsonl(data.as_bytes(), &path).expect("memory can be read");
    assert!(faults.iter().all(|fault| fault.line > 0 && fault.line <= data.lines().count().max(1)));
    records.extend(lines.into_iter().map(|(record, _)| record));
    records.sort_by(|a, b| a.id.cmp(&b.id));
    records.dedup_by(|a, b| a.id == b.id);
    let base = KnowledgeBase::from_records(records.clone(), None, None).expect("what was read is indexed");
    assert_eq!(base.records(), records);
});
