//! The name of a node's audit chain in its store, which changes when the store moves between one node and several.

use std::path::Path;

use anyhow::Context;
use quarterdeck_contracts::{Commit, CommitError, Row, Scan, Store, Table};
use quarterdeck_runtime::audit::{AuditEntry, AuditReader, GENESIS};
use serde_json::Value;

use crate::node_data::{LOCAL_CHAIN, NodeData};
use crate::terminal::info;

/// More chains than a cluster has nodes, whose store was copied to a file.
const MAX_CHAINS: usize = 100;

/// Whether the store knows the trail of this node. One that it knows by the name from before the store was copied gets the
/// name of today.
pub(crate) async fn is_known(node: &NodeData, store: &dyn Store) -> anyhow::Result<bool> {
    if store.get(Table::Audit, &node.chain).await?.is_some() {
        return Ok(true);
    }
    let candidates = match store.is_shared() {
        // Other names are those of other nodes.
        true => store
            .get(Table::Audit, LOCAL_CHAIN)
            .await?
            .map(|row| (LOCAL_CHAIN.to_owned(), row))
            .into_iter()
            .collect(),
        false => store.scan(Table::Audit, Scan::prefix("", MAX_CHAINS)).await?,
    };
    for (name, row) in candidates {
        if belongs_to(&row.value, &node.audit_file())? {
            rename(store, (&name, row), &node.chain).await?;
            info(&format!("the audit trail that the store knew as {name} is {} from now on", node.chain));
            return Ok(true);
        }
    }
    Ok(false)
}

async fn rename(store: &dyn Store, (old, row): (&str, Row), new: &str) -> anyhow::Result<()> {
    let commit = Commit::default()
        .check(Table::Audit, old, Some(row.version))
        .check(Table::Audit, new, None)
        .put(Table::Audit, new, row.value)
        .delete(Table::Audit, old);
    store.commit(commit).await.map_err(CommitError::into_store_error)?;
    Ok(())
}

/// Whether the line that a chain ends with, as the store knows it, is in the file.
fn belongs_to(head: &Value, trail: &Path) -> anyhow::Result<bool> {
    let Some(hash) = head.get("hash").and_then(Value::as_str) else { return Ok(false) };
    if hash == GENESIS {
        return Ok(true);
    }
    let cannot = || format!("cannot read {}", trail.display());
    let ending = format!(",\"hash\":\"{hash}\"}}");
    let seq = head.get("seq").and_then(Value::as_u64).unwrap_or(1);
    let mut reader = AuditReader::open_at(trail, seq).with_context(cannot)?;
    loop {
        match reader.next_entry().with_context(cannot)? {
            AuditEntry::Line(line, _) if line.ends_with(&ending) => return Ok(true),
            AuditEntry::Line(..) | AuditEntry::Damaged(_) => {}
            AuditEntry::Partial(_) | AuditEntry::End => return Ok(false),
        }
    }
}
