//! Looking and booking.

use std::sync::Arc;

use quarterdeck_calendar::{CalendarConfig, Calendars, ConfigError, LocalCalendar};
use quarterdeck_contracts::handler::CapabilityErrorCode;
use quarterdeck_contracts::{Calendar, NewEvent, Overlay, Store, answer_calendar};
use serde_json::{Value, json};

use crate::world::{Memory, Scope, calendar_in, lines, origin, query, ready, viewer};

/// The client who books.
const ANN: &str = "ann";

fn new_event(start: &str, end: &str) -> NewEvent {
    serde_json::from_value(json!({ "summary": "Review", "start": start, "end": end })).unwrap()
}

fn january() -> quarterdeck_contracts::EventQuery {
    query("2026-01-01T00:00:00Z", "2026-02-01T00:00:00Z")
}

#[test]
fn a_booking_is_there_at_once_for_its_own_call_and_for_others_after_the_commit() {
    let store = Arc::new(Memory::default());
    let calendar = calendar_in("UTC");
    let call = Arc::new(Overlay::new(store.clone()));
    let event = new_event("2026-01-13T10:00:00+01:00", "2026-01-13T10:30:00+01:00");
    let made = ready(calendar.create(event, origin(ANN), call.clone())).unwrap().event;
    assert_eq!((made.start.as_str(), made.end.as_str()), ("2026-01-13T09:00:00Z", "2026-01-13T09:30:00Z"));
    assert_eq!(ready(calendar.events(january(), call.clone())).unwrap(), vec![made.clone()]);

    let other = Arc::new(Overlay::new(store.clone()));
    assert_eq!(ready(calendar.events(january(), other.clone())).unwrap(), []);
    ready(store.commit(call.take())).unwrap();
    assert_eq!(ready(calendar.events(january(), other)).unwrap(), [made]);
}

#[test]
fn of_two_bookings_that_saw_the_same_free_hour_only_one_is_committed() {
    let store = Arc::new(Memory::default());
    let calendar = calendar_in("UTC");
    let calls = [(), ()].map(|()| {
        let call = Arc::new(Overlay::new(store.clone()));
        assert_eq!(ready(calendar.events(january(), call.clone())).unwrap(), []);
        ready(calendar.create(
            new_event("2026-01-13T09:00:00Z", "2026-01-13T10:00:00Z"),
            origin(ANN),
            call.clone(),
        ))
        .unwrap();
        call.take()
    });
    let results = calls.map(|commit| ready(store.commit(commit)).is_ok());
    assert_eq!(results, [true, false]);
}

#[test]
fn looking_alone_is_never_refused_at_the_commit() {
    let store = Arc::new(Memory::default());
    let call = Arc::new(Overlay::new(store));
    ready(calendar_in("UTC").events(january(), call.clone())).unwrap();
    assert_eq!(call.take(), quarterdeck_contracts::Commit::default());
}

#[test]
fn equal_bookings_are_two_events() {
    let overlay = Arc::new(Overlay::new(Arc::new(Memory::default())));
    let calendar = calendar_in("UTC");
    for _ in 0..2 {
        let event = new_event("2026-01-13T09:00:00Z", "2026-01-13T10:00:00Z");
        ready(calendar.create(event, origin(ANN), overlay.clone())).unwrap();
    }
    let events = ready(calendar.events(january(), overlay)).unwrap();
    assert_eq!(
        lines(&events),
        "2026-01-13T09:00:00Z 2026-01-13T10:00:00Z Review\n".repeat(2),
        "the same hour twice"
    );
    assert_ne!(events[0].id, events[1].id);
}

#[test]
fn what_makes_no_sense_is_refused_with_what_would() {
    let overlay = Arc::new(Overlay::new(Arc::new(Memory::default())));
    let calendar = calendar_in("UTC");
    let mut unknown = january();
    unknown.calendars.push("tema".into());
    let refused = ready(calendar.events(unknown, overlay.clone())).unwrap_err();
    assert_eq!(refused.code, CapabilityErrorCode::NotFound);
    assert_eq!(refused.message, "there is no calendar \"tema\"; there are primary, team, personal");

    let backwards = query("2026-02-01T00:00:00Z", "2026-01-01T00:00:00Z");
    let refused = ready(calendar.events(backwards, overlay.clone())).unwrap_err();
    assert_eq!(refused.code, CapabilityErrorCode::InvalidArgument);

    let event = new_event("2026-01-13T09:00:00Z", "2026-01-13T09:00:00Z");
    assert_eq!(
        ready(calendar.create(event, origin(ANN), overlay)).unwrap_err().code,
        CapabilityErrorCode::InvalidArgument
    );
}

