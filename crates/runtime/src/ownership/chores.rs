//! Chores that one node does for all.

use quarterdeck_contracts::{Commit, StoreError, Table};
use serde_json::json;

use super::node::Node;
use super::peers::Liveness;
use crate::orchestrator::Orchestrator;
use crate::shared::Shared;

impl Orchestrator {
    /// Whether this node does a chore. The first one that asks does it, until it dies; a process that is alone on its store
    /// does them all.
    pub async fn runs_chore(&self, chore: &str) -> bool {
        let Some(node) = &self.shared().node else { return true };
        if !self.may_write() {
            return false;
        }
        node.takes_chore(self.shared(), chore).await.unwrap_or_else(|error| {
            tracing::warn!(chore, error = %error, "chore skipped: the store failed");
            false
        })
    }
}

impl Node {
    async fn takes_chore(&self, shared: &Shared, chore: &str) -> Result<bool, StoreError> {
        let key = format!("c/{chore}");
        let stored = shared.store.get(Table::Nodes, &key).await?;
        let mut commit =
            Commit::default().check(Table::Nodes, key.clone(), stored.as_ref().map(|row| row.version));
        if let Some(row) = &stored {
            let (name, boot) = (text(&row.value["node"]), text(&row.value["boot"]));
            if boot == self.boot {
                return Ok(true);
            }
            if name != self.name {
                match self.liveness(&*shared.store, name, boot, shared.clock.monotonic()).await? {
                    Liveness::Alive { .. } => return Ok(false),
                    Liveness::Dead { seen } => {
                        commit = commit.check(Table::Nodes, super::node::node_key(name), seen);
                    }
                }
            }
        }
        let commit = commit.put(Table::Nodes, key, json!({ "node": self.name, "boot": self.boot }));
        // Another node that was quicker does it.
        Ok(shared.store.commit(commit).await.is_ok())
    }
}

fn text(value: &serde_json::Value) -> &str {
    value.as_str().unwrap_or_default()
}
