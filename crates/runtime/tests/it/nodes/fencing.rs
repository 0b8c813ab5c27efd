//! What a node can still do with a session that another one has taken: nothing.

use quarterdeck_contracts::{Commit, CommitError, ConfirmationAnswer, ErrorType, Mode, Table};
use quarterdeck_runtime::{Call, ClientEvent, PendingEnd, SessionError};
use serde_json::json;

use super::world::Cluster;
use crate::orchestrator::fixture::{error_kind, submit_one};

fn call(tool: &str, what: &str) -> Call {
    Call::new(tool, json!({ "what": what }))
}

#[tokio::test]
async fn a_node_that_was_paused_past_its_lease_changes_nothing_any_more() {
    paused_node_changes_nothing(&Cluster::new()).await;
}

pub(super) async fn paused_node_changes_nothing(cluster: &Cluster) {
    let (a, b) = (cluster.node("a").await, cluster.node("b").await);
    let session = a.open(Mode::Text).await;
    let connection = session.connect();
    submit_one(&connection, call("book", "first")).await;
    submit_one(&connection, call("look", "there")).await;

    b.sleep(16);
    b.orchestrator.renew_node().await.unwrap();
    let taken = b.take(session.id()).await;
    taken.begin_turn(None);
    b.orchestrator.save_all();
    a.orchestrator.store().flush().await.unwrap();
    b.orchestrator.store().flush().await.unwrap();
    let before = cluster.rows().await;

    // Its own clock has stood still, so it believes that it may write.
    assert!(a.orchestrator.may_write() && !session.is_lost());
    for tool in ["book", "count", "slow_book", "crash", "rare", "report", "scarce"] {
        let refused = submit_one(&connection, call(tool, "late")).await;
        assert_eq!(error_kind(&refused), Some(ErrorType::Transient), "{tool}");
    }
    assert!(session.is_lost());
    let pay = connection.submit(vec![call("pay", "late")]).all().await.remove(0);
    assert_eq!(error_kind(&pay.into_answer().unwrap().response), Some(ErrorType::Transient));
    session.begin_turn(None);
    session.store_soon(Commit::default().put(Table::History, format!("s/{}/9", session.id()), json!(1)));
    let written = session.commit(Commit::default().put(Table::Values, "x", json!(1))).await;
    assert!(matches!(written, Err(CommitError::Conflict { table: Table::Leases, .. })), "{written:?}");
    assert!(!session.release().await.unwrap());
    assert!(matches!(session.hold().await, Err(SessionError::Lost)));
    a.orchestrator.save_all();
    session.end(PendingEnd::with_reason("late")).await;
    drop((connection, session));
    a.orchestrator.sweep().await.unwrap();
    a.orchestrator.store().flush().await.unwrap();

    assert_eq!(cluster.rows().await, before, "a row was changed by a node that has lost it");
    for what in ["late", "late begun"] {
        assert_eq!(cluster.effects.times(what), 0);
    }
    assert!(!taken.is_lost() && taken.state().is_active);
}

#[tokio::test]
async fn a_lost_session_leaves_memory_and_its_connection_ends() {
    let cluster = Cluster::new();
    let (a, b) = (cluster.node("a").await, cluster.node("b").await);
    let session = a.open(Mode::Voice).await;
    let connection = session.connect();
    let _taken = b.take_over(session.id()).await;
    submit_one(&connection, call("book", "late")).await;
    assert!(connection.next_event().await.is_none(), "the connection goes on");
    assert!(a.orchestrator.find(session.id()).is_none());
    let held = a.resume(session.id()).await;
    let Err(SessionError::HeldElsewhere(holder)) = held else { panic!("{:?}", held.err()) };
    assert_eq!(holder.node, "b");
}

