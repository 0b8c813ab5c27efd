//! An operator at work: has the data folder for themselves, and what they change is on the record.

use std::fs::File;
use std::path::Path;
use std::sync::Arc;
use std::time::SystemTime;

use anyhow::bail;
use quarterdeck_contracts::Store;
use quarterdeck_runtime::audit::{AuditEvent, AuditLog, AuditSink};
use quarterdeck_store::SqliteStore;
use serde_json::{Map, Value, json};

use crate::store_loss::{self, Loss};
use crate::{data, environment, wire};

/// Holds the folder until it is dropped.
pub(crate) struct Operator {
    // Dropped in this order: the trail tells the store its head, and the folder is let go of last.
    trail: AuditLog,
    store: Arc<SqliteStore>,
    _claim: File,
}

impl Operator {
    /// At a folder that is there.
    pub(crate) async fn at(data: &Path) -> anyhow::Result<Self> {
        data::must_exist(&data::store_file(data))?;
        Self::at_new(data).await
    }

    /// At a folder that may still have to be made.
    pub(crate) async fn at_new(data: &Path) -> anyhow::Result<Self> {
        let store = store_loss::open(data, Loss::Refused).await?;
        let claim = data::claim(data)?;
        // Before anything is changed: what cannot be recorded is not done.
        let trail = wire::open_trail(data, store.clone()).await?;
        Ok(Self { trail, store, _claim: claim })
    }

    pub(crate) fn store(&self) -> Arc<dyn Store> {
        self.store.clone()
    }

    /// Records what was done, and leaves.
    pub(crate) async fn did(self, action: &str, details: Value) -> anyhow::Result<()> {
        let mut fields = Map::from_iter([
            ("action".to_owned(), json!(action)),
            ("by".to_owned(), json!(environment::user())),
        ]);
        if let Value::Object(details) = details {
            fields.extend(details);
        }
        self.trail.record(AuditEvent { event: "operator".into(), time: SystemTime::now(), fields });
        self.trail.flush();
        if self.trail.lost() > 0 {
            bail!("it was done, but the audit trail could not be written; is the disk full?");
        }
        drop(self.trail);
        self.store.close().await?;
        Ok(())
    }
}
