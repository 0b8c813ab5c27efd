//! What is said when a call was refused or failed.

use expect_test::expect;
use serde_json::{Value, json};

use crate::conversation::*;

const BOOK: &str = "book a meeting tomorrow at 15:00 with anna@example.com";

/// What is said when the call of a request comes to this.
fn explanation(request: &str, error: Value) -> String {
    let mut conversation = Conversation::new();
    conversation.user(request).results(&[error]);
    assert!(conversation.called().is_empty(), "a refusal is not tried again");
    conversation.said()
}

#[test]
fn a_spent_budget_is_answered_with_what_there_is() {
    let spent = || {
        error(
            "BUDGET_EXCEEDED",
            "This turn's budget of 1 retrieval call is spent.",
            json!({ "suggestion": "Answer with what you have, or ask the user to narrow it down." }),
        )
    };
    let mut conversation = Conversation::new();
    conversation
        .user("Who built the ship?")
        .results(&[found(&["project:building-of-fram"])])
        .results(&[spent()]);
    conversation.check(expect![[r#"
        user: Who built the ship?
        calls: kb_search {"query":"Who built the ship?"}
        result: ok
        calls: kb_get {"id":"project:building-of-fram"}
        result: BUDGET_EXCEEDED
        says: The Fram was designed and built by Colin Archer, whom Fridtjof Nansen had asked for a ship that the ice could not hold. [project:building-of-fram] I have looked up as much as I may for one message.
    "#]]);
    expect!["I have looked up as much as I may for one message. Please narrow it down, or ask again."]
        .assert_eq(&explanation("Who built the ship?", spent()));
}

#[test]
fn a_loop_is_left() {
    let looped = error(
        "LOOP_DETECTED",
        "kb_search found nothing twice; the data may not exist.",
        json!({ "suggestion": "Use other terms or another tool, or say that you do not know." }),
    );
    expect!["Looking it up again would bring nothing new, so I stop here. Try other words; the knowledge base may not have it."].assert_eq(&explanation("Who built the ship?", looped));
}

#[test]
fn a_confirmation_request_is_described() {
    let request = json!({ "expires": 1_794_730_500_000_u64, "tool": "calendar_create_event", "args": {}, "preview": "Book “Meeting” from 15:00 to 15:30, inviting 1" });
    let required = error(
        "CONFIRMATION_REQUIRED",
        "The user has to approve this.",
        json!({ "confirmation_request": request }),
    );
    let mut conversation = Conversation::new();
    conversation.user(BOOK).results(&[required]).user("yes");
    conversation.check(expect![[r#"
        user: book a meeting tomorrow at 15:00 with anna@example.com
        calls: calendar_create_event {"title":"Meeting with anna@example.com","start_time":"2026-11-16T15:00:00+01:00","end_time":"2026-11-16T15:30:00+01:00","attendees":["anna@example.com"]}
        result: CONFIRMATION_REQUIRED
        says: You are being asked: Book “Meeting” from 15:00 to 15:30, inviting 1. Please answer the question that is shown with this conversation, until 09:15; I cannot answer it for you, and nothing has been done yet.
        user: yes
        says: I cannot answer that question for you: please use the buttons that are shown with it, and I will get the result.
    "#]]);
    expect!["You are being asked whether this may be done: please answer the question that is shown with this conversation. Nothing has been done yet."].assert_eq(&explanation(BOOK, error("CONFIRMATION_REQUIRED", "Ask.", json!({}))));
}

#[test]
fn denied_and_expired_confirmations_are_described() {
    expect!["All right: you said no, so nothing was done."]
        .assert_eq(&explanation(BOOK, error("CONFIRMATION_DENIED", "The user said no.", json!({}))));
    expect!["The question was not answered in time, so nothing was done. Tell me if you still want it, and you will be asked again."]
        .assert_eq(&explanation(BOOK, error("CONFIRMATION_EXPIRED", "Not answered in time.", json!({}))));
    expect!["That answer did not belong to the question, so nothing was done. Tell me if you still want it."]
        .assert_eq(&explanation(BOOK, error("CONFIRMATION_INVALID", "No such request.", json!({}))));
}

#[test]
fn what_is_not_possible_here_is_explained() {
    let mode = |message: &str, suggestion: &str| {
        error("MODE_RESTRICTED", message, json!({ "suggestion": suggestion }))
    };
    let spoken =
        mode("start_voice_session is not available in text mode.", "In text, answer in the chat without it.");
    expect!["That is not possible in a written conversation. I answer without it."]
        .assert_eq(&explanation("let's talk", spoken));
    let mut conversation = Conversation::spoken(&[built_in("voice"), text_tools()].concat());
    let written = "calendar_create_event is not available in voice mode.";
    conversation.user(BOOK).results(&[mode(written, "Offer to do this in the chat after the call.")]);
    expect!["That is not possible in a call. I can do this in the chat after the call."]
        .assert_eq(&conversation.said());
    expect!["That is not available here: only for people who have signed in. Nothing was done."].assert_eq(
        &explanation(BOOK, error("UNAVAILABLE", "Only for people who have signed in.", json!({}))),
    );
    let faults = json!({ "details": [{ "path": "/attendees/0", "keyword": "format", "message": "must match format \"email\"" }] });
    expect![[r#"That did not work: the attendees must match format "email". Nothing was done."#]]
        .assert_eq(&explanation(BOOK, error("VALIDATION", "The arguments are not valid.", faults)));
    expect!["That did not work: the start is in the past. Nothing was done."]
        .assert_eq(&explanation(BOOK, error("VALIDATION", "The start is in the past.", json!({}))));
    expect!["The base has no LinkedIn profile for Bo Ek."].assert_eq(&explanation(
        "find Bo Ek on LinkedIn",
        error(
            "NOT_FOUND",
            "The base has no LinkedIn profile for Bo Ek.",
            json!({ "suggestion": "Say that you do not have it; do not guess an address." }),
        ),
    ));
    expect!["A voice session is open already: please go on there."].assert_eq(&explanation(
        "let's talk",
        error("SESSION_ACTIVE", "A voice session is open.", json!({})),
    ));
}

#[test]
fn a_taken_time_comes_with_free_ones() {
    let free = json!([{ "start": "2026-11-16T15:00:00Z", "end": "2026-11-16T15:30:00Z" }, { "start": "2026-11-16T12:00:00Z", "end": "2026-11-16T12:30:00Z" }]);
    let taken = error(
        "CONFLICT",
        "The calendar is busy at that time.",
        json!({ "details": { "conflicts": [], "nearest_free": free } }),
    );
    expect!["The calendar is busy at that time. The nearest free times are Monday, 16 November 2026, 16:00–16:30; Monday, 16 November 2026, 13:00–13:30. Which one shall I take?"].assert_eq(&explanation(BOOK, taken));
    expect!["Another booking was faster. Nothing was done."]
        .assert_eq(&explanation(BOOK, error("CONFLICT", "Another booking was faster.", json!({}))));
}

#[test]
fn an_offered_time_is_taken_up() {
    let free = json!([{ "start": "2026-11-16T15:00:00Z", "end": "2026-11-16T15:30:00Z" }, { "start": "2026-11-16T12:00:00Z", "end": "2026-11-16T12:30:00Z" }]);
    let taken = error("CONFLICT", "Busy.", json!({ "details": { "conflicts": [], "nearest_free": free } }));
    let start = |answer: &str| {
        let mut conversation = Conversation::new();
        conversation.user(BOOK).results(std::slice::from_ref(&taken)).user(answer);
        conversation
            .called()
            .first()
            .map(|(_, arguments)| arguments["start_time"].as_str().unwrap_or_default().to_owned())
    };
    let (first, second) = ("2026-11-16T16:00:00+01:00", "2026-11-16T13:00:00+01:00");
    for (answer, expected) in [
        ("yes", Some(first)),
        ("the first one, please", Some(first)),
        ("the second", Some(second)),
        ("tomorrow at 13:00 is fine", Some(second)),
        ("no", None),
        ("Who built the Fram?", Some("")),
    ] {
        assert_eq!(start(answer).as_deref(), expected, "{answer}");
    }
}

#[test]
fn failures_are_described_with_what_is_known_about_them() {
    let later = json!({ "retryable": true, "retryAfterMs": 1500 });
    expect!["That did not work this time: the calendar does not answer. It may be tried again in 2 seconds."]
        .assert_eq(&explanation(BOOK, error("TRANSIENT", "The calendar does not answer.", later.clone())));
    expect!["That did not finish, and a part of it may have been done. Please check before you try again."]
        .assert_eq(&explanation(
            BOOK,
            error("TRANSIENT", "Timed out.", json!({ "retryable": true, "partialSideEffects": true })),
        ));
    expect!["That was asked for too often. It may be tried again in 2 seconds."]
        .assert_eq(&explanation(BOOK, error("RATE_LIMIT", "Too many.", later)));
    let unknown = json!({ "partialSideEffects": true, "details": { "outcome": "unknown" } });
    expect![
        "Something went wrong, and it is unknown whether it was done. Please check before you try again."
    ]
    .assert_eq(&explanation(BOOK, error("INTERNAL", "calendar_create_event failed.", unknown)));
    expect![
        "Something went wrong on our side. It has been noted, and nothing more can be said about it here."
    ]
    .assert_eq(&explanation(
        BOOK,
        error("INTERNAL", "kb_search failed.", json!({ "partialSideEffects": false })),
    ));
    expect!["I was not allowed to do that: the calendar's sign-in has run out. Sign in again first."]
        .assert_eq(&explanation(BOOK, error("AUTH", "The calendar's sign-in has run out.", json!({}))));
    expect!["That cannot be done: the calendar is closed."]
        .assert_eq(&explanation(BOOK, error("PERMANENT", "The calendar is closed.", json!({}))));
    expect!["That was stopped before it was done."]
        .assert_eq(&explanation(BOOK, error("CANCELLED", "Cancelled.", json!({}))));
}

#[test]
fn a_record_that_cannot_be_fetched_leaves_the_passage() {
    let mut conversation = Conversation::new();
    conversation.user("Who built the ship?").results(&[found(&["project:building-of-fram"])]);
    conversation.results(&[error("NOT_FOUND", "There is no record project:building-of-fram.", json!({}))]);
    conversation.check(expect![[r#"
        user: Who built the ship?
        calls: kb_search {"query":"Who built the ship?"}
        result: ok
        calls: kb_get {"id":"project:building-of-fram"}
        result: NOT_FOUND
        says: The Fram was designed and built by Colin Archer, whom Fridtjof Nansen had asked for a ship that the ice could not hold. [project:building-of-fram]
    "#]]);
}

#[test]
fn after_a_failed_block_the_reply_is_empty() {
    let mut conversation = Conversation::new();
    conversation.user("you idiot").user("you idiot").results(&[error(
        "SESSION_INACTIVE",
        "Over.",
        json!({}),
    )]);
    assert_eq!(conversation.said(), "");
}
