//! An operator's change: it is recorded in the audit log. On a store of one node it holds the folder's lock; a shared one
//! may be changed while servers run.

use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::bail;
use quarterdeck_contracts::Store;
use quarterdeck_runtime::audit::{AuditEvent, AuditLog, AuditLogError, AuditSink};
use quarterdeck_runtime::{Clock, SystemClock};
use serde_json::{Map, Value, json};

use crate::node_data::{NodeData, NodeLock};
use crate::store_loss::{self, OnStoreLoss};
use crate::store_url::StoreUrl;
use crate::{data, environment, wire};

/// How long to wait for other commands that are recording what they did.
const RECORD_TIMEOUT: Duration = Duration::from_secs(10);
const RECORD_INTERVAL: Duration = Duration::from_millis(100);

/// Holds the folder's lock until it is dropped, unless a server on a shared store has it.
pub(crate) struct OperatorSession {
    // Dropped in this order: the log tells the store its head, and the lock goes last.
    audit: AuditLog,
    store: Arc<dyn Store>,
    _lock: Option<NodeLock>,
}

impl OperatorSession {
    pub(crate) async fn open(node: &NodeData) -> anyhow::Result<Self> {
        if let StoreUrl::Sqlite(file) = &node.url {
            data::require_file(file)?;
        }
        wire::require_schema(&node.url, &node.config).await?;
        Self::open_or_create(node).await
    }

    pub(crate) async fn open_or_create(node: &NodeData) -> anyhow::Result<Self> {
        if node.config.is_shared() {
            data::create(&node.folder)?;
        }
        let store = store_loss::open(node, OnStoreLoss::Refuse).await?;
        let lock = match node.try_lock()? {
            None if store.is_shared() => None,
            None => Some(node.lock()?),
            locked => locked,
        };
        // Before anything is changed: what cannot be recorded is not done.
        let audit = match &lock {
            Some(_) => wire::open_audit_log(node, store.clone()).await?,
            // The trail of this folder has a writer, the server; so what is done beside it has a trail of its own.
            None => open_operator_log(node, &store).await?,
        };
        Ok(Self { audit, store, _lock: lock })
    }

    pub(crate) fn store(&self) -> Arc<dyn Store> {
        self.store.clone()
    }

    /// Records the change and closes the folder.
    pub(crate) async fn record(self, action: &str, details: Value) -> anyhow::Result<()> {
        let mut fields = Map::from_iter([
            ("action".to_owned(), json!(action)),
            ("by".to_owned(), json!(environment::user())),
        ]);
        if let Value::Object(details) = details {
            fields.extend(details);
        }
        self.audit.record(AuditEvent { event: "operator".into(), time: SystemClock.now(), fields });
        self.audit.flush();
        if self.audit.lost() > 0 {
            bail!(
                "the change was made, but the audit trail could not be written; check the disk's free space"
            );
        }
        drop(self.audit);
        self.store.close().await?;
        Ok(())
    }
}

/// The log of what is done beside a running server. Another command may be writing it at this moment.
async fn open_operator_log(node: &NodeData, store: &Arc<dyn Store>) -> anyhow::Result<AuditLog> {
    let (file, chain) = (data::operator_audit_file(&node.folder), node.operator_chain());
    let deadline = Instant::now() + RECORD_TIMEOUT;
    loop {
        match wire::open_audit_chain(node, &file, &chain, store.clone()).await {
            Err(error) if is_in_use(&error) && Instant::now() < deadline => {
                tokio::time::sleep(RECORD_INTERVAL).await;
            }
            outcome => return outcome,
        }
    }
}

fn is_in_use(error: &anyhow::Error) -> bool {
    matches!(error.downcast_ref::<AuditLogError>(), Some(AuditLogError::InUse { .. }))
}
