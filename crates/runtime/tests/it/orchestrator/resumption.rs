//! How sessions come back, are left, and end by themselves.

use std::sync::Arc;
use std::time::Duration;

use quarterdeck_contracts::Mode;
use quarterdeck_runtime::{Call, Client, ClientEvent, Orchestrator, Session, SessionError, list_sessions};
use serde_json::json;

use super::fixture::{Fixture, submit_one};
use super::slow_store::SlowStore;

fn call(tool: &str, what: &str) -> Call {
    Call::new(tool, json!({ "what": what }))
}

async fn resume(
    fixture: &Fixture,
    orchestrator: &Orchestrator,
    id: &str,
    who: &str,
) -> Result<Session, SessionError> {
    orchestrator.resume(id, Client::anonymous(who), fixture.snapshot.clone()).await
}

#[tokio::test(start_paused = true)]
async fn a_session_that_two_clients_resume_at_once_is_one_session() {
    let fixture = Fixture::on(Arc::new(SlowStore::default()), Arc::default());
    let (session, connection) = fixture.open("ann", Mode::Text).await;
    let book = || call("book", "room").with_id("call_000001");
    submit_one(&connection, book()).await;
    tokio::time::sleep(Duration::from_secs(1)).await;
    let after = fixture.restarted();
    let (one_tab, other_tab) =
        tokio::join!(resume(&fixture, &after.orchestrator, session.id(), "ann"), async {
            // A second client finds all of it: nothing that it has done is done again.
            tokio::task::yield_now().await;
            tokio::task::yield_now().await;
            let found = resume(&fixture, &after.orchestrator, session.id(), "ann").await.unwrap();
            found.begin_turn(None);
            let again = submit_one(&found.connect(), book()).await;
            assert_eq!(again.meta.idempotent_cache_hit, Some(true));
            found
        });
    assert_eq!(one_tab.unwrap().turn(), other_tab.turn(), "the turn of one is the turn of the other");
    assert_eq!(fixture.effects.times("room"), 1);
    assert_eq!(after.orchestrator.metrics().json()["sessions"]["active"], 1);
}

#[tokio::test(start_paused = true)]
async fn a_voice_session_is_resumable_for_five_minutes_and_not_longer() {
    let five_minutes = Duration::from_secs(300);
    for restarts in [false, true] {
        let fixture = Fixture::new();
        let (session, connection) = fixture.open("ann", Mode::Voice).await;
        drop(connection);
        tokio::time::sleep(Duration::from_secs(1)).await;
        let after = if restarts { fixture.restarted() } else { fixture };
        after.clock.advance(five_minutes);
        drop(resume(&after, &after.orchestrator, session.id(), "ann").await.unwrap());
        after.clock.advance(Duration::from_millis(1));
        let late = resume(&after, &after.orchestrator, session.id(), "ann").await;
        assert!(matches!(late, Err(SessionError::Ended)), "after a restart: {restarts}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_session_of_another_client_is_not_found() {
    let fixture = Fixture::new();
    let (session, _connection) = fixture.open("ann", Mode::Text).await;
    let after = fixture.restarted();
    for orchestrator in [&fixture.orchestrator, &after.orchestrator] {
        for (id, who) in [(session.id(), "anna"), (session.id(), "an"), ("ses_unheard_of", "ann")] {
            let result = resume(&fixture, orchestrator, id, who).await;
            assert!(matches!(result, Err(SessionError::NotFound)), "{id} {who}");
        }
        let result = resume(&fixture, orchestrator, "../x", "ann").await;
        assert!(matches!(result, Err(SessionError::InvalidId)));
    }
}

#[tokio::test(start_paused = true)]
async fn idle_sessions_end_by_themselves() {
    let fixture = Fixture::new();
    let (idle, idle_connection) = fixture.open("ann", Mode::Text).await;
    let (busy, _busy_connection) = fixture.open("bob", Mode::Text).await;
    let (dropped, connection) = fixture.open("cat", Mode::Voice).await;
    drop(connection);
    fixture.clock.advance(Duration::from_secs(300));
    fixture.orchestrator.sweep().await.unwrap();
    assert!(dropped.state().is_active, "five minutes are not over five minutes");
    fixture.clock.advance(Duration::from_secs(1));
    fixture.orchestrator.sweep().await.unwrap();
    assert!(!dropped.state().is_active && idle.state().is_active);
    busy.begin_turn(None);
    fixture.clock.advance(Duration::from_secs(29 * 60));
    fixture.orchestrator.sweep().await.unwrap();
    assert!(!idle.state().is_active && busy.state().is_active);
    let Some(ClientEvent::End(end)) = idle_connection.try_next_event() else { panic!("the client is told") };
    assert_eq!(end.reason, "inactivity");
    let stored = list_sessions(&*fixture.store).await.unwrap();
    let active: Vec<_> = stored.iter().filter(|it| it.is_active).map(|it| it.client_id.as_str()).collect();
    assert_eq!(active, ["bob"], "and the store knows");
    assert_eq!(fixture.orchestrator.metrics().json()["sessions"]["active"], 1);
    assert_eq!(fixture.audit.count("session_end"), 2);
}

#[tokio::test(start_paused = true)]
async fn a_dropped_session_waits_in_the_store_with_all_it_came_to() {
    let fixture = Fixture::new();
    let (session, connection) = fixture.open("ann", Mode::Voice).await;
    session.begin_turn(Some("message-2"));
    let id = session.id().to_owned();
    drop((session, connection));
    assert!(fixture.orchestrator.find(&id).is_none());
    assert_eq!(fixture.orchestrator.metrics().json()["sessions"]["active"], 0, "it does not count as open");
    let session = resume(&fixture, &fixture.orchestrator, &id, "ann").await.unwrap();
    assert_eq!(session.turn(), 2);
    assert!(session.begin_turn(Some("message-2")).is_repeated);
    assert_eq!(fixture.orchestrator.metrics().json()["sessions"]["active"], 1);
}
