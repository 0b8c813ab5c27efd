//! What is exported is what is imported, and others can read it too.

use icalendar::parser::{read_calendar, unfold};
use proptest::collection::vec;
use proptest::option;
use proptest::prelude::*;
use quarterdeck_calendar::{Details, EventRow, Moment, Override, Status, export, import};

fn moment() -> impl Strategy<Value = (Moment, Moment)> {
    let parts = (1990..2100_i32, 1..=12_u8, 1..=27_u8, 0..24_u8, 0..60_u8, 0..60_u8);
    (parts, 0..4_u8).prop_map(|((year, month, day, hour, minute, second), kind)| {
        let form = |day: u8| {
            let date = format!("{year}-{month:02}-{day:02}");
            let time = format!("{date}T{hour:02}:{minute:02}:{second:02}");
            match kind {
                0 => format!("{time}Z"),
                1 => format!("{time}[America/New_York]"),
                2 => time,
                _ => date,
            }
        };
        (form(day).parse().unwrap(), form(day + 1).parse().unwrap())
    })
}

fn details() -> impl Strategy<Value = Details> {
    let text = "[\\PC\n\t]{0,90}";
    let status = prop_oneof![Just(Status::Confirmed), Just(Status::Tentative), Just(Status::Cancelled)];
    let link = option::of("https://[a-z]{1,90}\\.example/[a-z;,]{0,9}");
    (moment(), text, text, text, vec("[a-z]{1,70}@[a-z]{1,9}\\.example", 0..4), link, status, any::<bool>())
        .prop_map(|((start, end), summary, description, location, attendees, conference, status, free)| {
            Details { start, end, summary, description, location, attendees, conference, status, free }
        })
}

fn row() -> impl Strategy<Value = EventRow> {
    let rules = vec(
        prop_oneof![
            Just("FREQ=DAILY;COUNT=3".to_owned()),
            Just("FREQ=WEEKLY;BYDAY=MO,WE;UNTIL=20301231T000000Z".to_owned()),
            Just("FREQ=MONTHLY;BYDAY=-1FR".to_owned()),
        ],
        0..2,
    );
    let dates = || vec(moment().prop_map(|(start, _)| start), 0..3);
    let overrides = vec(
        (moment(), details()).prop_map(|((instead_of, _), details)| Override { instead_of, details }),
        0..3,
    );
    (
        "[a-zA-Z0-9@,;\\\\.-]{1,90}",
        details(),
        rules,
        dates(),
        dates(),
        overrides,
        option::of(Just("2026-01-01T12:00:00Z")),
    )
        .prop_map(|(uid, details, rules, also, except, overrides, stamp)| EventRow {
            uid,
            calendar: "primary".into(),
            details,
            rules,
            also,
            except,
            overrides,
            booked_by: None,
            sequence: 0,
            stamp: Some(stamp.unwrap_or("2025-01-01T00:00:00Z").parse().unwrap()),
        })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    #[test]
    fn what_is_exported_is_what_is_imported(row in row()) {
        let file = export(std::slice::from_ref(&row));
        let import = import(&file, "primary").unwrap();
        prop_assert_eq!(import.skipped, Vec::<String>::new());
        prop_assert_eq!(import.events, 1 + row.overrides.len());
        prop_assert_eq!(EventRow::parse(&import.rows[0].1).unwrap(), row);
    }

    #[test]
    fn another_reader_sees_the_same_texts(row in row()) {
        let file = unfold(&export(std::slice::from_ref(&row)));
        let calendar = read_calendar(&file).unwrap();
        let event = &calendar.components[0];
        prop_assert_eq!(event.name.as_str(), "VEVENT");
        let summary = event.find_prop("SUMMARY").unwrap();
        prop_assert_eq!(summary.val.as_str(), row.details.summary.as_str());
        for line in export(std::slice::from_ref(&row)).split("\r\n") {
            prop_assert!(line.len() <= 75, "{}", line);
        }
    }

    #[test]
    fn any_text_is_read_or_refused(text in "(BEGIN|END|:|;|=|\"|VEVENT|VCALENDAR|DTSTART|RRULE|\r?\n|[ \t]|\\PC){0,60}") {
        let _ = import(&format!("BEGIN:VCALENDAR\n{text}\nEND:VCALENDAR"), "primary");
        let _ = import(&text, "primary");
    }
}
