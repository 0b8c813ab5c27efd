//! What a model puts in the wrong place, in the records that operators read.

use serde_json::{Value, json};

use super::Site;
use crate::serve::say;

const SECRET: &str = "planted-guest@example.com";

/// Arguments of a booking that hold an address where none belongs.
fn misplaced() -> Vec<Value> {
    let with = |more: Value| {
        let mut args = json!({ "title": "Readable tea", "start_time": "2090-01-01T10:00:00Z" });
        for (name, value) in more.as_object().into_iter().flatten() {
            args[name] = value.clone();
        }
        args
    };
    vec![
        with(json!({ "atendees": [SECRET] })),
        with(json!({ "Attendees": SECRET })),
        with(json!({ "guests": { "attendees": [SECRET] } })),
        with(json!({ "end_time": [SECRET] })),
        with(json!({ "include_zoom_link": SECRET })),
        with(json!({ SECRET: true })),
        with(json!({ "end_time": json!({ "attendees": [SECRET] }).to_string() })),
        json!([SECRET]),
        json!(json!({ "attendees": [SECRET] }).to_string()),
    ]
}

#[test]
fn a_value_under_a_wrong_name_is_in_no_record() {
    let mut script: Vec<Value> = Vec::new();
    for args in misplaced() {
        script.push(json!({ "calls": [{ "name": "calendar_create_event", "arguments": args }] }));
        script.push(json!({ "text": "No." }));
    }
    let site = Site::new(&json!(script));
    let server = site.serve(|command| {
        command.env("QUARTERDECK_LOGS__LEVEL", "trace");
    });
    let mut cookie = String::new();
    for _ in misplaced() {
        (cookie, _) = say(&server, &cookie, json!({ "id": "c", "message": "Book it" }));
    }
    let (_, _, deck) = server.ask("GET", "/api/deck/audit?limit=200", "", "");
    assert!(deck.contains("calendar_create_event"), "{deck}");
    server.signal("-TERM");
    let (_, log) = server.ended();
    let trail = std::fs::read_to_string(site.path("data/audit.jsonl")).unwrap();
    for (place, text) in [("trail", &trail), ("log", &log), ("deck", &deck)] {
        let line = text.lines().find(|line| line.contains(SECRET));
        assert_eq!(line, None, "{place}");
    }
    let calls = super::trail(&site.path("data"), "tool_execution");
    assert_eq!(calls.len(), misplaced().len());
    let readable = calls.iter().filter(|line| line["args"]["title"] == "Readable tea").count();
    assert_eq!(readable, misplaced().len() - 2, "what is declared stays readable: {trail}");
    assert!(trail.contains(r#""atendees":"[hidden]""#), "{trail}");
}
