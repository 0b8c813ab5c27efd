//! What has expired stays expired, whatever is done to the clock.

use std::time::Duration;

use quarterdeck_contracts::{Commit, ConfirmationAnswer, ErrorType, Mode, Scan, Table};
use quarterdeck_runtime::{Call, Client, ClientEvent, Clock, Connection, Reply, Session};
use serde_json::{Value, json};

use super::fixture::{Fixture, error_kind, receive, submit_one};

const LIFETIME: Duration = Duration::from_secs(300);
const HOUR: Duration = Duration::from_secs(3_600);

async fn ask(connection: &Connection) -> String {
    let call = Call::new("pay", json!({ "what": "rent" })).with_id("call_pay_01");
    let replies = connection.submit(vec![call]).all().await;
    assert!(matches!(replies[0], Reply::AwaitingConfirmation { .. }));
    while let Some(event) = connection.try_next_event() {
        if let ClientEvent::Confirmation { request, .. } = event {
            return request.token.unwrap().expose().to_owned();
        }
    }
    panic!("no confirmation was requested");
}

async fn approve(session: &Session, token: &str) -> Option<ErrorType> {
    error_kind(&receive(session.resolve_confirmation(token, ConfirmationAnswer::Approve).await))
}

async fn rows(fixture: &Fixture) -> Vec<(String, Value)> {
    let rows = fixture.store.scan(Table::Confirmations, Scan::prefix("", 10)).await.unwrap();
    rows.into_iter().map(|(key, row)| (key, row.value)).collect()
}

async fn status(fixture: &Fixture) -> Value {
    let mut rows = rows(fixture).await;
    assert_eq!(rows.len(), 1);
    rows.remove(0).1["status"].clone()
}

async fn resumed(fixture: &Fixture, id: &str) -> Session {
    fixture.orchestrator.resume(id, Client::anonymous("ann"), fixture.snapshot.clone()).await.unwrap()
}

/// How a confirmation may come to its end.
#[derive(Debug, Clone, Copy)]
enum End {
    /// By the timer of its call.
    Timer,
    /// The user answers too late.
    Look,
    /// The orchestrator tidies up.
    Sweep,
}

#[tokio::test(start_paused = true)]
async fn an_expired_confirmation_stays_expired_when_the_clock_is_set_back() {
    for end in [End::Timer, End::Look, End::Sweep] {
        for back in [Duration::from_secs(1), Duration::from_secs(299), HOUR, 24 * HOUR] {
            let fixture = Fixture::new();
            let (session, connection) = fixture.open("ann", Mode::Text).await;
            let token = ask(&connection).await;
            let asked_at = fixture.clock.now();
            fixture.clock.advance(LIFETIME);
            match end {
                End::Timer => tokio::time::sleep(LIFETIME + Duration::from_secs(1)).await,
                End::Look => {
                    assert_eq!(approve(&session, &token).await, Some(ErrorType::ConfirmationExpired));
                }
                End::Sweep => drop(fixture.orchestrator.sweep().await.unwrap()),
            }
            assert_eq!(status(&fixture).await, "expired", "{end:?}");

            fixture.clock.set(asked_at + LIFETIME - back);
            for _ in 0..2 {
                assert_eq!(
                    approve(&session, &token).await,
                    Some(ErrorType::ConfirmationExpired),
                    "{end:?} {back:?}"
                );
            }
            let after = fixture.restarted();
            let session = resumed(&after, session.id()).await;
            assert_eq!(approve(&session, &token).await, Some(ErrorType::ConfirmationExpired));
            assert_eq!(status(&fixture).await, "expired");
            assert_eq!(fixture.effects.times("rent"), 0, "{end:?} {back:?}");
        }
    }
}

#[tokio::test(start_paused = true)]
async fn within_a_process_a_confirmation_expires_by_the_time_that_passes() {
    for back in [Duration::from_secs(10), HOUR] {
        let fixture = Fixture::new();
        let (session, connection) = fixture.open("ann", Mode::Text).await;
        let token = ask(&connection).await;
        fixture.clock.set(fixture.clock.now() - back);
        fixture.clock.advance(LIFETIME);
        assert_eq!(approve(&session, &token).await, Some(ErrorType::ConfirmationExpired), "{back:?}");
        assert_eq!(status(&fixture).await, "expired");
    }
    // Before its time it can be answered, set back or not.
    let fixture = Fixture::new();
    let (session, connection) = fixture.open("ann", Mode::Text).await;
    let token = ask(&connection).await;
    fixture.clock.set(fixture.clock.now() - HOUR);
    fixture.clock.advance(LIFETIME - Duration::from_secs(1));
    assert_eq!(approve(&session, &token).await, None);
}

