//! What is said when a call has succeeded.

use expect_test::expect;
use serde_json::{Value, json};

use crate::conversation::*;

/// The last thing that is said when a request's call comes to this.
fn description(request: &str, data: Value) -> String {
    let mut conversation = Conversation::new();
    conversation.user(request).results(&[ok(data)]);
    assert!(conversation.called().is_empty(), "it is done");
    conversation.said()
}

#[test]
fn a_booking_is_described_in_the_users_time_zone() {
    let booked = json!({
        "event_id": "5f1d@quarterdeck", "title": "Meeting about the budget", "start_time": "2026-11-16T14:00:00Z",
        "end_time": "2026-11-16T14:30:00Z", "attendees": ["anna@example.com"], "description": "", "calendar": "primary",
        "conference_link": "https://meet.example.com/5f1d",
    });
    let description =
        description("book a meeting tomorrow at 15:00 with anna@example.com about the budget", booked);
    expect!["“Meeting about the budget” is booked for Monday, 16 November 2026, 15:00–15:30 (Europe/Oslo), with anna@example.com. The video call is at https://meet.example.com/5f1d."].assert_eq(&description);
}

#[test]
fn free_time_is_described_in_the_users_time_zone() {
    let range = json!({ "start": "2026-11-20T08:00:00Z", "end": "2026-11-20T16:00:00Z" });
    let busy = json!({ "start": "2026-11-20T09:00:00Z", "end": "2026-11-20T10:00:00Z", "status": "busy", "calendar": "primary", "title": null, "attendees": null });
    let slot = |start: &str, end: &str| json!({ "start": start, "end": end, "duration_minutes": 60 });
    let some = json!({
        "date_range": range, "existing_events": [busy], "summary": "1 busy period, 2 available slots (420 minutes total)",
        "available_slots": [slot("2026-11-20T08:00:00Z", "2026-11-20T09:00:00Z"), slot("2026-11-20T10:00:00Z", "2026-11-20T16:00:00Z")],
    });
    expect!["Free: Friday, 20 November 2026, 09:00–10:00; Friday, 20 November 2026, 11:00–17:00 (Europe/Oslo time)."].assert_eq(&description("when is Anna free on Friday?", some));
    let none = json!({ "date_range": range, "existing_events": [busy], "available_slots": [], "summary": "1 busy period" });
    expect!["Nothing is free in that time (Friday, 20 November 2026, 09:00–17:00)."]
        .assert_eq(&description("is anyone free on Friday?", none));
    let all = json!({ "date_range": range, "existing_events": [], "available_slots": [slot("2026-11-20T08:00:00Z", "2026-11-20T16:00:00Z")], "summary": "" });
    expect!["Everything is free: Friday, 20 November 2026, 09:00–17:00 (Europe/Oslo time)."]
        .assert_eq(&description("is anyone free on Friday?", all));
}

#[test]
fn results_of_small_tools_are_described_in_a_sentence() {
    let formatted = json!({ "formatted": "1. März 2026", "iso": "2026-03-01T00:00:00+01:00", "timezone": "Europe/Oslo", "offset": "+01:00", "locale": "de", "style": "date" });
    expect!["It is written “1. März 2026” (de)."]
        .assert_eq(&description("how would 2026-03-01 be written in German?", formatted));
    let valid = json!({ "valid": true, "normalized": "ana@gmial.com", "local": "ana", "domain": "gmial.com", "reasons": [], "suggestion": "ana@gmail.com" });
    expect![
        "Yes, ana@gmial.com is well-formed. Did you mean ana@gmail.com? Whether it exists was not checked."
    ]
    .assert_eq(&description("is ana@gmial.com a valid email address?", valid));
    let invalid = json!({ "valid": false, "normalized": null, "local": null, "domain": null, "reasons": [{ "code": "domain_dot_missing", "message": "The domain has no dot." }] });
    expect!["No, ana@gmail is not valid. The domain has no dot."]
        .assert_eq(&description("validate ana@gmail", invalid));
    let contacts = json!({
        "emails": [{ "value": "ana@example.com", "text": "ana@example.com", "start": 5, "end": 20 }],
        "phones": [{ "value": "+4722334455", "international": "+47 22 33 44 55", "country": "NO", "text": "22334455", "start": 22, "end": 30 }],
        "urls": [],
    });
    expect!["I found 1 e-mail address (ana@example.com), 1 phone number (+47 22 33 44 55)."]
        .assert_eq(&description("extract the contacts: Ana, ana@example.com, 22334455", contacts));
    let nothing = json!({ "emails": [], "phones": [], "urls": [] });
    expect!["There is no e-mail address, phone number or link in that text."]
        .assert_eq(&description("extract the contacts: hello there", nothing));
    let profile = json!({ "id": "person:ingrid-berg", "name": "Ingrid Berg", "url": "https://www.linkedin.com/in/example-ingrid-berg" });
    expect!["Ingrid Berg: https://www.linkedin.com/in/example-ingrid-berg [person:ingrid-berg]"]
        .assert_eq(&description("find Ingrid Berg on LinkedIn", profile));
}

#[test]
fn a_voice_session_is_announced_without_its_id() {
    let started = json!({ "session_id": "5b0f7a8e-2f65-4a54-9f0e-0a4d8f3b1c77", "pending_request": "" });
    expect!["Let us talk: accept the call, and your browser will ask for the microphone."]
        .assert_eq(&description("let's talk", started));
}

#[test]
fn the_result_of_an_unknown_tool_is_described_by_its_fields() {
    let refunded = json!({ "orderId": "5521", "amount": 12.5, "final": true, "paid_at": "2026-11-15T08:00:00Z", "note": null, "sixth": 1 });
    let mut conversation = Conversation::with(&[crate::requests::refunds()]);
    conversation.user("please refund order 5521").results(&[ok(refunded)]);
    expect!["Done (refund order). order id: 5521; amount: 12.5; final: yes; paid at: Sunday, 15 November 2026, 09:00; note: none."].assert_eq(&conversation.said());
    let mut conversation = Conversation::with(&[crate::requests::refunds()]);
    conversation
        .user("please refund order 5521")
        .results(&[ok(json!({ "summary": "Order 5521 was refunded." }))]);
    assert_eq!(conversation.said(), "Order 5521 was refunded.");
    let mut conversation = Conversation::with(&[crate::requests::refunds()]);
    conversation.user("please refund order 5521").results(&[ok(Value::Null)]);
    assert_eq!(conversation.said(), "Done: refund order.");
}
