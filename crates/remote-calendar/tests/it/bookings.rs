//! Booking, looking, moving and cancelling on a real server.

use std::sync::atomic::Ordering;

use quarterdeck_contracts::handler::CapabilityErrorCode;
use serde_json::json;

use crate::radicale::{Radicale, USER};
use crate::world::{Caller, calendars, config, starts};

const DAY: (&str, &str) = ("2026-01-13T00:00:00Z", "2026-01-14T00:00:00Z");

#[tokio::test]
async fn a_booking_is_on_the_server_and_belongs_to_its_client() {
    let Some(server) = Radicale::start().await else { return };
    let calendars = calendars(config(server.url(&format!("/{USER}/work/"))));
    let ann = Caller::new(&calendars, "client-ann", "1");
    let made = ann.book(10).await.unwrap();
    assert!(ann.reached_outside.load(Ordering::Relaxed), "the booking cannot be taken back");
    assert_eq!(made["start"], "2026-01-13T10:00:00Z");
    assert!(made["invitations"]["ics"].as_str().unwrap().contains("METHOD:REQUEST"), "{made}");

    let kept = server.objects().await;
    assert!(kept.contains("SUMMARY:Review") && kept.contains("ATTENDEE:mailto:ada@example.com"), "{kept}");
    assert!(kept.contains("X-QUARTERDECK-BOOKED-BY:client-ann"), "{kept}");

    let events = ann.events(DAY.0, DAY.1).await.unwrap();
    assert_eq!((events[0]["id"].clone(), events[0]["changeable"].clone()), (made["id"].clone(), json!(true)));
    let bob = Caller::new(&calendars, "client-bob", "2");
    let seen = bob.events(DAY.0, DAY.1).await.unwrap();
    assert_eq!((seen[0]["private"].clone(), seen[0]["summary"].clone()), (json!(true), json!("")));
    let refused = bob.ask("cancelEvent", json!({ "id": made["id"] })).await.unwrap_err();
    assert_eq!(refused.code, CapabilityErrorCode::NotFound);
}

#[tokio::test]
async fn time_that_another_program_took_is_a_conflict() {
    let Some(server) = Radicale::start().await else { return };
    let calendars = calendars(config(server.url(&format!("/{USER}/work/"))));
    let ann = Caller::new(&calendars, "ann", "1");
    assert_eq!(ann.events(DAY.0, DAY.1).await.unwrap().len(), 0);
    server
        .put("dentist", "BEGIN:VEVENT\r\nUID:dentist\r\nDTSTAMP:20260101T000000Z\r\nDTSTART:20260113T101500Z\r\nDURATION:PT1H\r\nSUMMARY:Dentist\r\nEND:VEVENT\r\n")
        .await;
    assert_eq!(ann.book(10).await.unwrap_err().code, CapabilityErrorCode::Conflict);
    assert!(ann.book(12).await.is_ok());
    assert_eq!(
        starts(&ann.events(DAY.0, DAY.1).await.unwrap()),
        ["2026-01-13T10:15:00Z", "2026-01-13T12:00:00Z"]
    );
}

#[tokio::test]
async fn the_same_call_books_once_however_often_it_is_made() {
    let Some(server) = Radicale::start().await else { return };
    let calendars = calendars(config(server.url(&format!("/{USER}/work/"))));
    let ann = Caller::new(&calendars, "ann", "1");
    let (first, second) = (ann.book(10).await.unwrap(), ann.book(10).await.unwrap());
    assert_eq!(first["id"], second["id"]);
    assert_eq!(ann.events(DAY.0, DAY.1).await.unwrap().len(), 1);
    let again = Caller::new(&calendars, "ann", "another call");
    assert_eq!(again.book(10).await.unwrap_err().code, CapabilityErrorCode::Conflict);
}

#[tokio::test]
async fn a_booking_is_moved_and_cancelled_by_its_id() {
    let Some(server) = Radicale::start().await else { return };
    let calendars = calendars(config(server.url(&format!("/{USER}/work/"))));
    let ann = Caller::new(&calendars, "ann", "1");
    let made = ann.book(10).await.unwrap();
    let to = |hour: u32| {
        json!({ "id": made["id"], "version": made["version"], "onlyIfFree": true,
                "start": format!("2026-01-13T{hour}:00:00Z"), "end": format!("2026-01-13T{hour}:45:00Z") })
    };
    let moved = ann.ask("moveEvent", to(14)).await.unwrap();
    assert_eq!(
        (moved["start"].clone(), moved["sequence"].clone()),
        (json!("2026-01-13T14:00:00Z"), json!(1))
    );
    assert_eq!(starts(&ann.events(DAY.0, DAY.1).await.unwrap()), ["2026-01-13T14:00:00Z"]);
    let kept = server.objects().await;
    assert!(
        kept.contains("DTEND:20260113T144500Z") && kept.contains("DESCRIPTION:Agenda\\, and more"),
        "{kept}"
    );

    // The version that was seen before the first move is not there any more.
    assert_eq!(ann.ask("moveEvent", to(16)).await.unwrap_err().code, CapabilityErrorCode::Conflict);
    let cancelled = ann.ask("cancelEvent", json!({ "id": made["id"], "version": moved["version"] })).await;
    assert_eq!(cancelled.unwrap()["summary"], "Review");
    assert_eq!(ann.events(DAY.0, DAY.1).await.unwrap().len(), 0);
    let gone = ann.ask("getEvent", json!({ "id": made["id"] })).await.unwrap_err();
    assert_eq!(gone.code, CapabilityErrorCode::NotFound);
}

#[tokio::test]
async fn an_event_that_another_program_changed_is_a_conflict() {
    let Some(server) = Radicale::start().await else { return };
    let calendars = calendars(config(server.url(&format!("/{USER}/work/"))));
    let ann = Caller::new(&calendars, "ann", "1");
    let made = ann.book(10).await.unwrap();
    let name = made["id"].as_str().unwrap().trim_end_matches("@quarterdeck").to_owned();
    let changed = format!(
        "BEGIN:VEVENT\r\nUID:{}\r\nDTSTAMP:20260101T000000Z\r\nDTSTART:20260113T103000Z\r\nDTEND:20260113T110000Z\r\nSUMMARY:Other\r\nX-QUARTERDECK-BOOKED-BY:ann\r\nEND:VEVENT\r\n",
        made["id"].as_str().unwrap()
    );
    server.put(&name, &changed).await;
    let cancel = json!({ "id": made["id"], "version": made["version"] });
    assert_eq!(ann.ask("cancelEvent", cancel).await.unwrap_err().code, CapabilityErrorCode::Conflict);
    assert!(server.objects().await.contains("SUMMARY:Other"));
}
