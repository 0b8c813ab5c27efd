//! Files from elsewhere.

use std::fmt::Write;
use std::time::{Duration, Instant};

use expect_test::expect;
use quarterdeck_calendar::{EventRow, IcsError, MAX_EVENTS, MAX_ICS_BYTES, export, import};

/// As Outlook writes it: CRLF, folded lines, a zone of its own name, escaped text, an alarm.
const OUTLOOK: &str = "BEGIN:VCALENDAR\r\nPRODID:-//Microsoft Corporation//Outlook 16.0//EN\r\nVERSION:2.0\r\n\
BEGIN:VTIMEZONE\r\nTZID:W. Europe Standard Time\r\nBEGIN:STANDARD\r\nDTSTART:16011028T030000\r\nTZOFFSETFROM:+0200\r\nTZOFFSETTO:+0100\r\nEND:STANDARD\r\nEND:VTIMEZONE\r\n\
BEGIN:VEVENT\r\nUID:040000008200E00074C5B7101A82E008\r\nDTSTAMP:20260101T120000Z\r\n\
DTSTART;TZID=\"W. Europe Standard Time\":20260113T093000\r\nDTEND;TZID=\"W. Europe Standard Time\":20260113T103000\r\n\
SUMMARY:Budget\\, part 2\\; with Zo\r\n\të\r\nDESCRIPTION:First line\\nsecond line \\\\ end\r\n\
ATTENDEE;CN=\"Lovelace; Ada\";RSVP=TRUE:MAILTO:ada@example.com\r\nATTENDEE;CN=Room:urn:uuid:1\r\n\
BEGIN:VALARM\r\nTRIGGER:-PT15M\r\nDESCRIPTION:Reminder\r\nEND:VALARM\r\nEND:VEVENT\r\nEND:VCALENDAR\r\n";

