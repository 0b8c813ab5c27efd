//! Which processes are nodes, which of them live, and what each may do.

use std::time::Duration;

use quarterdeck_contracts::{Mode, StoreError};
use quarterdeck_runtime::SessionError;

use super::world::Cluster;

#[tokio::test]
async fn a_session_is_not_resumed_elsewhere_while_its_node_lives() {
    let cluster = Cluster::new();
    let (a, b) = (cluster.node("a").await, cluster.node("b").await);
    let session = a.open(Mode::Text).await;
    // As long as it renews its row, however long that is.
    for _ in 0..20 {
        a.orchestrator.renew_node().await.unwrap();
        let held = b.resume(session.id()).await;
        let Err(SessionError::HeldElsewhere(holder)) = held else { panic!("it was resumed") };
        assert_eq!((holder.node.as_str(), holder.address.as_str()), ("a", "http://a.test"));
        b.sleep(10);
        b.orchestrator.renew_node().await.unwrap();
    }
    // Then not for fifteen seconds.
    assert!(b.resume(session.id()).await.is_err());
    b.sleep(14);
    assert!(b.resume(session.id()).await.is_err());
    b.sleep(2);
    b.orchestrator.renew_node().await.unwrap();
    b.take(session.id()).await;
}

#[tokio::test]
async fn clocks_of_nodes_are_never_compared() {
    let cluster = Cluster::new();
    let (a, b) = (cluster.node("a").await, cluster.node("b").await);
    let session = a.open(Mode::Voice).await;
    for hours in [1, 24] {
        b.set_clock_ahead(Duration::from_secs(hours * 3_600));
        a.orchestrator.renew_node().await.unwrap();
        b.orchestrator.renew_node().await.unwrap();
        assert!(b.orchestrator.may_write());
        let held = b.resume(session.id()).await;
        assert!(matches!(held, Err(SessionError::HeldElsewhere(_) | SessionError::Ended)), "it was taken");
        assert!(b.orchestrator.nodes().await.unwrap().iter().all(|node| node.is_alive));
    }
    assert!(!session.is_lost());
}

#[tokio::test]
async fn a_clock_that_is_five_minutes_ahead_ends_no_session() {
    let cluster = Cluster::new();
    let (a, b) = (cluster.node("a").await, cluster.node("b").await);
    let session = a.open(Mode::Voice).await;
    assert!(session.release().await.unwrap());
    b.set_clock_ahead(Duration::from_secs(301));
    b.take(session.id()).await;
}

#[tokio::test]
async fn a_node_that_cannot_renew_its_row_starts_nothing() {
    let cluster = Cluster::new();
    let a = cluster.node("a").await;
    let session = a.open(Mode::Text).await;
    assert!(session.release().await.unwrap());
    a.sleep(9);
    assert!(a.orchestrator.may_write());
    a.sleep(2);
    assert!(!a.orchestrator.may_write());
    let refused = a.resume(session.id()).await.unwrap().hold().await;
    assert!(matches!(refused, Err(SessionError::Store(StoreError::Unavailable(_)))), "{refused:?}");
    a.orchestrator.renew_node().await.unwrap();
    a.take(session.id()).await;
}

#[tokio::test]
async fn a_second_process_of_the_same_name_fences_the_first() {
    let cluster = Cluster::new();
    let older = cluster.node("a").await;
    let session = older.open(Mode::Text).await;
    let newer = cluster.node("a").await;
    // It has the sessions of its name at once.
    let taken = newer.take(session.id()).await;
    older.orchestrator.renew_node().await.unwrap_err();
    assert!(older.orchestrator.is_fenced() && !older.orchestrator.may_write());
    newer.orchestrator.renew_node().await.unwrap();
    assert!(newer.orchestrator.may_write() && !taken.is_lost());
    // The loop of the older one ends by itself.
    tokio::time::timeout(Duration::from_secs(10), older.orchestrator.run_node()).await.unwrap();
}

#[tokio::test]
async fn one_node_does_a_chore_until_it_is_gone() {
    let cluster = Cluster::new();
    let (a, b) = (cluster.node("a").await, cluster.node("b").await);
    assert!(a.orchestrator.runs_chore("sweep").await);
    assert!(a.orchestrator.runs_chore("sweep").await);
    assert!(!b.orchestrator.runs_chore("sweep").await);
    assert!(b.orchestrator.runs_chore("digest").await);
    b.sleep(16);
    b.orchestrator.renew_node().await.unwrap();
    assert!(b.orchestrator.runs_chore("sweep").await);
    assert!(!a.orchestrator.runs_chore("sweep").await);
    // One that leaves is not waited for.
    b.orchestrator.leave_nodes().await.unwrap();
    assert!(a.orchestrator.runs_chore("digest").await);
}

#[tokio::test]
async fn nodes_are_listed_with_what_is_known_of_them() {
    let cluster = Cluster::new();
    let (a, b) = (cluster.node("a").await, cluster.node("b").await);
    let _session = a.open(Mode::Text).await;
    a.orchestrator.renew_node().await.unwrap();
    b.orchestrator.renew_node().await.unwrap();
    b.sleep(16);
    b.orchestrator.renew_node().await.unwrap();
    let views = b.orchestrator.nodes().await.unwrap();
    let seen: Vec<_> =
        views.iter().map(|node| (node.name.as_str(), node.sessions, node.is_alive, node.is_self)).collect();
    assert_eq!(seen, [("a", 1, false, false), ("b", 0, true, true)]);
}
