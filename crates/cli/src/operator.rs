//! An operator's change to the data folder: it holds the folder's lock and is recorded in the audit log.

use std::fs::File;
use std::path::Path;
use std::sync::Arc;

use anyhow::bail;
use quarterdeck_contracts::Store;
use quarterdeck_runtime::audit::{AuditEvent, AuditLog, AuditSink};
use quarterdeck_runtime::{Clock, SystemClock};
use quarterdeck_store::SqliteStore;
use serde_json::{Map, Value, json};

use crate::store_loss::{self, OnStoreLoss};
use crate::{data, environment, wire};

/// Holds the folder's lock until it is dropped.
pub(crate) struct OperatorSession {
    // Dropped in this order: the log tells the store its head, and the lock goes last.
    audit: AuditLog,
    store: Arc<SqliteStore>,
    _lock: File,
}

impl OperatorSession {
    pub(crate) async fn open(data: &Path) -> anyhow::Result<Self> {
        data::require_file(&data::store_file(data))?;
        Self::open_or_create(data).await
    }

    pub(crate) async fn open_or_create(data: &Path) -> anyhow::Result<Self> {
        let store = store_loss::open(data, OnStoreLoss::Refuse).await?;
        let lock = data::lock(data)?;
        // Before anything is changed: what cannot be recorded is not done.
        let audit = wire::open_audit_log(data, store.clone()).await?;
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
