//! Events of case files.

use std::sync::Arc;

use quarterdeck_calendar::parse_given_events;
use quarterdeck_contracts::{Calendar, Overlay, Table};
use serde_json::json;

use crate::world::{Memory, calendar_in, lines, query, ready};

#[test]
fn events_of_a_case_file_become_rows() {
    let rows = parse_given_events(
        &[
            json!({ "start": "2026-01-13T10:00:00Z", "end": "2026-01-13T11:00:00Z", "summary": "Review" }),
            json!({ "start": "2026-01-12T09:00:00Z", "end": "2026-01-12T09:15:00Z", "summary": "Stand-up",
                "calendar": "team", "rrule": "RRULE:FREQ=DAILY;COUNT=2", "attendees": ["ada@example.com"] }),
        ],
        "terminal",
    )
    .unwrap();
    let overlay = Arc::new(Overlay::new(Arc::new(Memory::default())));
    for (key, row) in rows {
        overlay.put(Table::Calendar, key, row);
    }
    let mut window = query("2026-01-13T00:00:00Z", "2026-01-14T00:00:00Z");
    window.calendars.clear();
    let events = ready(calendar_in("UTC").events(window, overlay)).unwrap();
    assert_eq!(
        lines(&events),
        "2026-01-13T09:00:00Z 2026-01-13T09:15:00Z Stand-up\n2026-01-13T10:00:00Z 2026-01-13T11:00:00Z Review\n"
    );
}

#[test]
fn mistakes_in_a_case_file_are_named() {
    let refuse = |event| parse_given_events(&[event], "terminal").unwrap_err();
    let times = json!({ "start": "2026-01-13T10:00:00Z", "end": "2026-01-13T11:00:00Z" });
    let with = |key: &str, value: &str| {
        let mut event = times.clone();
        event[key] = json!(value);
        event
    };
    assert!(
        refuse(with("sumary", "x")).starts_with("given.calendar[0] is not an event: unknown field `sumary`")
    );
    assert_eq!(refuse(with("end", "soon")), "given.calendar[0] is not an event: \"soon\" is not a time");
    assert_eq!(refuse(with("end", "2026-01-13T10:00:00Z")), "given.calendar[0] does not end after it begins");
    assert_eq!(
        refuse(with("rrule", "FREQ=NEVER")),
        "given.calendar[0] has a rule with the unknown frequency \"NEVER\""
    );
}
