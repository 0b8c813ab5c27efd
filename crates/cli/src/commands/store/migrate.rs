//! `quarterdeck store migrate`.

use serde_json::json;

use crate::arguments::operator::StoreMigrateOptions;
use crate::config::LocalConfig;
use crate::operator::OperatorSession;
use crate::store_url::StoreUrl;
use crate::terminal::info;
use crate::{ExitStatus, wire};

pub(super) async fn migrate(options: &StoreMigrateOptions) -> anyhow::Result<ExitStatus> {
    let config = LocalConfig::load()?;
    let node = options.data.node(&config);
    let StoreUrl::Postgres(address) = &node.url else {
        // A file is brought up to date whenever it is opened.
        let store = wire::find_store(&node).await?;
        store.close().await?;
        info(&format!("{} has today's format", node.url));
        return Ok(ExitStatus::Success);
    };
    let migration = wire::migrate_database(address, &node.config).await?;
    if migration.before == migration.after {
        info(&format!("{} has schema {} already", node.url, migration.after));
        return Ok(ExitStatus::Success);
    }
    let operator = OperatorSession::open(&node).await?;
    let steps = json!({ "before": migration.before, "after": migration.after });
    operator.record("migrate_store", steps).await?;
    info(&match migration.before {
        0 => format!("{} was made, with schema {}", node.url, migration.after),
        before => format!("{} was brought from schema {before} to {}", node.url, migration.after),
    });
    Ok(ExitStatus::Success)
}
