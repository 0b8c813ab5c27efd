//! What happens between the question and the approval.

use quarterdeck_contracts::{ErrorType, Event};
use quarterdeck_testkit::FakeContext;
use serde_json::json;

use super::{Args, execute, precheck};
use crate::world::ready;

fn tea() -> Event {
    Event {
        id: "tea".into(),
        start: "2026-01-13T10:00:00Z".into(),
        end: "2026-01-13T10:30:00Z".into(),
        summary: "Tea".into(),
        attendees: vec!["ada@example.com".into()],
        calendar: "primary".into(),
        version: Some("1".into()),
        changeable: true,
        ..Event::default()
    }
}

fn args() -> Args {
    Args {
        event_id: "tea".into(),
        start_time: "2026-01-13T11:00:00Z".into(),
        end_time: "2026-01-13T11:30:00Z".into(),
    }
}

#[test]
fn what_was_seen_before_the_approval_is_what_is_moved() {
    let context = FakeContext::new();
    context.set_events(vec![tea()]);
    let asked = ready(precheck(args(), context.clone())).unwrap();
    assert_eq!(asked.seen, json!({ "version": "1", "calendar": "primary" }));

    let approved = FakeContext::approved(asked.seen);
    approved.set_events(vec![tea()]);
    assert_eq!(ready(execute(args(), approved)).unwrap().start_time, "2026-01-13T11:00:00Z");
}

#[test]
fn an_event_that_was_changed_after_the_question_is_a_conflict() {
    let approved = FakeContext::approved(json!({ "version": "1", "calendar": "primary" }));
    approved.set_events(vec![Event { version: Some("2".into()), ..tea() }]);
    let refusal = ready(execute(args(), approved)).unwrap_err();
    assert_eq!((refusal.kind, refusal.partial_side_effects), (ErrorType::Conflict, Some(false)));
    assert_eq!(refusal.suggestion.as_deref(), Some("Look it up again, tell the user, and ask anew."));
}

#[test]
fn a_time_that_was_taken_after_the_question_is_a_conflict_with_free_ones() {
    let approved = FakeContext::approved(json!({ "version": "1", "calendar": "primary" }));
    let other = Event { id: "other".into(), start: args().start_time, end: args().end_time, ..tea() };
    approved.set_events(vec![tea(), other]);
    let refusal = ready(execute(args(), approved)).unwrap_err();
    assert_eq!(refusal.kind, ErrorType::Conflict);
    assert_eq!(refusal.details.unwrap()["nearest_free"][0]["start"], "2026-01-13T10:30:00Z");
}

#[test]
fn an_event_that_may_be_seen_and_not_changed_is_refused() {
    let context = FakeContext::new();
    context.set_events(vec![Event { changeable: false, ..tea() }]);
    assert_eq!(ready(precheck(args(), context)).unwrap_err().kind, ErrorType::Auth);
}
