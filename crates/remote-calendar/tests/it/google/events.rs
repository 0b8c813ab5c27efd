//! Reading and changing a Google calendar.

use quarterdeck_contracts::handler::CapabilityErrorCode;
use quarterdeck_contracts::{Calendar, Cancellation, Event, EventRef, NoticeStatus, Reschedule};
use quarterdeck_remote_calendar::{GoogleCalendar, GoogleConfig, GoogleConfigError, SendUpdates};
use serde_json::json;

use super::server::GoogleServer;
use super::world::{booking, calendar, clock, config, origin, overlay, the_day};

const NINE: &str = "2026-01-13T09:00:00Z";
const TEN: &str = "2026-01-13T10:00:00Z";

fn timed(id: &str, start: &str, end: &str) -> serde_json::Value {
    json!({ "id": id, "summary": id, "start": { "dateTime": start }, "end": { "dateTime": end } })
}

fn by_id(id: &str) -> EventRef {
    EventRef { id: id.into(), calendar: None }
}

#[tokio::test]
async fn a_booking_is_inserted_with_its_client_and_its_attendees_are_told() {
    let google = GoogleServer::start().await;
    let calendar = calendar(&google.url);
    let made = calendar
        .create(booking(NINE, "2026-01-13T11:00:00+01:00"), origin("call-1"), overlay())
        .await
        .unwrap();

    let request = google.last("POST events");
    assert_eq!(request.query("sendUpdates"), Some("all"));
    let sent = request.json();
    assert_eq!(sent["summary"], "Review, 2nd round");
    assert_eq!(sent["start"], json!({ "dateTime": NINE }));
    assert_eq!(sent["end"], json!({ "dateTime": TEN }));
    assert_eq!(sent["attendees"], json!([{ "email": "ada@example.com" }, { "email": "bob@example.org" }]));
    assert_eq!(sent["extendedProperties"], json!({ "private": { "quarterdeckClient": "client-1" } }));
    assert!(sent.get("conferenceData").is_none());

    assert_eq!(made.event.booked_by.as_deref(), Some("client-1"));
    assert_eq!((made.event.start.as_str(), made.event.end.as_str()), (NINE, TEN));
    assert_eq!(made.event.conference, None, "no link was configured, so none is promised");
    let told: Vec<_> =
        made.invitations.notified.iter().map(|told| (&*told.address, &*told.how, told.status)).collect();
    assert_eq!(
        told,
        [
            ("ada@example.com", "google_calendar", NoticeStatus::Sent),
            ("bob@example.org", "google_calendar", NoticeStatus::Sent)
        ]
    );
    let found = calendar.find(by_id(&made.event.id), overlay()).await.unwrap();
    assert_eq!(found, made.event);
}

#[tokio::test]
async fn without_updates_google_tells_no_attendee_and_the_answer_claims_none() {
    let google = GoogleServer::start().await;
    let quiet = GoogleConfig { send_updates: SendUpdates::None, ..config(&google.url) };
    let calendar = GoogleCalendar::new(&quiet, clock()).unwrap();
    let made = calendar.create(booking(NINE, TEN), origin("call-1"), overlay()).await.unwrap();
    assert_eq!(google.last("POST events").query("sendUpdates"), Some("none"));
    assert!(made.invitations.notified.is_empty());
    assert_eq!(calendar.list()[0].notifies_by, None);
}

#[tokio::test]
async fn time_that_is_taken_is_a_conflict_before_anything_is_inserted() {
    let google = GoogleServer::start().await;
    google.add(timed("other", "2026-01-13T09:30:00Z", "2026-01-13T11:00:00Z"));
    let calendar = calendar(&google.url);
    let error = calendar.create(booking(NINE, TEN), origin("call-1"), overlay()).await.unwrap_err();
    assert_eq!(error.code, CapabilityErrorCode::Conflict);
    assert_eq!(google.count("POST freeBusy"), 1);
    assert_eq!(google.count("POST events"), 0);
    // Where it does not matter, it is booked beside the other.
    let beside = quarterdeck_contracts::NewEvent { only_if_free: false, ..booking(NINE, TEN) };
    calendar.create(beside, origin("call-1"), overlay()).await.unwrap();
    assert_eq!(google.confirmed().len(), 2);
}

#[tokio::test]
async fn of_two_bookings_of_one_hour_at_one_time_only_one_is_made() {
    let google = GoogleServer::start().await;
    let calendar = calendar(&google.url);
    let (first, second) = tokio::join!(
        calendar.create(booking(NINE, TEN), origin("call-1"), overlay()),
        calendar.create(booking(NINE, TEN), origin("call-2"), overlay()),
    );
    assert_eq!([first.is_ok(), second.is_ok()].iter().filter(|made| **made).count(), 1);
    assert_eq!(google.confirmed().len(), 1);
}

