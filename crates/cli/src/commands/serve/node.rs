//! This process among the nodes that share its store. A process that has its store for itself does nothing of this.

use std::sync::Arc;
use std::time::Duration;

use anyhow::Context;
use quarterdeck_contracts::{Commit, CommitError, Store, Table};
use quarterdeck_runtime::{NodeParts, Orchestrator, Registry};
use quarterdeck_server::shared_secret;
use quarterdeck_transports::Secret;
use serde_json::json;
use tokio::task::JoinSet;

use super::recover_tasks;
use crate::config::{Config, CookieSecret};
use crate::data;
use crate::terminal::{are_messages_logged, info};

/// As long as it takes until a node counts as gone.
const TAKE_OVER_INTERVAL: Duration = Duration::from_secs(15);

/// The row that holds the secret for cookies, which all nodes share.
const COOKIE_SECRET_KEY: &str = "secret/cookie";

/// Who this process is among the nodes; `None` where it has its store for itself.
pub(crate) fn parts(config: &Config, address: String) -> Option<NodeParts> {
    config.store.is_shared().then(|| NodeParts { name: config.cluster.node.clone(), address })
}

/// Tells the other nodes of this one before it does anything, because sessions are taken by nodes that are known, and from
/// then on again and again.
pub(crate) async fn join(orchestrator: &Orchestrator, tasks: &mut JoinSet<()>) -> anyhow::Result<()> {
    if orchestrator.node_name().is_some() {
        orchestrator.renew_node().await.context("this node could not be entered in the store")?;
        let renewing = orchestrator.clone();
        tasks.spawn(async move { renewing.run_node().await });
    }
    Ok(())
}

/// Follows what other nodes change, and takes over the background tasks of those that are gone. After everything that wants
/// to know is built.
pub(crate) fn follow(orchestrator: &Orchestrator, registry: &Arc<Registry>, tasks: &mut JoinSet<()>) {
    if orchestrator.node_name().is_some() {
        let following = orchestrator.clone();
        tasks.spawn(async move { following.follow_changes().await });
        tasks.spawn(take_over_tasks(orchestrator.clone(), registry.clone()));
    }
}

async fn take_over_tasks(orchestrator: Orchestrator, registry: Arc<Registry>) {
    loop {
        tokio::time::sleep(TAKE_OVER_INTERVAL).await;
        if let Err(error) = recover_tasks(&orchestrator, &registry).await {
            tracing::warn!(error = %error, "background tasks of other nodes could not be looked at");
        }
    }
}

/// Gives everything back that this node holds, so that the others need not find out that it is gone.
pub(crate) async fn leave(orchestrator: &Orchestrator) {
    if orchestrator.node_name().is_none() {
        return;
    }
    let kept = orchestrator.release_all().await;
    let left = async {
        orchestrator.store().flush().await?;
        orchestrator.leave_nodes().await
    };
    match left.await {
        Ok(()) => tracing::debug!(kept, "node has left"),
        Err(error) => {
            tracing::warn!(error = %error, "this node could not be taken out of the store; the others find out by themselves");
        }
    }
}

/// What all nodes must have in common.
pub(crate) struct NodeSecrets {
    /// Signs cookies.
    pub(crate) cookie: Secret,
    /// Signs what the nodes send each other; `None` where there are no others.
    pub(crate) nodes: Option<Vec<u8>>,
}

/// The secrets of the configuration, or else those that the nodes share, or else those of the data folder.
pub(crate) async fn secrets(config: &Config, store: &dyn Store) -> anyhow::Result<NodeSecrets> {
    let CookieSecret::Generated = &config.server.cookie_secret else {
        let cookie = config.server.cookie_secret.load(&config.folders.data)?;
        return Ok(NodeSecrets { cookie, nodes: node_secret(config, store).await? });
    };
    if !config.store.is_shared() {
        let cookie = config.server.cookie_secret.load(&config.folders.data)?;
        return Ok(NodeSecrets { cookie, nodes: None });
    }
    hand_over_cookie_secret(config, store).await?;
    let cookie = shared_secret(store, "cookie").await?.into();
    Ok(NodeSecrets { cookie, nodes: node_secret(config, store).await? })
}

async fn node_secret(config: &Config, store: &dyn Store) -> anyhow::Result<Option<Vec<u8>>> {
    if !config.store.is_shared() {
        return Ok(None);
    }
    let secret = match &config.cluster.secret {
        Some(secret) => secret.expose().to_owned(),
        None => shared_secret(store, "nodes").await?,
    };
    Ok(Some(secret.into_bytes()))
}

/// A node that had its store for itself has issued cookies. They stay valid if it is the first to join the others.
async fn hand_over_cookie_secret(config: &Config, store: &dyn Store) -> anyhow::Result<()> {
    let folder = &config.folders.data;
    if !data::cookie_secret_file(folder).exists()
        || store.get(Table::Nodes, COOKIE_SECRET_KEY).await?.is_some()
    {
        return Ok(());
    }
    let secret = data::load_cookie_secret(folder)?;
    let commit = Commit::default().check(Table::Nodes, COOKIE_SECRET_KEY, None).put(
        Table::Nodes,
        COOKIE_SECRET_KEY,
        json!({ "secret": secret }),
    );
    match store.commit(commit).await {
        // Another node was faster; its secret counts.
        Ok(_) | Err(CommitError::Conflict { .. }) => Ok(()),
        Err(error) => Err(error.into_store_error().into()),
    }
}

/// Which node this is, and which database it shares.
pub(crate) fn report(orchestrator: &Orchestrator, config: &Config) {
    let Some(node) = orchestrator.node_name() else { return };
    let store = config.node_data().url;
    if are_messages_logged() {
        return tracing::info!(node, store = %store, "sharing the store with other nodes");
    }
    info(&format!("  node      {node}, on {store}"));
}
