//! What has expired stays expired, whatever is done to the clock.

use std::time::Duration;

use quarterdeck_contracts::{Commit, ConfirmationAnswer, ErrorType, Mode, Scan, Table};
use quarterdeck_runtime::{Call, Client, ClientEvent, Clock, Connection, Reply, Session};
use serde_json::{Value, json};

use super::deck::{Deck, kind, one, take};

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
    panic!("no question was asked");
}

async fn approve(session: &Session, token: &str) -> Option<ErrorType> {
    kind(&take(session.resolve_confirmation(token, ConfirmationAnswer::Approve).await))
}

async fn rows(deck: &Deck) -> Vec<(String, Value)> {
    let rows = deck.store.scan(Table::Confirmations, Scan::prefix("", 10)).await.unwrap();
    rows.into_iter().map(|(key, row)| (key, row.value)).collect()
}

async fn status(deck: &Deck) -> Value {
    let mut rows = rows(deck).await;
    assert_eq!(rows.len(), 1);
    rows.remove(0).1["status"].clone()
}

async fn resumed(deck: &Deck, id: &str) -> Session {
    deck.orchestrator.resume(id, Client::anonymous("ann"), deck.snapshot.clone()).await.unwrap()
}

/// How a question may come to its end.
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
async fn an_expired_question_stays_expired_when_the_clock_is_set_back() {
    for end in [End::Timer, End::Look, End::Sweep] {
        for back in [Duration::from_secs(1), Duration::from_secs(299), HOUR, 24 * HOUR] {
            let deck = Deck::new();
            let (session, connection) = deck.open("ann", Mode::Text).await;
            let token = ask(&connection).await;
            let asked_at = deck.clock.now();
            deck.clock.advance(LIFETIME);
            match end {
                End::Timer => tokio::time::sleep(LIFETIME + Duration::from_secs(1)).await,
                End::Look => {
                    assert_eq!(approve(&session, &token).await, Some(ErrorType::ConfirmationExpired));
                }
                End::Sweep => drop(deck.orchestrator.sweep().await.unwrap()),
            }
            assert_eq!(status(&deck).await, "expired", "{end:?}");

            deck.clock.set(asked_at + LIFETIME - back);
            for _ in 0..2 {
                assert_eq!(
                    approve(&session, &token).await,
                    Some(ErrorType::ConfirmationExpired),
                    "{end:?} {back:?}"
                );
            }
            let after = deck.restarted();
            let session = resumed(&after, session.id()).await;
            assert_eq!(approve(&session, &token).await, Some(ErrorType::ConfirmationExpired));
            assert_eq!(status(&deck).await, "expired");
            assert_eq!(deck.outside.times("rent"), 0, "{end:?} {back:?}");
        }
    }
}

#[tokio::test(start_paused = true)]
async fn within_a_process_a_question_lapses_by_the_time_that_passes() {
    for back in [Duration::from_secs(10), HOUR] {
        let deck = Deck::new();
        let (session, connection) = deck.open("ann", Mode::Text).await;
        let token = ask(&connection).await;
        deck.clock.set(deck.clock.now() - back);
        deck.clock.advance(LIFETIME);
        assert_eq!(approve(&session, &token).await, Some(ErrorType::ConfirmationExpired), "{back:?}");
        assert_eq!(status(&deck).await, "expired");
    }
    // Before its time it can be answered, set back or not.
    let deck = Deck::new();
    let (session, connection) = deck.open("ann", Mode::Text).await;
    let token = ask(&connection).await;
    deck.clock.set(deck.clock.now() - HOUR);
    deck.clock.advance(LIFETIME - Duration::from_secs(1));
    assert_eq!(approve(&session, &token).await, None);
}

#[tokio::test(start_paused = true)]
async fn a_session_that_was_let_go_and_brought_back_gives_a_question_no_more_time() {
    let deck = Deck::new();
    let (session, connection) = deck.open("ann", Mode::Text).await;
    let (token, id) = (ask(&connection).await, session.id().to_owned());
    drop(connection);
    drop(session);
    deck.clock.set(deck.clock.now() - Duration::from_secs(200));
    deck.clock.advance(LIFETIME);
    let session = resumed(&deck, &id).await;
    assert_eq!(approve(&session, &token).await, Some(ErrorType::ConfirmationExpired));
}