/// A client that comes back to it would otherwise talk to a session that is lost with the first thing that is stored.
#[tokio::test]
async fn a_node_that_was_paused_looks_whether_it_still_has_a_session() {
    let cluster = Cluster::new();
    let (a, b) = (cluster.node("a").await, cluster.node("b").await);
    let (first, second, kept) =
        (a.open(Mode::Voice).await, a.open(Mode::Voice).await, a.open(Mode::Voice).await);
    let _taken = (b.take_over(first.id()).await, b.take_over(second.id()).await);
    a.sleep(17);
    let late = a.resume(first.id()).await;
    assert!(matches!(late, Err(SessionError::Store(_))), "{:?}", late.err());
    a.orchestrator.renew_node().await.unwrap();
    assert!(a.orchestrator.may_write() && !a.orchestrator.has_session(second.id()).await.unwrap());
    let held = a.resume(second.id()).await;
    assert!(matches!(held, Err(SessionError::HeldElsewhere(_))), "{:?}", held.err());
    assert!(a.orchestrator.has_session(kept.id()).await.unwrap());
    assert!(a.resume(kept.id()).await.unwrap().is_same(&kept));
}

#[tokio::test]
async fn a_decision_that_comes_to_a_lost_session_redeems_nothing() {
    let cluster = Cluster::new();
    let (a, b) = (cluster.node("a").await, cluster.node("b").await);
    let session = a.open(Mode::Text).await;
    let connection = session.connect();
    let _replies = connection.submit(vec![call("pay", "once")]).all().await;
    let token = std::iter::from_fn(|| connection.try_next_event())
        .find_map(|event| match event {
            ClientEvent::Confirmation { request, .. } => request.token,
            _ => None,
        })
        .unwrap();
    let taken = b.take_over(session.id()).await;
    for decision in [ConfirmationAnswer::Approve, ConfirmationAnswer::Deny] {
        let answer = session.resolve_confirmation(token.expose(), decision).await;
        assert_eq!(error_kind(&answer.response), Some(ErrorType::Transient));
    }
    assert_eq!(cluster.effects.times("once"), 0);
    let answer = taken.resolve_confirmation(token.expose(), ConfirmationAnswer::Approve).await;
    assert!(answer.response.is_ok());
    assert_eq!(cluster.effects.times("once"), 1);
}

#[tokio::test]
async fn a_session_that_an_operator_ended_is_ended_by_its_node_and_by_no_other() {
    let cluster = Cluster::new();
    let a = cluster.node("a").await;
    let session = a.open(Mode::Text).await;
    let connection = session.connect();
    a.orchestrator.store().flush().await.unwrap();
    assert!(quarterdeck_runtime::end_stored_session(&*cluster.store, session.id()).await.unwrap());
    // What has begun there can finish and is recorded, because its lease stands.
    let last = submit_one(&connection, call("book", "last")).await;
    assert_eq!((error_kind(&last), session.is_lost()), (None, false));
    // It learns of the end when it looks, or is told.
    let orchestrator = a.orchestrator.clone();
    let following = tokio::spawn(async move { orchestrator.follow_changes().await });
    while session.state().is_active {
        tokio::task::yield_now().await;
    }
    assert!(error_kind(&submit_one(&connection, call("book", "late")).await).is_some());
    assert_eq!(cluster.effects.times("late"), 0);
    assert!(matches!(a.resume(session.id()).await, Err(SessionError::Ended)));
    following.abort();
}

#[tokio::test]
async fn a_process_that_is_alone_on_its_store_writes_no_leases() {
    let fixture = crate::orchestrator::fixture::Fixture::new();
    let (session, connection) = fixture.open("ann", Mode::Text).await;
    submit_one(&connection, call("book", "one")).await;
    assert!(session.release().await.unwrap() && !session.is_leased());
    for table in [Table::Leases, Table::Nodes] {
        let rows = fixture.store.scan(table, quarterdeck_contracts::Scan::prefix("", 10)).await.unwrap();
        assert!(rows.is_empty(), "{table:?}");
    }
    assert!(fixture.orchestrator.may_write() && fixture.orchestrator.runs_chore("sweep").await);
}