#[test]
fn a_video_call_has_a_link_where_one_is_configured() {
    let config =
        CalendarConfig { conference_url: Some("https://meet.example/{id}".into()), ..Default::default() };
    let calendar = Calendars::local(config).unwrap();
    let mut event = new_event("2026-01-13T09:00:00Z", "2026-01-13T10:00:00Z");
    let book = |event: NewEvent| {
        let overlay = Arc::new(Overlay::new(Arc::new(Memory::default())));
        ready(calendar.create(event, origin(ANN), overlay)).unwrap().event.conference
    };
    assert_eq!(book(event.clone()), None);
    event.conference = true;
    let link = book(event).unwrap();
    assert!(link.starts_with("https://meet.example/") && link.len() == 21 + 32, "{link}");
}

#[test]
fn a_configuration_that_cannot_be_meant_is_refused() {
    let refuse = |config| LocalCalendar::from_config(config).err().unwrap();
    let default = CalendarConfig::default;
    assert_eq!(
        refuse(CalendarConfig { time_zone: "PST8".into(), ..default() }),
        ConfigError::TimeZone("PST8".into())
    );
    assert_eq!(refuse(CalendarConfig { calendars: vec![], ..default() }), ConfigError::NoCalendar);
    let name = "a/b".to_owned();
    assert_eq!(
        refuse(CalendarConfig { calendars: vec![name.clone()], ..default() }),
        ConfigError::Name(name)
    );
}

fn ask(overlay: &Arc<Overlay>, method: &str, args: &[Value]) -> Result<Value, String> {
    let (calendar, viewer, scope) = (calendar_in("UTC"), viewer(ANN), Scope::new(overlay, ANN));
    let answer = answer_calendar(&calendar, &viewer, &scope, method, args);
    ready(answer).map_err(|error| error.message)
}

#[test]
fn handlers_reach_it_by_the_methods_of_the_context() {
    let overlay = Arc::new(Overlay::new(Arc::new(Memory::default())));
    let event = json!({
        "summary": "Review", "start": "2026-01-13T09:00:00Z", "end": "2026-01-13T10:00:00Z",
        "attendees": ["ada@example.com"], "calendar": "team",
    });
    let mut made = ask(&overlay, "createEvent", &[event]).unwrap();
    made.as_object_mut().unwrap().remove("invitations");
    let window = json!({ "timeMin": "2026-01-01T00:00:00Z", "timeMax": "2026-02-01T00:00:00Z" });
    assert_eq!(ask(&overlay, "getEvents", std::slice::from_ref(&window)).unwrap(), json!([made]));

    let mut free_busy = window;
    free_busy["items"] = json!([{ "id": "team" }, { "id": "primary" }, { "id": "team" }]);
    assert_eq!(
        ask(&overlay, "getFreeBusy", &[free_busy]).unwrap(),
        json!({ "calendars": {
            "team": { "busy": [{ "start": "2026-01-13T09:00:00Z", "end": "2026-01-13T10:00:00Z" }] },
            "primary": { "busy": [] },
        } })
    );
}

#[test]
fn mistakes_in_a_calendar_call_have_their_own_messages() {
    let overlay = Arc::new(Overlay::new(Arc::new(Memory::default())));
    let message = |method, args: &[Value]| ask(&overlay, method, args).unwrap_err();
    assert_eq!(
        message("getEvnets", &[]),
        "calendar.getEvnets does not exist; there are getCalendars, getFreeBusy, getEvents, getEvent, createEvent, \
         moveEvent, cancelEvent"
    );
    assert_eq!(message("getEvents", &[]), "calendar.getEvents takes one object, not 0 arguments");
    assert_eq!(message("getEvents", &[json!(1)]), "calendar.getEvents takes an object");
    assert_eq!(message("getEvents", &[json!({})]), "calendar.getEvents: missing field `timeMin`");
    assert!(message("createEvent", &[json!({ "titel": "x" })]).contains("unknown field `titel`"));
}