#[tokio::test]
async fn occurrences_come_expanded_and_what_blocks_no_time_is_left_out() {
    let google = GoogleServer::start().await;
    let mut occurrence =
        timed("series_20260113T080000Z", "2026-01-13T09:00:00+01:00", "2026-01-13T09:30:00+01:00");
    occurrence["recurringEventId"] = json!("series");
    google.add(occurrence);
    google.add(json!({ "id": "day", "summary": "Day", "start": { "date": "2026-01-13" }, "end": { "date": "2026-01-14" } }));
    let mut free = timed("free", NINE, TEN);
    free["transparency"] = json!("transparent");
    google.add(free);
    let mut declined = timed("declined", NINE, TEN);
    declined["attendees"] =
        json!([{ "email": "me@example.com", "self": true, "responseStatus": "declined" }]);
    google.add(declined);
    let mut cancelled = timed("cancelled", NINE, TEN);
    cancelled["status"] = json!("cancelled");
    google.add(cancelled);
    let mut room = timed("room", NINE, TEN);
    room["attendees"] =
        json!([{ "email": "ada@example.com" }, { "email": "room@resource.example.com", "resource": true }]);
    google.add(room);

    let events = calendar(&google.url).events(the_day(), overlay()).await.unwrap();
    let seen: Vec<_> = events.iter().map(|event| (&*event.id, &*event.start, &*event.end)).collect();
    assert_eq!(
        seen,
        [
            // Whole days are meant in the configured zone.
            ("day", "2026-01-12T23:00:00Z", "2026-01-13T23:00:00Z"),
            ("series_20260113T080000Z", "2026-01-13T08:00:00Z", "2026-01-13T08:30:00Z"),
            ("room", NINE, TEN),
        ]
    );
    assert_eq!(events[2].attendees, ["ada@example.com"]);
    let request = google.last("GET events");
    assert_eq!(request.query("singleEvents"), Some("true"));
    assert_eq!(
        (request.query("timeMin"), request.query("timeMax")),
        (Some("2026-01-13T00:00:00Z"), Some("2026-01-14T00:00:00Z"))
    );
}

#[tokio::test]
async fn every_page_is_read_and_too_many_are_refused_rather_than_cut() {
    let google = GoogleServer::start().await;
    for hour in 0..10 {
        google.add(timed(
            &format!("e{hour}"),
            &format!("2026-01-13T1{hour}:00:00Z"),
            &format!("2026-01-13T1{hour}:30:00Z"),
        ));
    }
    google.state().page_size = Some(3);
    let calendar = calendar(&google.url);
    assert_eq!(calendar.events(the_day(), overlay()).await.unwrap().len(), 10);
    assert_eq!(google.count("GET events"), 4);
    google.state().page_size = Some(1);
    let error = calendar.events(the_day(), overlay()).await.unwrap_err();
    assert_eq!(error.code, CapabilityErrorCode::InvalidArgument);
}

async fn booked(calendar: &GoogleCalendar) -> Event {
    calendar.create(booking(NINE, TEN), origin("call-1"), overlay()).await.unwrap().event
}

fn to_eleven(event: &Event) -> Reschedule {
    Reschedule {
        id: event.id.clone(),
        calendar: Some("primary".into()),
        version: event.version.clone(),
        start: "2026-01-13T09:30:00Z".into(),
        end: "2026-01-13T10:30:00Z".into(),
        only_if_free: true,
    }
}

#[tokio::test]
async fn an_event_is_moved_by_its_version_and_is_not_in_its_own_way() {
    let google = GoogleServer::start().await;
    let calendar = calendar(&google.url);
    let event = booked(&calendar).await;
    let moved = calendar.reschedule(to_eleven(&event), origin("call-2"), overlay()).await.unwrap();
    assert_eq!(moved.event.start, "2026-01-13T09:30:00Z");
    assert_eq!(moved.event.sequence, 1);
    assert_eq!(moved.invitations.notified.len(), 2);
    let request = google.last("PATCH event");
    assert_eq!(request.header("if-match"), event.version.as_deref());
    assert_eq!(request.query("sendUpdates"), Some("all"));

    // The version that was seen is gone.
    let error = calendar.reschedule(to_eleven(&event), origin("call-3"), overlay()).await.unwrap_err();
    assert_eq!(error.code, CapabilityErrorCode::Conflict);
    assert!(error.message.contains("changed"), "{}", error.message);
}

#[tokio::test]
async fn an_event_is_not_moved_onto_another() {
    let google = GoogleServer::start().await;
    let calendar = calendar(&google.url);
    let event = booked(&calendar).await;
    google.add(timed("other", "2026-01-13T10:00:00Z", "2026-01-13T11:00:00Z"));
    let error = calendar.reschedule(to_eleven(&event), origin("call-2"), overlay()).await.unwrap_err();
    assert_eq!(error.code, CapabilityErrorCode::Conflict);
    assert_eq!(google.count("PATCH event"), 0);
}

#[tokio::test]
async fn a_whole_day_becomes_a_time_when_it_is_moved() {
    let google = GoogleServer::start().await;
    google.add(json!({ "id": "day", "summary": "Day", "start": { "date": "2026-01-13" }, "end": { "date": "2026-01-14" } }));
    let calendar = calendar(&google.url);
    let event = calendar.find(by_id("day"), overlay()).await.unwrap();
    calendar.reschedule(to_eleven(&event), origin("call-2"), overlay()).await.unwrap();
    assert_eq!(google.confirmed()[0]["start"], json!({ "dateTime": "2026-01-13T09:30:00Z" }));
}

