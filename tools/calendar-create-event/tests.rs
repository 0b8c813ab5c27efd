//! Bookings at 09:00 on 13 January 2026, and the arithmetic of free time.

use jiff::Timestamp;
use proptest::collection::vec;
use proptest::prelude::*;
use quarterdeck_contracts::handler::{CapabilityError, CapabilityErrorCode};
use quarterdeck_contracts::{ErrorType, Event, ToolError};
use quarterdeck_testkit::FakeContext;
use serde_json::{Value, json};

use super::conflict::{nearest_free, search_window};
use super::period::Period;
use super::{Args, Booking, execute};
use crate::world::ready;

fn args(start: &str, end: &str) -> Args {
    Args {
        title: "Review".into(),
        start_time: start.into(),
        end_time: end.into(),
        attendees: vec!["ada@example.com".into()],
        description: "Agenda".into(),
        include_zoom_link: true,
    }
}

fn event(start: &str, end: &str, calendar: &str) -> Event {
    let event = json!({ "id": "1", "start": start, "end": end, "summary": "Secret", "attendees": [], "calendar": calendar });
    serde_json::from_value(event).unwrap()
}

fn book(args: Args, events: Vec<Event>) -> Result<Booking, ToolError> {
    let context = FakeContext::new();
    context.set_events(events);
    ready(execute(args, context))
}

#[test]
fn a_free_time_is_booked_as_it_was_asked_for() {
    let context = FakeContext::new();
    context.set_events(vec![event("2026-01-13T09:00:00Z", "2026-01-13T10:00:00Z", "primary")]);
    let asked = args("2026-01-13T11:00:00+01:00", "2026-01-13T11:30:00+01:00");
    let booked = ready(execute(asked, context.clone())).unwrap();
    assert_eq!(
        booked,
        Booking {
            event_id: "event_2".into(),
            title: "Review".into(),
            start_time: "2026-01-13T10:00:00Z".into(),
            end_time: "2026-01-13T10:30:00Z".into(),
            attendees: vec!["ada@example.com".into()],
            description: "Agenda".into(),
            calendar: "primary".into(),
            conference_link: Some("https://meet.example/1".into()),
        }
    );
    assert_eq!(context.recorded().created.len(), 1);
}

#[test]
fn no_link_is_made_when_none_is_wanted() {
    let asked = Args { include_zoom_link: false, ..args("2026-01-13T10:00:00Z", "2026-01-13T10:30:00Z") };
    assert_eq!(book(asked, vec![]).unwrap().conference_link, None);
}

#[test]
fn a_time_that_any_calendar_needs_is_a_conflict_with_the_nearest_free_ones() {
    let context = FakeContext::new();
    context.set_events(vec![
        event("2026-01-13T10:00:00Z", "2026-01-13T12:00:00Z", "personal"),
        event("2026-01-13T12:15:00Z", "2026-01-13T13:00:00Z", "team"),
    ]);
    let refusal =
        ready(execute(args("2026-01-13T11:00:00Z", "2026-01-13T11:30:00Z"), context.clone())).unwrap_err();
    assert_eq!((refusal.kind, refusal.partial_side_effects), (ErrorType::Conflict, Some(false)));
    assert_eq!(
        refusal.details,
        Some(json!({
            "conflicts": [
                { "start": "2026-01-13T10:00:00Z", "end": "2026-01-13T12:00:00Z", "calendar": "personal" },
            ],
            "nearest_free": [
                { "start": "2026-01-13T09:30:00Z", "end": "2026-01-13T10:00:00Z" },
                { "start": "2026-01-13T13:00:00Z", "end": "2026-01-13T13:30:00Z" },
            ],
        }))
    );
    let suggestion = refusal.suggestion.unwrap();
    assert_eq!(suggestion, "Propose another time; the nearest free one begins at 2026-01-13T09:30:00Z.");
    assert_eq!(context.recorded().created, []);
}

#[test]
fn back_to_back_is_no_conflict() {
    let around = vec![
        event("2026-01-13T10:00:00Z", "2026-01-13T11:00:00Z", "primary"),
        event("2026-01-13T11:30:00Z", "2026-01-13T12:00:00Z", "primary"),
    ];
    assert!(book(args("2026-01-13T11:00:00Z", "2026-01-13T11:30:00Z"), around).is_ok());
}

#[test]
fn a_week_without_room_has_no_offers() {
    let all = vec![event("2025-01-01T00:00:00Z", "2027-01-01T00:00:00Z", "team")];
    let refusal = book(args("2026-01-13T11:00:00Z", "2026-01-13T11:30:00Z"), all).unwrap_err();
    assert_eq!(refusal.details.unwrap()["nearest_free"], json!([]));
}

#[test]
fn times_that_make_no_sense_are_refused_with_the_parameter() {
    let path = |start: &str, end: &str| -> Value {
        let refusal = book(args(start, end), vec![]).unwrap_err();
        assert_eq!(refusal.kind, ErrorType::Validation);
        refusal.details.unwrap()[0]["path"].clone()
    };
    assert_eq!(path("2026-01-13T11:00:00Z", "2026-01-13T11:00:00Z"), "/end_time");
    assert_eq!(path("2026-01-13T11:00:00Z", "2026-01-14T11:00:01Z"), "/end_time");
    assert_eq!(path("2026-01-13T08:59:59Z", "2026-01-13T10:00:00Z"), "/start_time");
    assert!(book(args("2026-01-13T09:00:00Z", "2026-01-14T09:00:00Z"), vec![]).is_ok(), "now, for a day");
}

#[test]
fn a_calendar_that_does_not_answer_leaves_open_whether_it_booked() {
    let fail = |code| {
        let context = FakeContext::new();
        context.fail_calendar(CapabilityError::new(code, "no answer"));
        ready(execute(args("2026-01-13T10:00:00Z", "2026-01-13T10:30:00Z"), context)).unwrap_err()
    };
    // Looking changes nothing; only a booking that was begun may have happened.
    assert_eq!(fail(CapabilityErrorCode::Timeout).partial_side_effects, None);
    assert_eq!(fail(CapabilityErrorCode::AuthError).kind, ErrorType::Auth);
    let lost = CapabilityError::new(CapabilityErrorCode::Timeout, "no answer");
    assert_eq!(super::not_booked(lost).partial_side_effects, Some(true));
}

fn period(start: i64, length: i64) -> Period {
    let at = |minute: i64| Timestamp::from_second(1_768_294_800 + minute * 60).unwrap();
    Period { start: at(start), end: at(start + length) }
}

proptest! {
    #[test]
    fn offers_are_free_in_time_and_of_the_right_length(
        busy in vec((0..15_000_i64, 1..2_000_i64), 0..60),
        start in 0..5_000_i64,
        length in 1..1_440_i64,
    ) {
        let now = period(0, 1).start;
        let wanted = period(start, length);
        let around = search_window(wanted, now);
        let busy: Vec<Period> = busy.into_iter().map(|(start, length)| period(start, length)).collect();
        let offers = nearest_free(wanted, around, busy.clone());
        prop_assert!(offers.len() <= 3);
        for offer in &offers {
            prop_assert_eq!(offer.length(), wanted.length());
            prop_assert!(offer.start >= now && offer.start >= around.start && offer.end <= around.end);
            prop_assert!(busy.iter().all(|period| period.end <= offer.start || period.start >= offer.end));
        }
        let distance = |offer: &Period| offer.start.duration_since(wanted.start).abs();
        prop_assert!(offers.is_sorted_by_key(distance));
    }
}
