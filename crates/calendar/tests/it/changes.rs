//! Moving and cancelling, and what the registry adds: backends by name, links, and who is told.

use std::sync::{Arc, Mutex};

use proptest::prelude::*;
use quarterdeck_calendar::{
    CalendarConfig, Calendars, CalendarsBuilder, LocalCalendar, Moment, OccurrenceId, Owner,
    cancel_in_object, find_event, move_in_object, read_rows,
};
use quarterdeck_contracts::handler::{BoxFuture, CapabilityErrorCode};
use quarterdeck_contracts::{
    Calendar, Notice, NoticeKind, NoticeStatus, Notified, Notifier, Overlay, answer_calendar,
};
use serde_json::{Value, json};

use crate::world::{Memory, Scope, calendar_in, holding, lines, query, ready, viewer};

const SERIES: &str = "BEGIN:VEVENT\nUID:daily\nDTSTAMP:20260101T000000Z\nDTSTART;TZID=Europe/Berlin:20260112T090000\n\
                      DTEND;TZID=Europe/Berlin:20260112T100000\nRRULE:FREQ=DAILY\nSUMMARY:Daily\nEND:VEVENT";

fn ask(
    calendar: &dyn Calendar,
    overlay: &Arc<Overlay>,
    method: &str,
    argument: Value,
) -> Result<Value, CapabilityErrorCode> {
    let manager = quarterdeck_contracts::CalendarViewer { may_manage: true, ..viewer("ann") };
    let scope = Scope::new(overlay, "ann");
    ready(answer_calendar(calendar, &manager, &scope, method, &[argument])).map_err(|error| error.code)
}

#[test]
fn one_occurrence_is_moved_by_its_id_and_the_series_stays() {
    let (calendar, overlay) = (calendar_in("Europe/Berlin"), holding(SERIES));
    let to = json!({ "id": "daily#20260113T080000Z", "start": "2026-01-13T14:00:00Z", "end": "2026-01-13T15:00:00Z" });
    let moved = ask(&calendar, &overlay, "moveEvent", to).unwrap();
    assert_eq!(moved["id"], "daily#20260113T080000Z", "its id stays");
    let found =
        ready(calendar.events(query("2026-01-12T00:00:00Z", "2026-01-15T00:00:00Z"), overlay.clone()));
    assert_eq!(
        lines(&found.unwrap()),
        "2026-01-12T08:00:00Z 2026-01-12T09:00:00Z Daily\n2026-01-13T14:00:00Z 2026-01-13T15:00:00Z Daily\n\
         2026-01-14T08:00:00Z 2026-01-14T09:00:00Z Daily\n"
    );
    ask(&calendar, &overlay, "cancelEvent", json!({ "id": "daily#20260113T080000Z" })).unwrap();
    let gone = ask(&calendar, &overlay, "getEvent", json!({ "id": "daily#20260113T080000Z" }));
    assert_eq!(gone, Err(CapabilityErrorCode::NotFound));
    for id in ["daily", "daily#20260113T090000Z", "daily#x", "other"] {
        assert_eq!(
            ask(&calendar, &overlay, "getEvent", json!({ "id": id })),
            Err(CapabilityErrorCode::NotFound),
            "{id}"
        );
    }
}

#[test]
fn a_version_that_is_not_there_any_more_is_a_conflict() {
    let (calendar, overlay) = (calendar_in("UTC"), holding(SERIES));
    let seen = ask(&calendar, &overlay, "getEvent", json!({ "id": "daily#20260114T080000Z" })).unwrap();
    ask(&calendar, &overlay, "cancelEvent", json!({ "id": "daily#20260113T080000Z" })).unwrap();
    let cancel = json!({ "id": "daily#20260114T080000Z", "version": seen["version"] });
    assert_eq!(ask(&calendar, &overlay, "cancelEvent", cancel), Err(CapabilityErrorCode::Conflict));
}

#[test]
fn a_time_that_is_taken_is_a_conflict_and_an_event_is_not_in_its_own_way() {
    let (calendar, overlay) = (calendar_in("UTC"), holding(SERIES));
    let to = |hour: u32| {
        json!({ "id": "daily#20260113T080000Z", "onlyIfFree": true,
                "start": format!("2026-01-14T{hour:02}:30:00Z"), "end": format!("2026-01-14T{hour:02}:45:00Z") })
    };
    assert_eq!(ask(&calendar, &overlay, "moveEvent", to(8)), Err(CapabilityErrorCode::Conflict));
    assert!(ask(&calendar, &overlay, "moveEvent", to(9)).is_ok());
    assert!(ask(&calendar, &overlay, "moveEvent", to(9)).is_ok());
}

/// Remembers what attendees were told.
#[derive(Default)]
struct Told(Mutex<Vec<(NoticeKind, String)>>);