fn cancellation(event: &Event, notify: bool) -> Cancellation {
    Cancellation {
        id: event.id.clone(),
        calendar: Some("primary".into()),
        version: event.version.clone(),
        notify,
    }
}

#[tokio::test]
async fn an_event_is_cancelled_by_its_version_and_attendees_are_told_if_wanted() {
    let google = GoogleServer::start().await;
    let calendar = calendar(&google.url);
    let event = booked(&calendar).await;
    let stale = Cancellation { version: Some("\"1\"".into()), ..cancellation(&event, true) };
    let error = calendar.cancel(stale, origin("call-2"), overlay()).await.unwrap_err();
    assert_eq!(error.code, CapabilityErrorCode::Conflict);

    let gone = calendar.cancel(cancellation(&event, false), origin("call-3"), overlay()).await.unwrap();
    assert_eq!(gone.event.summary, "Review, 2nd round");
    assert!(gone.invitations.notified.is_empty());
    let request = google.last("DELETE event");
    assert_eq!(
        (request.query("sendUpdates"), request.header("if-match")),
        (Some("none"), event.version.as_deref())
    );
    assert!(google.confirmed().is_empty());

    for missing in [event.id.as_str(), "none", "..", "a/b"] {
        let error = calendar.find(by_id(missing), overlay()).await.unwrap_err();
        assert_eq!(error.code, CapabilityErrorCode::NotFound, "{missing}");
    }
}

#[tokio::test]
async fn meet_links_come_from_google_also_when_it_takes_a_moment() {
    let google = GoogleServer::start().await;
    let with_meet = GoogleConfig { meet: true, ..config(&google.url) };
    let calendar = GoogleCalendar::new(&with_meet, clock()).unwrap();
    assert!(calendar.list()[0].has_conferences);
    let wanted = quarterdeck_contracts::NewEvent { conference: true, ..booking(NINE, TEN) };
    google.state().pending_links = 2;
    let made = calendar.create(wanted.clone(), origin("call-1"), overlay()).await.unwrap();
    assert_eq!(made.event.conference.as_deref(), Some("https://meet.google.com/abc-mnop-xyz"));
    let request = google.last("POST events");
    assert_eq!(request.query("conferenceDataVersion"), Some("1"));
    let asked = &request.json()["conferenceData"]["createRequest"];
    assert_eq!(asked["conferenceSolutionKey"]["type"], "hangoutsMeet");
    assert_eq!(asked["requestId"], made.event.id, "the same request for every attempt");

    // One that never comes is not promised.
    google.state().pending_links = 99;
    let later = quarterdeck_contracts::NewEvent { only_if_free: false, ..wanted };
    let made = calendar.create(later, origin("call-2"), overlay()).await.unwrap();
    assert_eq!(made.event.conference, None);
}

#[tokio::test]
async fn a_link_of_another_provider_is_kept_with_the_event() {
    let google = GoogleServer::start().await;
    let calendar = calendar(&google.url);
    let url = "https://zoom.us/j/123?pwd=x";
    let wanted = quarterdeck_contracts::NewEvent { conference_url: Some(url.into()), ..booking(NINE, TEN) };
    let made = calendar.create(wanted, origin("call-1"), overlay()).await.unwrap();
    assert_eq!(made.event.conference.as_deref(), Some(url));
    assert_eq!(google.last("POST events").json()["location"], url);
    assert_eq!(calendar.events(the_day(), overlay()).await.unwrap()[0].conference.as_deref(), Some(url));
}

#[tokio::test]
async fn a_calendar_that_is_not_shared_says_so() {
    let google = GoogleServer::start().await;
    let other =
        GoogleConfig { calendar_id: "unknown@group.calendar.google.com".into(), ..config(&google.url) };
    let calendar = GoogleCalendar::new(&other, clock()).unwrap();
    let error = calendar.create(booking(NINE, TEN), origin("call-1"), overlay()).await.unwrap_err();
    assert_eq!(error.code, CapabilityErrorCode::NotFound);
    assert!(error.message.contains("share"), "{}", error.message);
    let error = calendar.events(the_day(), overlay()).await.unwrap_err();
    assert_eq!(error.code, CapabilityErrorCode::NotFound);
}

#[test]
fn a_configuration_that_cannot_work_is_refused_with_a_remedy() {
    let base = config("http://127.0.0.1:9");
    let refused = |config: GoogleConfig| GoogleCalendar::new(&config, clock()).err().unwrap();
    let unencrypted = GoogleConfig { base_url: "http://calendar.example.com".into(), ..base.clone() };
    assert!(matches!(refused(unencrypted), GoogleConfigError::BaseUrl(_)));
    let nowhere = GoogleConfig { calendar_id: " ".into(), ..base.clone() };
    assert!(matches!(refused(nowhere), GoogleConfigError::CalendarId));
    let zone = GoogleConfig { time_zone: "Mars/Olympus".into(), ..base };
    assert!(refused(zone).to_string().contains("Europe/Berlin"));
}