#[tokio::test(start_paused = true)]
async fn after_a_restart_a_clock_that_was_set_back_gives_no_more_time_than_there_was() {
    for (back, is_open) in [
        (Duration::ZERO, true),
        // The clock stands before the question was asked, so nothing tells how old it is.
        (HOUR, false),
        (24 * 365 * HOUR, false),
    ] {
        let deck = Deck::new();
        let (session, connection) = deck.open("ann", Mode::Text).await;
        let token = ask(&connection).await;
        deck.clock.advance(Duration::from_secs(60));
        deck.clock.set(deck.clock.now() - back);
        let after = deck.restarted();
        let session = resumed(&after, session.id()).await;
        let expected = if is_open { None } else { Some(ErrorType::ConfirmationExpired) };
        assert_eq!(approve(&session, &token).await, expected, "{back:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn questions_of_an_earlier_version_still_open_and_never_for_longer_than_a_new_one() {
    for (ahead, passes, expected) in [
        (Duration::from_secs(200), Duration::from_secs(199), None),
        (Duration::from_secs(200), Duration::from_secs(200), Some(ErrorType::ConfirmationExpired)),
        // The clock was set back between the two processes.
        (HOUR, Duration::from_secs(299), None),
        (HOUR, LIFETIME, Some(ErrorType::ConfirmationExpired)),
    ] {
        let deck = Deck::new();
        let (session, connection) = deck.open("ann", Mode::Text).await;
        let token = ask(&connection).await;
        let (key, mut row) = rows(&deck).await.remove(0);
        row.as_object_mut().unwrap().remove("openedMs");
        let expires = deck.clock.now() + ahead;
        row["expiresMs"] = json!(expires.duration_since(std::time::UNIX_EPOCH).unwrap().as_millis() as u64);
        deck.store.commit(Commit::default().put(Table::Confirmations, key, row)).await.unwrap();
        let after = deck.restarted();
        let session = resumed(&after, session.id()).await;
        after.clock.advance(passes);
        assert_eq!(approve(&session, &token).await, expected, "{ahead:?} {passes:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn questions_of_sessions_that_do_not_come_back_are_closed_too() {
    let deck = Deck::new();
    let (_session, connection) = deck.open("ann", Mode::Text).await;
    ask(&connection).await;
    let after = deck.restarted();
    after.orchestrator.sweep().await.unwrap();
    assert_eq!(status(&deck).await, "open");
    after.clock.set(after.clock.now() - Duration::from_secs(1));
    after.clock.advance(LIFETIME);
    after.orchestrator.sweep().await.unwrap();
    assert_eq!(status(&deck).await, "expired");
}

#[tokio::test(start_paused = true)]
async fn a_clock_that_is_set_back_brings_no_block_back_and_makes_none_longer() {
    let deck = Deck::new();
    let (session, connection) = deck.open("ann", Mode::Text).await;
    assert_eq!(kind(&one(&connection, Call::new("block", json!({ "what": "x" }))).await), None);
    let blocked = async || {
        let client = Client::anonymous("ann");
        deck.orchestrator.resume(session.id(), client, deck.snapshot.clone()).await.is_err()
    };
    assert!(blocked().await);
    deck.clock.set(deck.clock.now() - HOUR);
    assert!(blocked().await, "it is not over yet");
    deck.clock.advance(Duration::from_secs(60));
    assert!(!blocked().await, "a minute has passed");
    deck.clock.set(deck.clock.now() - HOUR);
    assert!(!blocked().await, "it does not come back");
}

#[tokio::test(start_paused = true)]
async fn a_clock_that_is_set_back_keeps_no_slot_of_a_rate_limit() {
    let deck = Deck::new();
    let (session, connection) = deck.open("ann", Mode::Text).await;
    let rare = async |n: u32| {
        session.begin_turn(None);
        kind(&one(&connection, Call::new("rare", json!({ "what": format!("{n}") }))).await)
    };
    assert_eq!((rare(1).await, rare(2).await), (None, None));
    deck.clock.set(deck.clock.now() - HOUR);
    assert_eq!(rare(3).await, Some(ErrorType::RateLimit));
    deck.clock.advance(Duration::from_secs(60));
    assert_eq!(rare(4).await, None);
}
