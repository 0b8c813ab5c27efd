//! What goes wrong on the way, and what comes of it.

use quarterdeck_contracts::handler::CapabilityErrorCode;
use quarterdeck_contracts::{Calendar, Cancellation, Event, EventRef, Reschedule, ToolError};

use super::server::{Failure, GoogleServer};
use super::world::{booking, calendar, origin, overlay, the_day};

const NINE: &str = "2026-01-13T09:00:00Z";
const TEN: &str = "2026-01-13T10:00:00Z";

#[tokio::test]
async fn a_token_that_expires_in_the_middle_is_replaced_and_the_booking_is_made_once() {
    let google = GoogleServer::start().await;
    let calendar = calendar(&google.url);
    calendar.events(the_day(), overlay()).await.unwrap();
    google.revoke_token();
    calendar.create(booking(NINE, TEN), origin("call-1"), overlay()).await.unwrap();
    assert_eq!(google.state().tokens.len(), 2);
    assert_eq!(google.confirmed().len(), 1);
}

#[tokio::test]
async fn a_token_that_is_refused_twice_is_an_auth_error() {
    let google = GoogleServer::start().await;
    google.fail("GET events", Failure::Status(401, "authError", None));
    google.fail("GET events", Failure::Status(401, "authError", None));
    let error = calendar(&google.url).events(the_day(), overlay()).await.unwrap_err();
    assert_eq!(error.code, CapabilityErrorCode::AuthError);
    assert_eq!(google.count("GET events"), 2);
}

#[tokio::test]
async fn rate_limits_reach_the_caller_with_their_time() {
    let google = GoogleServer::start().await;
    let calendar = calendar(&google.url);
    for (failure, retry_after_ms) in [
        (Failure::Status(429, "rateLimitExceeded", Some("7")), 7_000),
        (Failure::Status(403, "rateLimitExceeded", None), 10_000),
        (Failure::Status(403, "userRateLimitExceeded", Some("2")), 2_000),
    ] {
        google.fail("GET events", failure.clone());
        let error = calendar.events(the_day(), overlay()).await.unwrap_err();
        assert_eq!(error.code, CapabilityErrorCode::RateLimit, "{failure:?}");
        assert_eq!(ToolError::from(error).retry_after_ms, Some(retry_after_ms), "{failure:?}");
    }
    google.fail("POST events", Failure::Status(429, "rateLimitExceeded", Some("7")));
    let error = calendar.create(booking(NINE, TEN), origin("call-1"), overlay()).await.unwrap_err();
    assert_eq!(error.code, CapabilityErrorCode::RateLimit);
    assert!(google.confirmed().is_empty());
}

#[tokio::test]
async fn forbidden_is_an_auth_error_and_a_failing_service_is_transient() {
    let google = GoogleServer::start().await;
    let calendar = calendar(&google.url);
    for (failure, code) in [
        (Failure::Status(403, "forbidden", None), CapabilityErrorCode::AuthError),
        (Failure::Status(500, "backendError", None), CapabilityErrorCode::NotAvailable),
        (Failure::Status(503, "backendError", None), CapabilityErrorCode::NotAvailable),
        (Failure::CutBefore, CapabilityErrorCode::NotAvailable),
    ] {
        google.fail("GET events", failure.clone());
        let error = calendar.events(the_day(), overlay()).await.unwrap_err();
        assert_eq!(error.code, code, "{failure:?}");
    }
    let nowhere = super::world::calendar("http://127.0.0.1:1");
    let error = nowhere.events(the_day(), overlay()).await.unwrap_err();
    assert_eq!(error.code, CapabilityErrorCode::NotAvailable);
}

#[tokio::test]
async fn a_booking_whose_answer_is_lost_is_found_and_not_made_again() {
    let google = GoogleServer::start().await;
    let calendar = calendar(&google.url);
    for (call, failure) in [("cut", Failure::CutAfter), ("failed", Failure::FailAfter(503))] {
        google.fail("POST events", failure);
        let wanted = quarterdeck_contracts::NewEvent { only_if_free: false, ..booking(NINE, TEN) };
        let made = calendar.create(wanted, origin(call), overlay()).await.unwrap();
        assert_eq!(made.event.summary, "Review, 2nd round");
    }
    assert_eq!(google.count("POST events"), 2, "neither was sent twice");
    assert_eq!(google.confirmed().len(), 2);
}

#[tokio::test]
async fn a_booking_that_did_not_arrive_is_sent_again_under_the_same_id() {
    let google = GoogleServer::start().await;
    google.fail("POST events", Failure::CutBefore);
    calendar(&google.url).create(booking(NINE, TEN), origin("call-1"), overlay()).await.unwrap();
    assert_eq!(google.count("POST events"), 2);
    assert_eq!(google.confirmed().len(), 1);
}

