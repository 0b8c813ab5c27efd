//! Plain requests, recognised by the tools' own guides.

use std::fmt::Write;

use expect_test::expect;
use serde_json::json;

use crate::conversation::*;

/// What each request comes to.
fn replies(tools: &[Folder], requests: &[&str]) -> String {
    let mut log = String::new();
    for request in requests {
        let mut conversation = Conversation::with(tools);
        conversation.user(request);
        let calls = conversation.called().into_iter().map(|(name, arguments)| format!("{name} {arguments}"));
        let reply: Vec<String> =
            std::iter::once(conversation.said()).chain(calls).filter(|it| !it.is_empty()).collect();
        let _ = writeln!(log, "{request}\n  {}", reply.join(" "));
    }
    log
}

#[test]
fn voice_is_started() {
    let requests = [
        "let's talk",
        "start voice",
        "Call me!",
        "can we talk on the phone?",
        "I'd rather speak with you",
        "let's talk about the hull",
        "switch to voice mode",
    ];
    expect![[r#"
        let's talk
          start_voice_session {}
        start voice
          start_voice_session {}
        Call me!
          start_voice_session {}
        can we talk on the phone?
          start_voice_session {}
        I'd rather speak with you
          start_voice_session {}
        let's talk about the hull
          kb_search {"query":"the hull"}
        switch to voice mode
          start_voice_session {}
    "#]]
    .assert_eq(&replies(&text_tools(), &requests));
}

#[test]
fn voice_takes_up_what_was_asked() {
    let mut conversation = Conversation::new();
    conversation
        .user("Who built the Fram?")
        .results(&[found(&["project:building-of-fram"])])
        .results(&[record("project:building-of-fram")]);
    conversation.user("let's talk");
    assert_eq!(
        conversation.called(),
        [(
            "start_voice_session".to_owned(),
            json!({ "pending_request": "Asked before: “Who built the Fram?”" })
        )]
    );
}

#[test]
fn meetings_are_booked() {
    let requests = [
        "book a meeting tomorrow at 15:00 with anna@example.com about the budget",
        "Book a meeting with anna@example.com tomorrow at 3pm for 45 minutes",
        "please arrange a call with bo@example.com on Monday from 10 to 11",
        "can you book a 45-minute review with a@b.org and c@d.org in two hours without a zoom link?",
        "schedule “Hull review” with anna@example.com next Friday at noon",
        "schedule a meeting with anna@example.com tomorrow at 9:00 New York time",
        "set up a call tomorrow 10am with bo@example.com, sue@example.com regarding the restoration plan",
    ];
    expect![[r#"
        book a meeting tomorrow at 15:00 with anna@example.com about the budget
          calendar_create_event {"title":"Meeting about the budget","start_time":"2026-11-16T15:00:00+01:00","end_time":"2026-11-16T15:30:00+01:00","attendees":["anna@example.com"]}
        Book a meeting with anna@example.com tomorrow at 3pm for 45 minutes
          calendar_create_event {"title":"Meeting with anna@example.com","start_time":"2026-11-16T15:00:00+01:00","end_time":"2026-11-16T15:45:00+01:00","attendees":["anna@example.com"]}
        please arrange a call with bo@example.com on Monday from 10 to 11
          calendar_create_event {"title":"Call with bo@example.com","start_time":"2026-11-16T10:00:00+01:00","end_time":"2026-11-16T11:00:00+01:00","attendees":["bo@example.com"]}
        can you book a 45-minute review with a@b.org and c@d.org in two hours without a zoom link?
          calendar_create_event {"title":"Review with a@b.org","start_time":"2026-11-15T11:10:00+01:00","end_time":"2026-11-15T11:55:00+01:00","attendees":["a@b.org","c@d.org"],"include_zoom_link":false}
        schedule “Hull review” with anna@example.com next Friday at noon
          calendar_create_event {"title":"Hull review","start_time":"2026-11-20T12:00:00+01:00","end_time":"2026-11-20T12:30:00+01:00","attendees":["anna@example.com"]}
        schedule a meeting with anna@example.com tomorrow at 9:00 New York time
          calendar_create_event {"title":"Meeting with anna@example.com","start_time":"2026-11-16T09:00:00-05:00","end_time":"2026-11-16T09:30:00-05:00","attendees":["anna@example.com"]}
        set up a call tomorrow 10am with bo@example.com, sue@example.com regarding the restoration plan
          calendar_create_event {"title":"Call about the restoration plan","start_time":"2026-11-16T10:00:00+01:00","end_time":"2026-11-16T10:30:00+01:00","attendees":["bo@example.com","sue@example.com"]}
    "#]].assert_eq(&replies(&text_tools(), &requests));
}

#[test]
fn what_is_missing_is_asked_for_and_then_used() {
    let mut conversation = Conversation::new();
    conversation.user("book a meeting with Anna about the budget");
    conversation.user("tomorrow at 15:00").user("anna@example.com");
    conversation.check(expect![[r#"
        user: book a meeting with Anna about the budget
        says: Please tell me the day, the time and the e-mail addresses of the people to invite.
        user: tomorrow at 15:00
        says: Please tell me the e-mail addresses of the people to invite.
        user: anna@example.com
        calls: calendar_create_event {"title":"Meeting about the budget","start_time":"2026-11-16T15:00:00+01:00","end_time":"2026-11-16T15:30:00+01:00","attendees":["anna@example.com"]}
    "#]]);
}

#[test]
fn an_open_question_is_dropped_for_another_subject() {
    let mut conversation = Conversation::new();
    conversation.user("book a meeting").user("Who built the Fram?");
    assert_eq!(conversation.called()[0].0, "kb_search");
    let mut conversation = Conversation::new();
    conversation.user("book a meeting").user("never mind").user("tomorrow at 15:00 with anna@example.com");
    assert_ne!(conversation.called().first().map(|call| call.0.as_str()), Some("calendar_create_event"));
    let mut conversation = Conversation::new();
    conversation.user("extract the contacts").user("Ana, ana@example.com");
    assert_eq!(conversation.called()[0].0, "extract_contacts");
    let mut conversation = Conversation::new();
    conversation.user("book a meeting").user("start voice");
    assert_eq!(conversation.called()[0].0, "start_voice_session");
}

#[test]
fn free_time_is_looked_up() {
    let requests = [
        "when is Anna free on Friday?",
        "is anyone free tomorrow afternoon?",
        "am I free next week?",
        "who is free?",
        "find a free slot of 60 minutes tomorrow",
        "is the team free on Thursday?",
        "are you available tomorrow from 10 to 12?",
    ];
    expect![[r#"
        when is Anna free on Friday?
          calendar_get_availability {"start_date":"2026-11-20T09:00:00+01:00","end_date":"2026-11-20T17:00:00+01:00"}
        is anyone free tomorrow afternoon?
          calendar_get_availability {"start_date":"2026-11-16T12:00:00+01:00","end_date":"2026-11-16T17:00:00+01:00"}
        am I free next week?
          calendar_get_availability {"start_date":"2026-11-16T09:00:00+01:00","end_date":"2026-11-20T17:00:00+01:00"}
        who is free?
          Please tell me the day.
        find a free slot of 60 minutes tomorrow
          calendar_get_availability {"start_date":"2026-11-16T09:00:00+01:00","end_date":"2026-11-16T17:00:00+01:00","min_duration_minutes":60}
        is the team free on Thursday?
          calendar_get_availability {"start_date":"2026-11-19T09:00:00+01:00","end_date":"2026-11-19T17:00:00+01:00","calendars":["team"]}
        are you available tomorrow from 10 to 12?
          calendar_get_availability {"start_date":"2026-11-16T10:00:00+01:00","end_date":"2026-11-16T12:00:00+01:00"}
    "#]].assert_eq(&replies(&text_tools(), &requests));
}

#[test]
fn dates_are_formatted() {
    let requests = [
        "how would 2026-03-01 be written in German?",
        "Write 2026-03-01T10:00:00Z for someone in Tokyo",
        "what is the format of 1 March 2026 in French?",
        "how long until 24 December?",
    ];
    expect![[r#"
        how would 2026-03-01 be written in German?
          format_datetime {"datetime":"2026-03-01T00:00:00+01:00","timezone":"Europe/Oslo","style":"date","locale":"de"}
        Write 2026-03-01T10:00:00Z for someone in Tokyo
          format_datetime {"datetime":"2026-03-01T11:00:00+01:00","timezone":"Asia/Tokyo","locale":"en-GB"}
        what is the format of 1 March 2026 in French?
          format_datetime {"datetime":"2026-03-01T00:00:00+01:00","timezone":"Europe/Oslo","style":"date","locale":"fr"}
        how long until 24 December?
          format_datetime {"datetime":"2026-12-24T00:00:00+01:00","timezone":"Europe/Oslo","style":"relative","locale":"en-GB"}
    "#]].assert_eq(&replies(&text_tools(), &requests));
}

#[test]
fn addresses_and_people_are_looked_at() {
    let requests = [
        "is anna@example.com a valid email address?",
        "check this e-mail: foo@bar",
        "is foo@@bar.com a correct e-mail address?",
        "extract contacts from this text: Ana Ruiz, ana@example.com, +47 22 33 44 55",
        "extract the contacts",
        "find Ingrid Berg on LinkedIn",
        "linkedin profile of ingrid berg",
        "What is Marit Eksempel’s LinkedIn?",
        "find someone on linkedin",
    ];
    expect![[r#"
        is anna@example.com a valid email address?
          validate_email {"email":"anna@example.com"}
        check this e-mail: foo@bar
          validate_email {"email":"foo@bar"}
        is foo@@bar.com a correct e-mail address?
          validate_email {"email":"foo@@bar.com"}
        extract contacts from this text: Ana Ruiz, ana@example.com, +47 22 33 44 55
          extract_contacts {"text":"Ana Ruiz, ana@example.com, +47 22 33 44 55"}
        extract the contacts
          Please tell me the text itself.
        find Ingrid Berg on LinkedIn
          linkedin_lookup {"name":"Ingrid Berg"}
        linkedin profile of ingrid berg
          linkedin_lookup {"name":"ingrid berg"}
        What is Marit Eksempel’s LinkedIn?
          linkedin_lookup {"name":"Marit Eksempel"}
        find someone on linkedin
          Please tell me the name (the person's name).
    "#]]
    .assert_eq(&replies(&text_tools(), &requests));
}

#[test]
fn a_question_never_acts() {
    for question in [
        "How do I book a meeting with anna@example.com?",
        "Who started a voice session?",
        "What does it mean to call me?",
        "What is the email address of Marit Eksempel?",
        "the e-mail address of Marit Eksempel",
        "look up Colin Archer",
        "search for ice",
        "What is the phone number of the museum?",
    ] {
        let mut conversation = Conversation::new();
        conversation.user(question);
        assert_eq!(conversation.called()[0].0, "kb_search", "{question}");
    }
}

/// A tool that is not built in.
pub(crate) fn refunds() -> Folder {
    let definition = json!({
        "toolId": "refund_order", "category": "action",
        "description": "Gives a customer their money back. Use it when someone wants an order refunded.",
        "parameters": { "type": "object", "additionalProperties": false, "required": ["order_id"], "properties": {
            "order_id": { "type": "string", "description": "The number of the order." },
            "reason": { "type": "string", "enum": ["damaged", "late", "other"], "default": "other" },
            "quantity": { "type": "integer" },
        } },
    });
    folder(
        &definition,
        "# Refund an order\n\nGives money back.\n\n## Examples\n\nA damaged parcel:\n\n```json\n{ \"order_id\": \"A-17\", \"reason\": \"damaged\" }\n```\n",
    )
}

fn weather() -> Folder {
    let definition = json!({
        "toolId": "get_weather", "category": "retrieval", "description": "Tells the weather of a city.",
        "parameters": { "type": "object", "additionalProperties": false, "required": ["city"], "properties": {
            "city": { "type": "string" }, "days": { "type": "integer", "default": 1 }, "day": { "type": "string", "format": "date" },
        } },
    });
    folder(
        &definition,
        "# Weather\n\nTells the weather.\n\n## Examples\n\n“Will it rain in Oslo?”:\n\n```json\n{ \"city\": \"Oslo\" }\n```\n",
    )
}

#[test]
fn tools_that_are_not_built_in_are_recognised() {
    let mut tools = text_tools();
    tools.extend([refunds(), weather()]);
    let requests = [
        "please refund order 5521",
        "refund order #A-99 because it was damaged",
        "refund quantity 2 of order 5521",
        "I want a refund for my order",
        "weather in Bergen tomorrow",
        "What is the weather in São Paulo?",
        "tell me the weather of New York",
        "what's the weather?",
        "will it rain in New York?",
    ];
    expect![[r#"
        please refund order 5521
          refund_order {"order_id":"5521"}
        refund order #A-99 because it was damaged
          refund_order {"order_id":"A-99","reason":"damaged"}
        refund quantity 2 of order 5521
          refund_order {"order_id":"5521","quantity":2}
        I want a refund for my order
          Please tell me the order id (the number of the order).
        weather in Bergen tomorrow
          get_weather {"city":"Bergen","day":"2026-11-16"}
        What is the weather in São Paulo?
          get_weather {"city":"São Paulo"}
        tell me the weather of New York
          get_weather {"city":"New York"}
        what's the weather?
          kb_search {"query":"what's the weather?"}
        will it rain in New York?
          kb_search {"query":"will it rain in New York?"}
    "#]]
    .assert_eq(&replies(&tools, &requests));
}

#[test]
fn a_guide_that_did_not_fit_is_asked_for_first() {
    let describe = folder(
        &json!({
            "toolId": "describe_tool", "category": "utility", "description": "Gives the guide of a tool.",
            "parameters": { "type": "object", "required": ["tool_id"], "properties": { "tool_id": { "type": "string" } } },
        }),
        "# Describe\n\nGives a guide.\n",
    );
    let tools = [text_tools(), vec![weather(), describe]].concat();
    let mut conversation = Conversation::with_summaries(&tools);
    conversation.user("what is the weather in Bergen?");
    conversation
        .results(&[ok(json!({ "tool_id": "get_weather", "guide": weather().guide }))])
        .results(&[ok(json!({ "summary": "It rains." }))]);
    conversation.user("and the weather in Paris?");
    conversation.check(expect![[r#"
        user: what is the weather in Bergen?
        calls: describe_tool {"tool_id":"get_weather"}
        result: ok
        calls: get_weather {"city":"Bergen"}
        result: ok
        says: It rains.
        user: and the weather in Paris?
        calls: get_weather {"city":"Paris"}
    "#]]);
}

#[test]
fn a_yes_to_nothing_is_taken_kindly() {
    let mut conversation = Conversation::new();
    conversation.user("yes");
    assert!(conversation.called().is_empty() && conversation.said().starts_with("All right."));
}

/// What the user's own list holds.
fn listed() -> serde_json::Value {
    let event = |id: &str, start: &str, end: &str, title: &str, who: &str| json!({ "event_id": id, "start": start, "end": end, "calendar": "primary", "title": title, "attendees": [who], "conference_link": null, "changeable": true });
    let taken = json!({ "event_id": null, "start": "2026-11-20T08:00:00Z", "end": "2026-11-20T09:00:00Z", "calendar": "primary", "title": null, "attendees": null, "conference_link": null, "changeable": false });
    ok(json!({ "total": 3, "summary": "3 events", "events": [
        event("a@q", "2026-11-20T11:00:00Z", "2026-11-20T11:45:00Z", "Lunch with eva@example.com", "eva@example.com"),
        taken,
        event("b@q", "2026-11-20T14:00:00Z", "2026-11-20T14:30:00Z", "Review about the hull", "per@example.com"),
    ] }))
}

#[test]
fn what_is_cancelled_or_moved_is_looked_up_first() {
    for request in [
        "cancel my lunch on Friday",
        "Cancel the meeting with Eva",
        "please delete my 15:00 appointment on Friday",
        "move the review to Monday at 11",
        "push my 3 pm meeting on Friday to 4 pm",
        "cancel my meeting on Friday",
        "cancel my dentist appointment",
    ] {
        let mut conversation = Conversation::new();
        conversation.user(request).results(&[listed()]);
        let expected = match request {
            "cancel my lunch on Friday" | "Cancel the meeting with Eva" => {
                r#"calendar_cancel_event {"event_id":"a@q"}"#
            }
            "please delete my 15:00 appointment on Friday" => r#"calendar_cancel_event {"event_id":"b@q"}"#,
            "move the review to Monday at 11" => {
                r#"calendar_move_event {"event_id":"b@q","start_time":"2026-11-16T11:00:00+01:00","end_time":"2026-11-16T11:30:00+01:00"}"#
            }
            "push my 3 pm meeting on Friday to 4 pm" => {
                r#"calendar_move_event {"event_id":"b@q","start_time":"2026-11-20T16:00:00+01:00","end_time":"2026-11-20T16:30:00+01:00"}"#
            }
            "cancel my meeting on Friday" => "Which one do you mean?",
            _ => "I find none that fits",
        };
        let calls: Vec<String> =
            conversation.called().iter().map(|(name, arguments)| format!("{name} {arguments}")).collect();
        let reply = if calls.is_empty() { conversation.said() } else { calls.join("; ") };
        assert!(reply.starts_with(expected), "{request}: {reply}");
    }
}

#[test]
fn one_of_several_is_chosen_in_the_next_message() {
    for (answer, id) in [("the second one", "b@q"), ("the lunch", "a@q"), ("the one at 15:00", "b@q")] {
        let mut conversation = Conversation::new();
        conversation.user("cancel my meeting on Friday").results(&[listed()]).user(answer);
        assert_eq!(
            conversation.called(),
            [("calendar_cancel_event".to_owned(), json!({ "event_id": id }))],
            "{answer}"
        );
    }
}

/// Nothing is started, booked or made because a word of it was said.
#[test]
fn no_request_falls_through_to_a_tool_that_was_not_meant() {
    let actions = [
        "start_voice_session",
        "calendar_create_event",
        "image_generate",
        "calendar_cancel_event",
        "calendar_move_event",
    ];
    for request in [
        "call Anna tomorrow",
        "order me a pizza",
        "book recommendations about ice",
        "book a table for two",
        "I missed a call",
        "can I talk to a human?",
        "translate “ship” into French",
        "cancel my subscription",
        "move the piano to Oslo",
        "make me a sandwich",
        "the picture on the wall is nice",
        "speak French",
    ] {
        let mut conversation = Conversation::new();
        conversation.user(request);
        let called = conversation.called();
        assert!(called.iter().all(|(name, _)| !actions.contains(&name.as_str())), "{request}: {called:?}");
    }
}

#[test]
fn a_word_of_an_earlier_message_is_no_title() {
    let mut conversation = Conversation::new();
    conversation
        .user("Who was Nansen?")
        .results(&[found(&["person:fridtjof-nansen"])])
        .results(&[record("person:fridtjof-nansen")]);
    conversation.user("book a meeting tomorrow at 9 with ann@example.com");
    assert_eq!(conversation.called()[0].1["title"], "Meeting with ann@example.com");
}

#[test]
fn times_elsewhere_are_left_to_the_tool() {
    let requests = [
        "What time is it in Tokyo?",
        "what time is it in new york",
        "What is 15:00 in New York?",
        "it's 4pm in Lisbon, what's that in Tokyo?",
        "When it is 9 am in London, what time is it in Sydney?",
        "What is 3pm Tokyo time for me?",
        "what time is it in Boston?",
    ];
    expect![[r#"
        What time is it in Tokyo?
          format_datetime {"datetime":"2026-11-15T09:10:00+01:00","timezone":"Asia/Tokyo"}
        what time is it in new york
          format_datetime {"datetime":"2026-11-15T09:10:00+01:00","timezone":"America/New_York"}
        What is 15:00 in New York?
          format_datetime {"datetime":"2026-11-15T15:00:00+01:00","timezone":"America/New_York"}
        it's 4pm in Lisbon, what's that in Tokyo?
          format_datetime {"datetime":"2026-11-15T16:00:00+00:00","timezone":"Asia/Tokyo"}
        When it is 9 am in London, what time is it in Sydney?
          format_datetime {"datetime":"2026-11-15T09:00:00+00:00","timezone":"Australia/Sydney"}
        What is 3pm Tokyo time for me?
          format_datetime {"datetime":"2026-11-15T15:00:00+09:00","timezone":"Europe/Oslo"}
        what time is it in Boston?
          I do not know which time zone that is. Please name a larger city of the zone, such as Tokyo or New York.
    "#]].assert_eq(&replies(&text_tools(), &requests));
}

#[test]
fn only_declared_tools_are_called() {
    let tools: Vec<Folder> = text_tools().into_iter().filter(|tool| tool.id.starts_with("kb_")).collect();
    for request in [
        "let's talk",
        "book a meeting tomorrow at 15:00 with a@b.org",
        "validate a@b.org",
        "Who built the Fram?",
    ] {
        let mut conversation = Conversation::with(&tools);
        conversation.user(request);
        assert!(conversation.called().iter().all(|(name, _)| name.starts_with("kb_")), "{request}");
    }
}

#[test]
fn a_call_is_hung_up_with_a_goodbye() {
    let mut conversation = Conversation::with(&built_in("voice"));
    conversation.user("Goodbye!");
    conversation.results(&[ok(
        json!({ "reason": "user_requested", "finalMessage": "Goodbye!", "textResponse": null }),
    )]);
    conversation.check(expect![[r#"
        user: Goodbye!
        says: Goodbye!
        calls: end_voice_session {"closing_message":"Goodbye!"}
        result: ok
        (says nothing)
    "#]]);
}

#[test]
fn a_call_is_begun_in_writing_and_ended_in_speech_whatever_is_declared() {
    let both = [built_in("voice"), text_tools()].concat();
    let first_call = |mut conversation: Conversation, text: &str| {
        conversation.user(text);
        conversation.called().first().map(|(name, _)| name.clone())
    };
    assert_eq!(
        first_call(Conversation::with(&both), "Let's talk by voice").as_deref(),
        Some("start_voice_session")
    );
    assert_eq!(
        first_call(Conversation::spoken(&both), "Please end the call").as_deref(),
        Some("end_voice_session")
    );
    assert_ne!(
        first_call(Conversation::spoken(&both), "Let's talk by voice").as_deref(),
        Some("start_voice_session")
    );
}
