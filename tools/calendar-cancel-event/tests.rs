//! What happens between the question and the approval.

use quarterdeck_contracts::handler::{CapabilityError, CapabilityErrorCode};
use quarterdeck_contracts::{ErrorType, Event};
use quarterdeck_testkit::FakeContext;
use serde_json::json;

use super::{Args, execute};
use crate::world::ready;

fn args() -> Args {
    Args { event_id: "tea".into(), notify: true }
}

#[test]
fn an_event_that_was_changed_after_the_question_is_not_cancelled() {
    let approved = FakeContext::approved(json!({ "version": "1", "calendar": "primary" }));
    let changed = Event { id: "tea".into(), version: Some("2".into()), ..Event::default() };
    approved.set_events(vec![changed]);
    let refusal = ready(execute(args(), approved)).unwrap_err();
    assert_eq!((refusal.kind, refusal.partial_side_effects), (ErrorType::Conflict, Some(false)));
}

#[test]
fn a_lost_answer_says_that_the_outcome_is_unknown() {
    let context = FakeContext::new();
    context.fail_calendar(CapabilityError::new(CapabilityErrorCode::OutcomeUnknown, "lost"));
    let failure = ready(execute(args(), context)).unwrap_err();
    assert_eq!((failure.kind, failure.retryable), (ErrorType::Transient, false));
    assert_eq!(failure.partial_side_effects, Some(true));
    assert_eq!(failure.details.unwrap()["outcome"], "unknown");
}
