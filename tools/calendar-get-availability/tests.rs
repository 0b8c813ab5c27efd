//! Arithmetic that must hold for any calendar, and what the case files cannot say.

use jiff::Timestamp;
use proptest::collection::vec;
use proptest::prelude::*;
use quarterdeck_contracts::handler::{CapabilityError, CapabilityErrorCode};
use quarterdeck_contracts::{ErrorType, Event, ToolError};
use quarterdeck_testkit::FakeContext;
use serde_json::json;

use super::periods::{Period, gaps, merge};
use super::{Args, Availability, execute};
use crate::world::ready;

fn event(start: &str, end: &str, calendar: &str) -> Event {
    let event = json!({
        "id": "1", "start": start, "end": end, "summary": "Review", "attendees": ["ada@example.com", "b@example.com"],
        "calendar": calendar,
    });
    serde_json::from_value(event).unwrap()
}

fn args(start: &str, end: &str) -> Args {
    Args {
        start_date: start.into(),
        end_date: end.into(),
        calendars: vec!["primary".into(), "team".into()],
        include_details: false,
        min_duration_minutes: 30,
    }
}

fn look(args: Args, events: Vec<Event>) -> Result<Availability, ToolError> {
    let context = FakeContext::new();
    context.set_events(events);
    ready(execute(args, context))
}

const DAY: (&str, &str) = ("2026-01-13T09:00:00Z", "2026-01-13T17:00:00Z");

#[test]
fn overlapping_events_of_two_calendars_are_one_busy_period() {
    let events = vec![
        event("2026-01-13T08:00:00Z", "2026-01-13T09:30:00Z", "primary"),
        event("2026-01-13T11:00:00Z", "2026-01-13T12:00:00Z", "primary"),
        event("2026-01-13T11:30:00Z", "2026-01-13T13:00:00Z", "team"),
        event("2026-01-13T13:00:00Z", "2026-01-13T13:30:00Z", "team"),
        event("2026-01-13T13:50:00Z", "2026-01-13T18:00:00Z", "personal"),
        event("2026-01-13T16:30:00Z", "2026-01-13T18:00:00Z", "primary"),
    ];
    let answer = look(args(DAY.0, DAY.1), events).unwrap();
    let slots: Vec<_> =
        answer.available_slots.iter().map(|slot| (slot.start.as_str(), slot.duration_minutes)).collect();
    assert_eq!(slots, [("2026-01-13T09:30:00Z", 90), ("2026-01-13T13:30:00Z", 180)]);
    assert_eq!(answer.summary, "3 busy periods, 2 available slots (270 minutes total)");
    assert_eq!(answer.existing_events.len(), 5);
    assert_eq!(answer.existing_events[0].start, DAY.0);
    assert_eq!(answer.existing_events[4].end, DAY.1);
}

#[test]
fn details_are_told_only_when_asked_for() {
    let held = || vec![event("2026-01-13T10:00:00Z", "2026-01-13T11:00:00Z", "primary")];
    let plain = look(args(DAY.0, DAY.1), held()).unwrap();
    assert_eq!((&plain.existing_events[0].title, plain.existing_events[0].attendees), (&None, None));
    let full = look(Args { include_details: true, ..args(DAY.0, DAY.1) }, held()).unwrap();
    assert_eq!(full.existing_events[0].title.as_deref(), Some("Review"));
    assert_eq!(full.existing_events[0].attendees, Some(2));
    assert_eq!(full.summary, "1 busy period, 2 available slots (420 minutes total)");
}

#[test]
fn an_offset_in_the_question_is_utc_in_the_answer() {
    let answer = look(args("2026-01-13T10:00:00+01:00", "2026-01-13T10:45:00.500+01:00"), vec![]).unwrap();
    assert_eq!(answer.date_range.start, DAY.0);
    assert_eq!(answer.summary, "0 busy periods, 1 available slot (45 minutes total)");
}

#[test]
fn a_busy_month_has_nothing_to_offer() {
    let all = vec![event("2025-01-01T00:00:00Z", "2027-01-01T00:00:00Z", "primary")];
    let answer = look(args("2026-01-01T00:00:00Z", "2026-02-01T00:00:00Z"), all).unwrap();
    assert_eq!(answer.summary, "1 busy period, 0 available slots (0 minutes total)");
}

#[test]
fn the_failures_of_a_calendar_keep_their_meaning() {
    let fail = |code, retry_after_seconds| {
        let context = FakeContext::new();
        context.fail_calendar(CapabilityError { code, message: "no".into(), retry_after_seconds });
        ready(execute(args(DAY.0, DAY.1), context)).unwrap_err()
    };
    let limited = fail(CapabilityErrorCode::RateLimit, Some(2.5));
    assert_eq!(
        (limited.kind, limited.retryable, limited.retry_after_ms),
        (ErrorType::RateLimit, true, Some(2_500))
    );
    assert_eq!(fail(CapabilityErrorCode::AuthError, None).kind, ErrorType::Auth);
    assert_eq!(fail(CapabilityErrorCode::Timeout, None).kind, ErrorType::Transient);
    assert_eq!(fail(CapabilityErrorCode::NotFound, None).kind, ErrorType::NotFound);
}

fn period(start: i64, length: i64) -> Period {
    let at = |minute: i64| Timestamp::from_second(1_768_294_800 + minute * 60).unwrap();
    Period { start: at(start), end: at(start + length) }
}

proptest! {
    #[test]
    fn gaps_and_busy_periods_are_a_partition_of_the_range(
        busy in vec((-600..1_200_i64, 1..400_i64), 0..40),
        length in 1..1_000_i64,
    ) {
        let range = period(0, length);
        let cut: Vec<Period> = busy.iter().filter_map(|(start, length)| period(*start, *length).cut_to(range)).collect();
        let merged = merge(cut.iter().copied());
        let free = gaps(range, &merged);

        let mut parts = [merged.clone(), free.clone()].concat();
        parts.sort();
        prop_assert_eq!(parts.first().map(|part| part.start), Some(range.start));
        prop_assert_eq!(parts.last().map(|part| part.end), Some(range.end));
        for pair in parts.windows(2) {
            prop_assert_eq!(pair[0].end, pair[1].start);
        }
        for pair in merged.windows(2) {
            prop_assert!(pair[0].end < pair[1].start, "periods that touch are one");
        }
        for event in &cut {
            prop_assert!(merged.iter().any(|whole| event.cut_to(*whole) == Some(*event)));
            prop_assert!(free.iter().all(|gap| event.cut_to(*gap).is_none()));
        }
    }

    #[test]
    fn no_slot_is_shorter_than_asked_for_and_no_longer_gap_is_missing(
        busy in vec((0..1_000_i64, 1..200_i64), 0..20),
        shortest in 15..480_u32,
    ) {
        let events = busy.iter().map(|(start, length)| {
            let period = period(*start, *length);
            event(&period.start.to_string(), &period.end.to_string(), "primary")
        });
        let range = period(0, 1_000);
        let question = Args { min_duration_minutes: shortest, ..args(&range.start.to_string(), &range.end.to_string()) };
        let answer = look(question, events.collect()).unwrap();
        let cut = busy.iter().filter_map(|(start, length)| period(*start, *length).cut_to(range));
        let expected: Vec<i64> = gaps(range, &merge(cut))
            .iter()
            .map(|gap| gap.length().as_mins())
            .filter(|minutes| *minutes >= i64::from(shortest))
            .collect();
        let found: Vec<i64> = answer.available_slots.iter().map(|slot| slot.duration_minutes).collect();
        prop_assert_eq!(found, expected);
    }
}
