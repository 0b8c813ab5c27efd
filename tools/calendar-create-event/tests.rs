//! Bookings at 09:00 on 13 January 2026.

use quarterdeck_contracts::handler::{CapabilityError, CapabilityErrorCode};
use quarterdeck_contracts::{ErrorType, Event, ToolError};
use quarterdeck_testkit::FakeContext;
use serde_json::{Value, json};

use super::{Args, Booking, execute, precheck};
use crate::booking::InvitationReport;
use crate::world::ready;

fn args(start: &str, end: &str) -> Args {
    Args {
        title: "Review".into(),
        start_time: start.into(),
        end_time: end.into(),
        attendees: vec!["ada@example.com".into()],
        description: "Agenda".into(),
        include_zoom_link: None,
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
    context.set_conferences();
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
            invitations: InvitationReport {
                summary: "No attendee was told.".into(),
                notified: vec![],
                ics: None,
            },
        }
    );
    assert_eq!(context.recorded().created.len(), 1);
}

#[test]
fn a_link_is_made_where_one_is_wanted_and_video_calls_are_configured() {
    let link = |include_zoom_link, is_configured: bool| {
        let context = FakeContext::new();
        if is_configured {
            context.set_conferences();
        }
        let asked = Args { include_zoom_link, ..args("2026-01-13T10:00:00Z", "2026-01-13T10:30:00Z") };
        ready(execute(asked, context)).unwrap().conference_link.is_some()
    };
    assert!(link(None, true) && link(Some(true), true));
    assert!(!link(Some(false), true));
    assert!(!link(None, false) && !link(Some(true), false));
}

#[test]
fn the_user_is_asked_with_the_attendees_and_not_at_all_when_the_time_is_taken() {
    let context = FakeContext::new();
    context.set_conferences();
    let asked = Args {
        attendees: vec!["ada@example.com".into(), "grace@example.com".into()],
        ..args("2026-01-13T10:00:00Z", "2026-01-13T10:30:00Z")
    };
    assert_eq!(
        ready(precheck(asked, context)).unwrap().preview.as_deref(),
        Some(
            "Book “Review” from 2026-01-13T10:00:00Z to 2026-01-13T10:30:00Z with ada@example.com, \
             grace@example.com. No invitation is sent. A link to a video call is added."
        )
    );
    let context = FakeContext::new();
    context.set_events(vec![event("2026-01-13T10:00:00Z", "2026-01-13T11:00:00Z", "team")]);
    let taken = args("2026-01-13T10:00:00Z", "2026-01-13T10:30:00Z");
    assert_eq!(ready(precheck(taken, context)).unwrap_err().kind, ErrorType::Conflict);
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
    let lost = CapabilityError::new(CapabilityErrorCode::OutcomeUnknown, "no answer");
    let unknown = ready(crate::booking::not_changed(&*FakeContext::new(), lost, None));
    assert_eq!((unknown.partial_side_effects, unknown.retryable), (Some(true), false));
    assert_eq!(unknown.details.unwrap()["outcome"], "unknown");
}
