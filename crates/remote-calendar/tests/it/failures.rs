//! A server that goes away.

use quarterdeck_contracts::handler::CapabilityErrorCode;
use quarterdeck_contracts::{ErrorType, ToolError};
use serde_json::json;

use crate::proxy::{DOWN, LOSE_ANSWER, LOSE_REQUEST, Proxy, UP};
use crate::radicale::{Radicale, USER};
use crate::world::{Caller, calendars, config, starts};

const DAY: (&str, &str) = ("2026-01-13T00:00:00Z", "2026-01-14T00:00:00Z");

#[tokio::test]
async fn a_booking_whose_answer_is_lost_is_unknown_then_found_and_never_doubled() {
    let Some(server) = Radicale::start().await else { return };
    let proxy = Proxy::before(server.port()).await;
    let calendars = calendars(config(proxy.url(&format!("/{USER}/work/"))));
    let ann = Caller::new(&calendars, "ann", "1");
    assert_eq!(ann.events(DAY.0, DAY.1).await.unwrap().len(), 0);

    proxy.set(LOSE_ANSWER);
    let lost = ann.book(10).await.unwrap_err();
    assert_eq!(lost.code, CapabilityErrorCode::OutcomeUnknown, "{lost}");
    let answer = ToolError::from(lost);
    assert_eq!(answer.details.unwrap()["outcome"], "unknown");
    assert_eq!((answer.retryable, answer.partial_side_effects), (false, Some(true)));

    proxy.set(UP);
    let found = ann.events(DAY.0, DAY.1).await.unwrap();
    assert_eq!(starts(&found), ["2026-01-13T10:00:00Z"]);
    assert_eq!(found[0]["changeable"], true, "the client knows its booking again");
    // The same call again finds what it has done, and another one finds the time taken.
    assert_eq!(ann.book(10).await.unwrap()["id"], found[0]["id"]);
    let again = Caller::new(&calendars, "ann", "2").book(10).await.unwrap_err();
    assert_eq!(again.code, CapabilityErrorCode::Conflict);
    assert_eq!(server.objects().await.matches("BEGIN:VEVENT").count(), 1);
}

#[tokio::test]
async fn a_booking_that_never_arrived_is_unknown_too_and_can_be_made_again() {
    let Some(server) = Radicale::start().await else { return };
    let proxy = Proxy::before(server.port()).await;
    let ann = Caller::new(&calendars(config(proxy.url(&format!("/{USER}/work/")))), "ann", "1");
    ann.events(DAY.0, DAY.1).await.unwrap();
    proxy.set(LOSE_REQUEST);
    assert_eq!(ann.book(10).await.unwrap_err().code, CapabilityErrorCode::OutcomeUnknown);
    proxy.set(UP);
    assert_eq!(ann.events(DAY.0, DAY.1).await.unwrap().len(), 0);
    ann.book(10).await.unwrap();
    assert_eq!(server.objects().await.matches("BEGIN:VEVENT").count(), 1);
}

#[tokio::test]
async fn a_cancellation_whose_answer_is_lost_is_unknown_and_then_seen() {
    let Some(server) = Radicale::start().await else { return };
    let proxy = Proxy::before(server.port()).await;
    let ann = Caller::new(&calendars(config(proxy.url(&format!("/{USER}/work/")))), "ann", "1");
    let made = ann.book(10).await.unwrap();
    proxy.set(LOSE_ANSWER);
    let lost = ann.ask("cancelEvent", json!({ "id": made["id"] })).await.unwrap_err();
    assert_eq!(lost.code, CapabilityErrorCode::OutcomeUnknown);
    proxy.set(UP);
    assert_eq!(ann.events(DAY.0, DAY.1).await.unwrap().len(), 0);
}

#[tokio::test]
async fn a_server_that_is_away_changes_nothing_and_may_be_asked_again() {
    let Some(server) = Radicale::start().await else { return };
    let proxy = Proxy::before(server.port()).await;
    let ann = Caller::new(&calendars(config(proxy.url(&format!("/{USER}/work/")))), "ann", "1");
    proxy.set(DOWN);
    let failed = ann.events(DAY.0, DAY.1).await.unwrap_err();
    assert!(
        matches!(failed.code, CapabilityErrorCode::Timeout | CapabilityErrorCode::NotAvailable),
        "{failed}"
    );
    let answer = ToolError::from(failed);
    assert_eq!((answer.kind, answer.retryable), (ErrorType::Transient, true));
    proxy.set(UP);
    assert_eq!(ann.events(DAY.0, DAY.1).await.unwrap().len(), 0);
}
