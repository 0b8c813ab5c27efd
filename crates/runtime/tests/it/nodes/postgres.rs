//! The same on a real PostgreSQL server, with a handle of its own for each node.

use std::sync::Arc;

use quarterdeck_contracts::Store;
use quarterdeck_postgres::{Database, PostgresSettings};
use quarterdeck_store::PostgresStore;
use quarterdeck_testkit::{PostgresServer, PostgresVersion};

use super::world::Cluster;
use super::{fencing, hand_over, limits};

/// Nodes on an empty database; nothing where there is no server, which is said.
fn cluster() -> Option<Cluster> {
    let url = PostgresServer::shared(PostgresVersion::V18)?.create_database();
    Some(Cluster::opening(move || {
        let settings = PostgresSettings::from_url(&url).unwrap();
        let store = PostgresStore::open(Database::connect(settings).unwrap()).unwrap();
        Arc::new(store) as Arc<dyn Store>
    }))
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_paused_node_changes_nothing_in_postgres() {
    if let Some(cluster) = cluster() {
        fencing::paused_node_changes_nothing(&cluster).await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_released_session_goes_on_in_postgres() {
    if let Some(cluster) = cluster() {
        hand_over::released_session_goes_on(&cluster).await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_global_limit_holds_in_postgres() {
    if let Some(cluster) = cluster() {
        limits::limit_holds(&cluster).await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_hundred_approvals_are_one_execution_in_postgres() {
    if let Some(cluster) = cluster() {
        limits::approvals_are_one(&cluster).await;
    }
}

#[test]
fn whatever_is_called_is_answered_as_by_one_node_in_postgres() {
    if let Some(cluster) = cluster() {
        hand_over::nodes_answer_as_one(8, &cluster);
    }
}
