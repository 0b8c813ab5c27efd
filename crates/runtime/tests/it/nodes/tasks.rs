//! Tasks of nodes that are gone.

use quarterdeck_contracts::Mode;
use quarterdeck_runtime::{Call, RecoveredTasks, TaskStatus};
use serde_json::json;

use super::world::Cluster;

#[tokio::test]
async fn a_task_is_recovered_when_its_node_is_dead_and_not_before() {
    let cluster = Cluster::new();
    let (a, b) = (cluster.node("a").await, cluster.node("b").await);
    let session = a.open(Mode::Text).await;
    let connection = session.connect();
    drop(connection.submit(vec![Call::new("report", json!({ "what": "gated" }))]).all().await);
    let recovered = b.orchestrator.recover_tasks(cluster.snapshot.clone()).await.unwrap();
    assert_eq!(recovered, RecoveredTasks::default(), "its node lives");
    // A recovers nothing of its own either.
    let recovered = a.orchestrator.recover_tasks(cluster.snapshot.clone()).await.unwrap();
    assert_eq!(recovered, RecoveredTasks::default());

    b.sleep(16);
    b.orchestrator.renew_node().await.unwrap();
    let recovered = b.orchestrator.recover_tasks(cluster.snapshot.clone()).await.unwrap();
    assert_eq!(recovered, RecoveredTasks { resumed: 0, lost: 1 });
    let tasks = b.orchestrator.client_tasks("ann").await.unwrap();
    assert_eq!(tasks.iter().map(|task| task.status).collect::<Vec<_>>(), [TaskStatus::Unknown]);

    // The node that was believed dead cannot say otherwise.
    cluster.effects.gate.notify_waiters();
    for _ in 0..100 {
        tokio::task::yield_now().await;
    }
    let tasks = b.orchestrator.client_tasks("ann").await.unwrap();
    assert_eq!(tasks.iter().map(|task| task.status).collect::<Vec<_>>(), [TaskStatus::Unknown]);
    let taken = b.take(session.id()).await;
    assert!(taken.begin_turn(None).notes.iter().any(|note| note.contains("not known")));
}

#[tokio::test]
async fn a_task_that_may_run_twice_goes_on_at_another_node() {
    let cluster = Cluster::new();
    let (a, b) = (cluster.node("a").await, cluster.node("b").await);
    let session = a.open(Mode::Text).await;
    let connection = session.connect();
    drop(connection.submit(vec![Call::new("report_again", json!({ "what": "gated" }))]).all().await);
    b.sleep(16);
    b.orchestrator.renew_node().await.unwrap();
    let recovered = b.orchestrator.recover_tasks(cluster.snapshot.clone()).await.unwrap();
    assert_eq!(recovered, RecoveredTasks { resumed: 1, lost: 0 });
    for _ in 0..1_000 {
        cluster.effects.gate.notify_waiters();
        tokio::task::yield_now().await;
    }
    let tasks = b.orchestrator.client_tasks("ann").await.unwrap();
    assert_eq!(tasks.iter().map(|task| task.status).collect::<Vec<_>>(), [TaskStatus::Done]);
    // Then its session is free again.
    drop(session);
    let c = cluster.node("c").await;
    c.take(&tasks[0].session_id).await;
}