#[tokio::test(start_paused = true)]
async fn a_session_that_was_dropped_and_resumed_gives_a_confirmation_no_more_time() {
    let fixture = Fixture::new();
    let (session, connection) = fixture.open("ann", Mode::Text).await;
    let (token, id) = (ask(&connection).await, session.id().to_owned());
    drop(connection);
    drop(session);
    fixture.clock.set(fixture.clock.now() - Duration::from_secs(200));
    fixture.clock.advance(LIFETIME);
    let session = resumed(&fixture, &id).await;
    assert_eq!(approve(&session, &token).await, Some(ErrorType::ConfirmationExpired));
}

#[tokio::test(start_paused = true)]
async fn after_a_restart_a_clock_that_was_set_back_gives_no_more_time_than_there_was() {
    for (back, is_open) in [
        (Duration::ZERO, true),
        // The clock stands before the request, so nothing tells how old it is.
        (HOUR, false),
        (24 * 365 * HOUR, false),
    ] {
        let fixture = Fixture::new();
        let (session, connection) = fixture.open("ann", Mode::Text).await;
        let token = ask(&connection).await;
        fixture.clock.advance(Duration::from_secs(60));
        fixture.clock.set(fixture.clock.now() - back);
        let after = fixture.restarted();
        let session = resumed(&after, session.id()).await;
        let expected = if is_open { None } else { Some(ErrorType::ConfirmationExpired) };
        assert_eq!(approve(&session, &token).await, expected, "{back:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn confirmations_of_an_earlier_version_stay_open_and_never_for_longer_than_a_new_one() {
    for (ahead, passes, expected) in [
        (Duration::from_secs(200), Duration::from_secs(199), None),
        (Duration::from_secs(200), Duration::from_secs(200), Some(ErrorType::ConfirmationExpired)),
        // The clock was set back between the two processes.
        (HOUR, Duration::from_secs(299), None),
        (HOUR, LIFETIME, Some(ErrorType::ConfirmationExpired)),
    ] {
        let fixture = Fixture::new();
        let (session, connection) = fixture.open("ann", Mode::Text).await;
        let token = ask(&connection).await;
        let (key, mut row) = rows(&fixture).await.remove(0);
        row.as_object_mut().unwrap().remove("openedMs");
        let expires = fixture.clock.now() + ahead;
        row["expiresMs"] = json!(expires.duration_since(std::time::UNIX_EPOCH).unwrap().as_millis() as u64);
        fixture.store.commit(Commit::default().put(Table::Confirmations, key, row)).await.unwrap();
        let after = fixture.restarted();
        let session = resumed(&after, session.id()).await;
        after.clock.advance(passes);
        assert_eq!(approve(&session, &token).await, expected, "{ahead:?} {passes:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn confirmations_of_sessions_that_are_not_resumed_expire_too() {
    let fixture = Fixture::new();
    let (_session, connection) = fixture.open("ann", Mode::Text).await;
    ask(&connection).await;
    let after = fixture.restarted();
    after.orchestrator.sweep().await.unwrap();
    assert_eq!(status(&fixture).await, "open");
    after.clock.set(after.clock.now() - Duration::from_secs(1));
    after.clock.advance(LIFETIME);
    after.orchestrator.sweep().await.unwrap();
    assert_eq!(status(&fixture).await, "expired");
}

#[tokio::test(start_paused = true)]
async fn a_clock_that_is_set_back_brings_no_block_back_and_makes_none_longer() {
    let fixture = Fixture::new();
    let (session, connection) = fixture.open("ann", Mode::Text).await;
    assert_eq!(error_kind(&submit_one(&connection, Call::new("block", json!({ "what": "x" }))).await), None);
    let blocked = async || {
        let client = Client::anonymous("ann");
        fixture.orchestrator.resume(session.id(), client, fixture.snapshot.clone()).await.is_err()
    };
    assert!(blocked().await);
    fixture.clock.set(fixture.clock.now() - HOUR);
    assert!(blocked().await, "it is not over yet");
    fixture.clock.advance(Duration::from_secs(60));
    assert!(!blocked().await, "a minute has passed");
    fixture.clock.set(fixture.clock.now() - HOUR);
    assert!(!blocked().await, "it does not come back");
}

#[tokio::test(start_paused = true)]
async fn a_clock_that_is_set_back_keeps_no_slot_of_a_rate_limit() {
    let fixture = Fixture::new();
    let (session, connection) = fixture.open("ann", Mode::Text).await;
    let rare = async |n: u32| {
        session.begin_turn(None);
        error_kind(&submit_one(&connection, Call::new("rare", json!({ "what": format!("{n}") }))).await)
    };
    assert_eq!((rare(1).await, rare(2).await), (None, None));
    fixture.clock.set(fixture.clock.now() - HOUR);
    assert_eq!(rare(3).await, Some(ErrorType::RateLimit));
    if fixture.store.is_shared() {
        // A database counts by its own clock, which no test moves.
        return;
    }
    fixture.clock.advance(Duration::from_secs(60));
    assert_eq!(rare(4).await, None);
}
