//! Who sees what of the calendars, through every method that handlers have.

use std::sync::Arc;

use quarterdeck_contracts::handler::{CapabilityError, CapabilityErrorCode};
use quarterdeck_contracts::{CalendarViewer, Overlay, Store, Table, answer_calendar};
use serde_json::{Value, json};

use crate::world::{Memory, Scope, calendar_in, ready, viewer};

const SECRETS: [&str; 5] = ["Dentist", "ada@example.com", "Layoffs", "room@fram", "example.com"];

/// What another client has booked, what was imported, and what is personal.
fn store() -> Arc<Memory> {
    let store = Arc::new(Memory::default());
    let overlay = Arc::new(Overlay::new(store.clone()));
    let booking = json!({ "summary": "Layoffs", "start": "2026-01-13T09:00:00Z", "end": "2026-01-13T10:00:00Z",
                          "attendees": ["ada@example.com"], "description": "Layoffs" });
    let (calendar, bob, scope) = (calendar_in("UTC"), viewer("bob"), Scope::new(&overlay, "bob"));
    ready(answer_calendar(&calendar, &bob, &scope, "createEvent", &[booking])).unwrap();
    for (calendar, hour) in [("primary", 11), ("personal", 13)] {
        let row = json!({ "uid": "room@fram", "calendar": calendar, "start": format!("2026-01-13T{hour}:00:00Z"),
                          "end": format!("2026-01-13T{hour}:30:00Z"), "summary": "Dentist",
                          "conference": "https://example.com/1" });
        overlay.put(Table::Calendar, format!("{calendar}/room@fram"), row);
    }
    ready(store.commit(overlay.take())).unwrap();
    store
}

fn ask(viewer: &CalendarViewer, method: &str, more: Value) -> Result<Value, CapabilityErrorCode> {
    let overlay = Arc::new(Overlay::new(store()));
    let mut query = json!({ "timeMin": "2026-01-13T00:00:00Z", "timeMax": "2026-01-14T00:00:00Z" });
    query.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    let scope = Scope::new(&overlay, &viewer.client_id);
    ready(answer_calendar(&calendar_in("UTC"), viewer, &scope, method, &[query])).map_err(|error| error.code)
}

#[test]
fn client_without_a_claim_learns_when_time_is_taken_and_nothing_else() {
    let items = json!({ "items": [{ "id": "primary" }, { "id": "team" }] });
    for (method, more) in
        [("getEvents", json!({})), ("getEvents", json!({ "calendars": ["primary"] })), ("getFreeBusy", items)]
    {
        let signed_in = CalendarViewer { may_use_personal: true, ..viewer("ann") };
        for viewer in [viewer("ann"), viewer(""), signed_in] {
            let shown = ask(&viewer, method, more.clone()).unwrap().to_string();
            assert!(shown.contains("2026-01-13T09:00:00Z"), "{shown}");
            let leaked: Vec<_> = SECRETS.iter().filter(|secret| shown.contains(**secret)).collect();
            assert!(leaked.is_empty(), "{method} {more}: {leaked:?} in {shown}");
        }
    }
}

#[test]
fn client_sees_the_details_of_its_own_bookings_and_one_with_the_claim_those_of_all() {
    let titles = |viewer: &CalendarViewer| {
        let events = ask(viewer, "getEvents", json!({})).unwrap();
        let titles =
            events.as_array().unwrap().iter().map(|event| event["summary"].as_str().unwrap().to_owned());
        titles.collect::<Vec<_>>()
    };
    assert_eq!(titles(&viewer("bob")), ["Layoffs", "", ""]);
    assert_eq!(titles(&viewer("ann")), ["", "", ""]);
    let claims = CalendarViewer { sees_details: true, ..viewer("ann") };
    assert_eq!(titles(&claims), ["Layoffs", "Dentist", "Dentist"]);
}

#[test]
fn personal_calendar_is_named_by_clients_who_have_signed_in_and_by_no_others() {
    let uses = |viewer: &CalendarViewer| {
        let booking = json!({ "summary": "x", "start": "2026-01-13T15:00:00Z", "end": "2026-01-13T16:00:00Z",
                              "calendar": "personal" });
        let overlay = Arc::new(Overlay::new(store()));
        let (calendar, booking) = (calendar_in("UTC"), [booking]);
        let scope = Scope::new(&overlay, &viewer.client_id);
        let book = answer_calendar(&calendar, viewer, &scope, "createEvent", &booking);
        [
            ask(viewer, "getEvents", json!({ "calendars": ["primary", "personal"] })).err(),
            ask(viewer, "getFreeBusy", json!({ "items": [{ "id": "personal" }] })).err(),
            ready(book).map_err(|error| error.code).err(),
        ]
    };
    assert_eq!(uses(&viewer("ann")), [Some(CapabilityErrorCode::AuthError); 3]);
    assert_eq!(uses(&CalendarViewer { may_use_personal: true, ..viewer("ann") }), [None; 3]);
}

#[test]
fn client_changes_its_own_bookings_and_one_with_the_claim_those_of_all() {
    let change = |viewer: &CalendarViewer, id: &str| {
        let overlay = Arc::new(Overlay::new(store()));
        let scope = Scope::new(&overlay, &viewer.client_id);
        let calendar = calendar_in("UTC");
        let to = json!({ "id": id, "start": "2026-01-13T18:00:00Z", "end": "2026-01-13T19:00:00Z" });
        let moved = ready(answer_calendar(&calendar, viewer, &scope, "moveEvent", &[to]));
        let cancelled =
            ready(answer_calendar(&calendar, viewer, &scope, "cancelEvent", &[json!({ "id": id })]));
        let code = |result: Result<Value, CapabilityError>| result.err().map(|error| error.code);
        [code(moved), code(cancelled)]
    };
    let bobs = ask(&viewer("bob"), "getEvents", json!({})).unwrap()[0]["id"].as_str().unwrap().to_owned();
    assert_eq!(change(&viewer("bob"), &bobs), [None; 2]);
    let (hidden, seen) = (Some(CapabilityErrorCode::NotFound), Some(CapabilityErrorCode::AuthError));
    assert_eq!(change(&viewer("ann"), &bobs), [hidden; 2]);
    assert_eq!(change(&viewer("ann"), "none@such"), [hidden; 2], "an id cannot be tried out");
    assert_eq!(change(&CalendarViewer { sees_details: true, ..viewer("ann") }, &bobs), [seen; 2]);
    let manager = CalendarViewer { may_manage: true, ..viewer("ann") };
    assert_eq!(change(&manager, &bobs), [None; 2]);
    assert_eq!(change(&manager, "room@fram"), [None; 2]);
}