impl Notifier for Told {
    fn how(&self) -> &'static str {
        "email"
    }

    fn notify(&self, notice: Notice, _: Arc<Overlay>) -> BoxFuture<Vec<Notified>> {
        let notified = notice.event.attendees.iter().map(|address| Notified {
            address: address.clone(),
            how: "email".into(),
            status: NoticeStatus::Sent,
        });
        let notified: Vec<_> = notified.collect();
        self.0.lock().unwrap().push((notice.kind, notice.ics.replace("\r\n ", "")));
        Box::pin(async move { notified })
    }
}

fn booking() -> Value {
    json!({ "summary": "Tea", "start": "2026-01-13T10:00:00Z", "end": "2026-01-13T11:00:00Z",
            "attendees": ["ada@example.com"], "conference": true })
}

#[test]
fn without_a_notifier_no_invitation_is_sent_and_the_file_is_offered() {
    let overlay = Arc::new(Overlay::new(Arc::new(Memory::default())));
    let owner = Owner { name: "Ann \"A\"".into(), email: "ann@example.com".into() };
    let calendars = Calendars::local(CalendarConfig { owner, ..CalendarConfig::default() }).unwrap();
    let made = ask(&calendars, &overlay, "createEvent", booking()).unwrap();
    assert_eq!((&made["invitations"]["notified"], &made["conference"]), (&json!([]), &Value::Null));
    let ics = made["invitations"]["ics"].as_str().unwrap();
    for line in [
        "METHOD:REQUEST",
        "ORGANIZER;CN=\"Ann 'A'\":mailto:ann@example.com",
        "DTSTART:20260113T100000Z",
        "SEQUENCE:0",
    ] {
        assert!(ics.contains(line), "{line} is not in {ics}");
    }
    assert_eq!(ask(&calendars, &overlay, "getCalendars", json!({})).unwrap()[0]["hasConferences"], false);
}

#[test]
fn a_notifier_is_told_of_bookings_moves_and_cancellations() {
    let overlay = Arc::new(Overlay::new(Arc::new(Memory::default())));
    let (told, local) =
        (Arc::new(Told::default()), LocalCalendar::from_config(CalendarConfig::default()).unwrap());
    let builder = CalendarsBuilder::new(Owner::default()).calendar("primary", Arc::new(local));
    let calendars = builder.notifier(told.clone()).build();
    let made = ask(&calendars, &overlay, "createEvent", booking()).unwrap();
    assert_eq!(
        made["invitations"],
        json!({ "notified": [{ "address": "ada@example.com", "how": "email", "status": "sent" }] })
    );
    let to = json!({ "id": made["id"], "start": "2026-01-13T12:00:00Z", "end": "2026-01-13T13:00:00Z" });
    ask(&calendars, &overlay, "moveEvent", to).unwrap();
    ask(&calendars, &overlay, "cancelEvent", json!({ "id": made["id"] })).unwrap();
    let told = told.0.lock().unwrap();
    assert_eq!(
        told.iter().map(|(kind, _)| *kind).collect::<Vec<_>>(),
        [NoticeKind::Invitation, NoticeKind::Update, NoticeKind::Cancellation]
    );
    assert!(
        told[1].1.contains("SEQUENCE:1") && told[1].1.contains("DTSTART:20260113T120000Z"),
        "{}",
        told[1].1
    );
    assert!(told[2].1.contains("METHOD:CANCEL") && told[2].1.contains("SEQUENCE:2"), "{}", told[2].1);
}

proptest! {
    #[test]
    fn a_change_of_an_object_is_what_is_read_back(day in 13..28_i64, hours in 1..200_i64, other in "[A-Z-]{3,12}") {
        let text = format!("BEGIN:VCALENDAR\r\nX-{other}:1\r\n{}\r\nEND:VCALENDAR\r\n", SERIES.replace('\n', "\r\n"));
        let home = jiff::tz::TimeZone::UTC;
        let stamp: Moment = "2026-01-01T00:00:00Z".parse().unwrap();
        let original: jiff::Timestamp = format!("2026-01-{day}T08:00:00Z").parse().unwrap();
        let id = OccurrenceId { uid: "daily".into(), occurrence: Some(original) };
        let start = original + jiff::SignedDuration::from_hours(hours);
        let period = (start, start + jiff::SignedDuration::from_mins(30));

        let mut row = read_rows(&text, "primary").unwrap().0.remove(0);
        row.reschedule(Some(original), period, &home).unwrap();
        let moved = move_in_object(&text, &row, Some(original), &stamp, &home).unwrap();
        let mut read = read_rows(&moved, "primary").unwrap().0.remove(0);
        let event = find_event(&read, &id, "", &home).unwrap();
        prop_assert_eq!((event.start, event.end), (period.0.to_string(), period.1.to_string()));
        let kept = format!("X-{other}:1");
        prop_assert!(moved.contains(&kept));

        read.cancel_occurrence(original, &home).unwrap();
        let cancelled = cancel_in_object(&moved, &read, original, &stamp, &home).unwrap();
        let read = read_rows(&cancelled, "primary").unwrap().0.remove(0);
        prop_assert_eq!(find_event(&read, &id, "", &home), None);
        prop_assert_eq!(read.overrides.len(), 0);
    }
}