#[test]
fn a_file_from_outlook_is_read() {
    let import = import(OUTLOOK, "primary").unwrap();
    assert_eq!((import.events, import.skipped), (1, Vec::new()));
    expect![[r#"
        primary/040000008200E00074C5B7101A82E008
        {
          "uid": "040000008200E00074C5B7101A82E008",
          "calendar": "primary",
          "start": "2026-01-13T09:30:00[Europe/Berlin]",
          "end": "2026-01-13T10:30:00[Europe/Berlin]",
          "summary": "Budget, part 2; with Zoë",
          "description": "First line\nsecond line \\ end",
          "attendees": [
            "ada@example.com"
          ],
          "stamp": "2026-01-01T12:00:00Z"
        }"#]]
    .assert_eq(&format!("{}\n{:#}", import.rows[0].0, import.rows[0].1));
}

fn skipped(event: &str) -> String {
    let file = format!("BEGIN:VCALENDAR\nBEGIN:VEVENT\nSUMMARY:S\n{event}\nEND:VEVENT\nEND:VCALENDAR\n");
    import(&file, "primary").unwrap().skipped.join("\n")
}

#[test]
fn events_that_cannot_be_taken_are_named_with_the_reason() {
    let messages = [
        "DTSTART:20260113T090000Z",
        "UID:1",
        "UID:1\nDTSTART:yesterday",
        "UID:1\nDTSTART:20260230T090000Z",
        "UID:1\nDTSTART;TZID=Mars/Olympus:20260113T090000",
        "UID:1\nDTSTART:20260113T090000Z\nDTEND:20260113T080000Z",
        "UID:1\nDTSTART:20260113T090000Z\nDTEND;VALUE=DATE:20260114",
        "UID:1\nDTSTART:20260113T090000Z\nDURATION:an hour",
        "UID:1\nDTSTART:20260113T090000Z\nRRULE:FREQ=SECONDLY",
        "UID:1\nDTSTART:20260113T090000Z\nRRULE:FREQ=DAILY;BYMOON=full",
        "UID:1\nDTSTART:20260113T090000Z\nRRULE:FREQ=DAILY;BYHOUR=99",
        "UID:1\nDTSTART:20260113T090000Z\nEXRULE:FREQ=DAILY",
    ]
    .map(skipped);
    expect![[r#"
        the event "S" of line 2 has no UID, or one that is too long
        the event "S" of line 2 has no start
        the event "S" of line 2 has a DTSTART that cannot be read (line 5)
        the event "S" of line 2 has a DTSTART that cannot be read (line 5)
        the event "S" of line 2 is in the time zone "Mars/Olympus", which is not known
        the event "S" of line 2 ends before it begins
        the event "S" of line 2 begins with a day and ends with a time, or the other way round
        the event "S" of line 2 has a duration that cannot be read (line 6)
        the event "S" of line 2 repeats more often than hourly
        the event "S" of line 2 has a rule with the unknown part "BYMOON"
        the event "S" of line 2 has a rule that cannot be followed: RRule parsing error: `99` is not a valid BYHOUR value. Expected a comma-separated list of values in range 0..=23, e.g. `1,3,4`
        the event "S" of line 2 has an EXRULE, which is not followed: it may look busier than it is"#]]
    .assert_eq(&messages.join("\n"));
}

#[test]
fn a_damaged_file_is_refused_with_the_line() {
    let messages = [
        "",
        "hello",
        "BEGIN:VEVENT\nEND:VEVENT",
        "BEGIN:VCALENDAR\nBEGIN:VEVENT\nEND:VCALENDAR",
        "BEGIN:VCALENDAR\nBEGIN:VEVENT\nUID:1",
        "BEGIN:VCALENDAR\nEND:VCALENDAR\nEND:VCALENDAR",
        "BEGIN:VCALENDAR\nno colon here\nEND:VCALENDAR",
        "BEGIN:VCALENDAR\n: no name\nEND:VCALENDAR",
        &"BEGIN:VCALENDAR\n".repeat(100_000),
    ]
    .map(|file| import(file, "primary").unwrap_err().to_string());
    expect![[r#"
        line 1: the file does not begin with BEGIN:VCALENDAR
        line 1: there is no colon after the name
        line 1: BEGIN:VEVENT stands outside a VCALENDAR
        line 3: END:VCALENDAR does not close the VEVENT of line 2
        line 2: the VEVENT is never closed
        line 3: END:VCALENDAR closes nothing
        line 2: there is no colon after the name
        line 2: the line does not begin with a name
        line 17: components nest deeper than 16 levels"#]]
    .assert_eq(&messages.join("\n"));
}

#[test]
fn a_file_may_have_so_many_bytes_and_events() {
    let large = " ".repeat(MAX_ICS_BYTES + 1);
    assert_eq!(import(&large, "primary"), Err(IcsError::TooLarge { bytes: MAX_ICS_BYTES + 1 }));

    let file = |count: usize| {
        let mut file = String::from("BEGIN:VCALENDAR\n");
        for index in 0..count {
            let _ = write!(file, "BEGIN:VEVENT\nUID:{index}\nDTSTART:20260113T090000Z\nEND:VEVENT\n");
        }
        file + "END:VCALENDAR\n"
    };
    let begin = Instant::now();
    assert_eq!(import(&file(MAX_EVENTS), "primary").unwrap().rows.len(), MAX_EVENTS);
    assert!(begin.elapsed() < Duration::from_secs(20), "{:?}", begin.elapsed());
    assert_eq!(import(&file(MAX_EVENTS + 1), "primary"), Err(IcsError::TooManyEvents));
}

#[test]
fn the_same_uid_replaces_and_the_last_of_a_file_counts() {
    let file = "BEGIN:VCALENDAR\nBEGIN:VEVENT\nUID:1\nDTSTART:20260113T090000Z\nSUMMARY:Old\nEND:VEVENT\nBEGIN:VEVENT\nUID:1\nDTSTART:20260114T090000Z\nSUMMARY:New\nEND:VEVENT\nEND:VCALENDAR";
    let import = import(file, "team").unwrap();
    assert_eq!(import.rows.len(), 1);
    assert_eq!(import.rows[0].0, "team/1");
    assert_eq!(import.rows[0].1["summary"], "New");
}

#[test]
fn an_exported_file_folds_escapes_and_names_zones() {
    let rows: Vec<EventRow> = import(OUTLOOK, "primary")
        .unwrap()
        .rows
        .iter()
        .map(|(_, row)| EventRow::parse(row).unwrap())
        .collect();
    let mut row = rows[0].clone();
    row.details.summary = "Überaus ".repeat(12);
    expect![[r#"
        BEGIN:VCALENDAR
        VERSION:2.0
        PRODID:-//Quarterdeck//Calendar//EN
        BEGIN:VEVENT
        UID:040000008200E00074C5B7101A82E008
        DTSTAMP:20260101T120000Z
        DTSTART;TZID=Europe/Berlin:20260113T093000
        DTEND;TZID=Europe/Berlin:20260113T103000
        SUMMARY:Überaus Überaus Überaus Überaus Überaus Überaus Überaus Übe
         raus Überaus Überaus Überaus Überaus 
        DESCRIPTION:First line\nsecond line \\ end
        ATTENDEE:mailto:ada@example.com
        END:VEVENT
        END:VCALENDAR
    "#]]
    .assert_eq(&export(&[row]).replace("\r\n", "\n"));
}
