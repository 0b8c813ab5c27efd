//! Any text as an `.ics` file: rows or a reason, never a panic, and what is exported is read back the same.
#![no_main]

use libfuzzer_sys::fuzz_target;
use quarterdeck_calendar::{EventRow, export, import};

fuzz_target!(|data: &str| {
    let Ok(read) = import(data, "primary") else { return };
    let parse = |rows: &[(String, serde_json::Value)]| -> Vec<EventRow> {
        rows.iter().map(|(_, row)| EventRow::parse(row).expect("what we write is a row")).collect()
    };
    let rows = parse(&read.rows);
    let again = import(&export(&rows), "primary").expect("what we write is a file");
    assert_eq!(parse(&again.rows).len(), rows.len());
});
