//! Any bytes as the answer of a CalDAV server: resources with their events or a reason, never a panic. An object that we
//! change is still an object.
#![no_main]

use libfuzzer_sys::fuzz_target;
use quarterdeck_calendar::{Moment, cancel_in_object, read_rows};

fuzz_target!(|data: &[u8]| {
    quarterdeck_remote_calendar::fuzz_multistatus(data);
    let Ok(text) = std::str::from_utf8(data) else { return };
    let Ok((rows, _)) = read_rows(text, "primary") else { return };
    let home = jiff::tz::TimeZone::UTC;
    let stamp: Moment = "2026-01-13T09:00:00Z".parse().expect("a time");
    let original: jiff::Timestamp = "2026-01-13T09:00:00Z".parse().expect("a time");
    for mut row in rows {
        if row.cancel_occurrence(original, &home).is_err() {
            continue;
        }
        if let Some(changed) = cancel_in_object(text, &row, original, &stamp, &home) {
            read_rows(&changed, "primary").expect("what we write is an object");
        }
    }
});