#[tokio::test]
async fn a_service_that_fails_and_has_not_booked_is_transient() {
    let google = GoogleServer::start().await;
    google.fail("POST events", Failure::Status(503, "backendError", None));
    let error =
        calendar(&google.url).create(booking(NINE, TEN), origin("call-1"), overlay()).await.unwrap_err();
    assert_eq!(error.code, CapabilityErrorCode::NotAvailable);
    assert!(google.confirmed().is_empty());
}

/// The answer to the booking is lost, and the look at the calendar fails too.
fn lose(google: &GoogleServer) {
    google.fail("POST events", Failure::CutAfter);
    google.fail("GET event", Failure::CutBefore);
}

#[tokio::test]
async fn a_service_that_goes_in_the_middle_is_answered_as_unknown_and_the_booking_is_found_on_the_next_look()
{
    let google = GoogleServer::start().await;
    let calendar = calendar(&google.url);
    lose(&google);
    let error = calendar.create(booking(NINE, TEN), origin("call-1"), overlay()).await.unwrap_err();
    assert_eq!(error.code, CapabilityErrorCode::OutcomeUnknown);
    assert!(error.message.contains("look at the calendar"), "{}", error.message);

    let seen = calendar.events(the_day(), overlay()).await.unwrap();
    assert_eq!(seen.len(), 1);
    assert_eq!(seen[0].booked_by.as_deref(), Some("client-1"));

    // The same call again finds its own booking; another one finds the time taken.
    let again = calendar.create(booking(NINE, TEN), origin("call-1"), overlay()).await.unwrap();
    assert_eq!(again.event.id, seen[0].id);
    let other = calendar.create(booking(NINE, TEN), origin("call-2"), overlay()).await.unwrap_err();
    assert_eq!(other.code, CapabilityErrorCode::Conflict);
    assert_eq!(google.confirmed().len(), 1);
}

#[tokio::test]
async fn a_repeated_insert_of_one_call_is_one_booking() {
    let google = GoogleServer::start().await;
    let calendar = calendar(&google.url);
    let wanted = quarterdeck_contracts::NewEvent { only_if_free: false, ..booking(NINE, TEN) };
    let first = calendar.create(wanted.clone(), origin("call-1"), overlay()).await.unwrap();
    let second = calendar.create(wanted, origin("call-1"), overlay()).await.unwrap();
    assert_eq!(first, second);
    assert_eq!(google.count("POST events"), 2, "the second was refused as a duplicate");
    assert_eq!(google.confirmed().len(), 1);
}

async fn booked(google: &GoogleServer) -> Event {
    let calendar = calendar(&google.url);
    calendar.create(booking(NINE, TEN), origin("call-1"), overlay()).await.unwrap().event
}

fn to_noon(event: &Event) -> Reschedule {
    Reschedule {
        id: event.id.clone(),
        calendar: None,
        version: event.version.clone(),
        start: "2026-01-13T12:00:00Z".into(),
        end: "2026-01-13T13:00:00Z".into(),
        only_if_free: true,
    }
}

#[tokio::test]
async fn a_move_whose_answer_is_lost_is_seen_to_be_made() {
    for failure in [Failure::CutAfter, Failure::CutBefore, Failure::FailAfter(500)] {
        let google = GoogleServer::start().await;
        let event = booked(&google).await;
        google.fail("PATCH event", failure.clone());
        let moved =
            calendar(&google.url).reschedule(to_noon(&event), origin("call-2"), overlay()).await.unwrap();
        assert_eq!(moved.event.start, "2026-01-13T12:00:00Z", "{failure:?}");
        assert_eq!(google.confirmed()[0]["sequence"], 1, "moved once: {failure:?}");
    }
}

#[tokio::test]
async fn a_move_that_cannot_be_looked_at_is_unknown() {
    let google = GoogleServer::start().await;
    let event = booked(&google).await;
    let calendar = calendar(&google.url);
    google.fail("PATCH event", Failure::CutAfter);
    // The first look is before the change, the second after it.
    google.fail("GET event", Failure::Nothing);
    google.fail("GET event", Failure::CutBefore);
    let error = calendar.reschedule(to_noon(&event), origin("call-2"), overlay()).await.unwrap_err();
    assert_eq!(error.code, CapabilityErrorCode::OutcomeUnknown);
    let there = calendar.find(EventRef { id: event.id, calendar: None }, overlay()).await.unwrap();
    assert_eq!(there.start, "2026-01-13T12:00:00Z");
}

#[tokio::test]
async fn a_cancellation_whose_answer_is_lost_is_seen_to_be_made() {
    for failure in [Failure::CutAfter, Failure::CutBefore, Failure::FailAfter(502)] {
        let google = GoogleServer::start().await;
        let event = booked(&google).await;
        google.fail("DELETE event", failure.clone());
        let cancelled = Cancellation {
            id: event.id.clone(),
            calendar: None,
            version: event.version.clone(),
            notify: true,
        };
        let gone = calendar(&google.url).cancel(cancelled, origin("call-2"), overlay()).await.unwrap();
        assert_eq!(gone.event.id, event.id, "{failure:?}");
        assert!(google.confirmed().is_empty(), "{failure:?}");
    }
}
