//! What holds over all nodes.

use std::sync::Arc;

use quarterdeck_contracts::{ConfirmationAnswer, ErrorType, Mode};
use quarterdeck_runtime::{Call, Client, ClientEvent, SessionError};
use serde_json::json;

use super::world::Cluster;
use crate::orchestrator::fixture::{error_kind, submit_one};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_global_limit_holds_over_two_nodes() {
    limit_holds(&Cluster::new()).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_hundred_approvals_over_two_nodes_are_one_execution() {
    approvals_are_one(&Cluster::new()).await;
}

/// A limit of 50 for all clients, and 500 calls of 50 clients over two nodes.
pub(super) async fn limit_holds(cluster: &Cluster) {
    let nodes = [Arc::new(cluster.node("a").await), Arc::new(cluster.node("b").await)];
    let mut calls = tokio::task::JoinSet::new();
    for n in 0..50 {
        let (node, snapshot) = (nodes[n % 2].clone(), cluster.snapshot.clone());
        calls.spawn(async move {
            let client = Client::anonymous(format!("client-{n}"));
            let session = node.orchestrator.open(client, Mode::Text, snapshot).await.unwrap();
            let connection = session.connect();
            let mut done = 0;
            for call in 0..10 {
                session.begin_turn(None);
                let call = Call::new("scarce", json!({ "what": format!("{n}/{call}") }));
                let response = submit_one(&connection, call).await;
                match error_kind(&response) {
                    None => done += 1,
                    Some(kind) => assert_eq!(kind, ErrorType::RateLimit),
                }
            }
            done
        });
    }
    let done: u32 = calls.join_all().await.into_iter().sum();
    assert_eq!(done, 50);
    assert_eq!(cluster.effects.done.lock().unwrap().values().sum::<u32>(), 50);
}

/// A hundred approvals of one question at once, on two nodes that may both take its session.
pub(super) async fn approvals_are_one(cluster: &Cluster) {
    let nodes = [Arc::new(cluster.node("a").await), Arc::new(cluster.node("b").await)];
    let session = nodes[0].open(Mode::Text).await;
    let connection = session.connect();
    drop(connection.submit(vec![Call::new("pay", json!({ "what": "once" }))]).all().await);
    let token = std::iter::from_fn(|| connection.try_next_event()).find_map(|event| match event {
        ClientEvent::Confirmation { request, .. } => request.token,
        _ => None,
    });
    let token = Arc::new(token.unwrap());
    drop(connection);
    assert!(session.release().await.unwrap(), "a call that waits for the user can be given away");
    let id: Arc<str> = session.id().into();
    let mut clicks = tokio::task::JoinSet::new();
    for click in 0..100 {
        let (node, token, id) = (nodes[click % 2].clone(), token.clone(), id.clone());
        clicks.spawn(async move {
            match node.resume(&id).await {
                Ok(session) => {
                    let answer =
                        session.resolve_confirmation(token.expose(), ConfirmationAnswer::Approve).await;
                    let response = answer.response.clone();
                    answer.mark_delivered();
                    u32::from(response.is_ok() && response.meta.idempotent_cache_hit.is_none())
                }
                Err(SessionError::HeldElsewhere(_)) => 0,
                Err(other) => panic!("{other}"),
            }
        });
    }
    let approved: u32 = clicks.join_all().await.into_iter().sum();
    assert_eq!(cluster.effects.times("once"), 1);
    assert_eq!(approved, 1);
}
