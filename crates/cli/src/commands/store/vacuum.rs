//! `quarterdeck store vacuum`.

use serde_json::json;

use crate::arguments::operator::StoreVacuumOptions;
use crate::config::LocalConfig;
use crate::operator::OperatorSession;
use crate::store_url::StoreUrl;
use crate::terminal::{count, info};
use crate::times::now_ms;
use crate::{ExitStatus, wire};

pub(super) async fn vacuum(options: &StoreVacuumOptions) -> anyhow::Result<ExitStatus> {
    let config = LocalConfig::load()?;
    let node = options.data.node(&config);
    let operator = OperatorSession::open(&node).await?;
    let expired = operator.store().sweep(now_ms()).await?;
    let removed = count(usize::try_from(expired).unwrap_or(usize::MAX), "expired row");
    let done = match &node.url {
        StoreUrl::Sqlite(file) => {
            let (before, after) = quarterdeck_store::vacuum_sqlite(file)?;
            operator
                .record("vacuum_store", json!({ "expiredRows": expired, "before": before, "after": after }))
                .await?;
            format!("{} had {before} bytes and has {after}", node.url)
        }
        StoreUrl::Postgres(address) => {
            wire::vacuum_database(address, &node.config).await?;
            operator.record("vacuum_store", json!({ "expiredRows": expired })).await?;
            format!("the tables of {} were vacuumed and analysed", node.url)
        }
    };
    info(&format!("{done}; {removed} removed first"));
    Ok(ExitStatus::Success)
}
