//! `quarterdeck store copy`: everything of one store into an empty one, of the same engine or the other.

use std::time::Duration;

use anyhow::{Context, bail, ensure};
use quarterdeck_contracts::{Commit, CommitError, Scan, Store, Table};
use quarterdeck_store::ExportedRow;
use serde_json::json;

use super::verification::verify;
use crate::arguments::operator::StoreCopyOptions;
use crate::config::LocalConfig;
use crate::node_data::{NodeData, StoreLock};
use crate::operator::OperatorSession;
use crate::store_snapshot::StoreSnapshot;
use crate::store_url::{self, StoreUrl};
use crate::terminal::{count, info};
use crate::{ExitStatus, wire};

/// Rows that are read at once.
pub(super) const PAGE_ROWS: usize = 500;
/// Rows and bytes that are written in one commit.
const BATCH_ROWS: usize = 500;
const BATCH_BYTES: usize = 4 << 20;
/// How often progress is told.
const PROGRESS_ROWS: u64 = 20_000;
/// A node renews its row more often than this.
const RENEWAL_WAIT: Duration = Duration::from_secs(7);

pub(super) async fn copy(options: &StoreCopyOptions) -> anyhow::Result<ExitStatus> {
    let config = LocalConfig::load()?;
    let node = options.data.node(&config);
    let from = parse("--from", &options.from, &node)?;
    let to = parse("--to", &options.to, &node)?;
    ensure!(
        from.to_string() != to.to_string(),
        "--from and --to are the same store\nhelp: copy it to another one"
    );
    let what = json!({ "from": from.to_string(), "to": to.to_string() });
    let source_is_ours = node.url.to_string() == from.to_string();
    if source_is_ours {
        // Before the copy, so that the trail and the copy agree about the trail's end.
        OperatorSession::open(&node).await?.record("copy_store", what.clone()).await?;
    }
    let locks = (StoreLock::take(&from)?, StoreLock::take(&to)?);
    let source = StoreSnapshot::open(&from, &node.config).await?;
    refuse_running_nodes(&from, &node).await?;
    let target = wire::create_store(&to, &node.config).await?;
    refuse_non_empty(&*target, &to).await?;
    let rows = transfer(&source, &*target).await.with_context(|| unfinished(&to))?;
    target.close().await?;
    let copied = StoreSnapshot::open(&to, &node.config).await?;
    let digest = verify(&source, &copied).await.with_context(|| unfinished(&to))?;
    drop(locks);
    if node.url.to_string() == to.to_string() {
        OperatorSession::open(&node).await?.record("copy_store", what).await?;
    } else if !source_is_ours {
        info("neither of them is the store of this configuration, so no audit trail tells of the copy");
    }
    let rows = count(usize::try_from(rows).unwrap_or(usize::MAX), "row");
    info(&format!("{to} holds {rows} of {from}, read back and compared; SHA-256 {digest}"));
    Ok(ExitStatus::Success)
}

fn parse(flag: &str, text: &str, node: &NodeData) -> anyhow::Result<StoreUrl> {
    match StoreUrl::parse(text) {
        Ok(url) => Ok(node.config.complete(url)),
        // It may hold a password, and is not repeated.
        Err(found) => bail!("{flag} is {found}; it takes {}", store_url::FORM),
    }
}

/// What belongs to processes and not to the data: the nodes' rows, and which of them runs a chore.
pub(super) fn is_of_processes(row: &ExportedRow) -> bool {
    row.table == Table::Nodes && !row.key.starts_with("secret/")
}

/// A node that still writes would write to the source after the copy was made.
async fn refuse_running_nodes(from: &StoreUrl, node: &NodeData) -> anyhow::Result<()> {
    let StoreUrl::Postgres(_) = from else { return Ok(()) };
    let store = wire::find_url(from, &node.config).await?;
    let nodes = async || store.scan(Table::Nodes, Scan::prefix("n/", 1_000)).await;
    let before = nodes().await?;
    if !before.is_empty() {
        info("looking whether a node is running on the source");
        tokio::time::sleep(RENEWAL_WAIT).await;
        let after = nodes().await?;
        let running =
            after.iter().find(|(key, row)| !before.iter().any(|(k, r)| k == key && r.version == row.version));
        if let Some((key, _)) = running {
            bail!(
                "the node {} is running on {from}, and would write to it after the copy\nhelp: stop all nodes, and run this again",
                key.trim_start_matches("n/")
            );
        }
    }
    store.close().await?;
    Ok(())
}

async fn refuse_non_empty(target: &dyn Store, to: &StoreUrl) -> anyhow::Result<()> {
    for table in Table::ALL {
        if !target.scan(table, Scan::prefix("", 1)).await?.is_empty() {
            bail!(
                "{to} is not empty: there are rows in `{}`\nhelp: {}",
                table.as_str(),
                match to {
                    StoreUrl::Sqlite(_) => "copy to a new file",
                    StoreUrl::Postgres(_) =>
                        "copy to an empty database; what an interrupted copy has left goes with DROP SCHEMA qd CASCADE",
                }
            );
        }
    }
    Ok(())
}

/// The advice where a copy was broken off.
fn unfinished(to: &StoreUrl) -> String {
    let way_out = match to {
        StoreUrl::Sqlite(file) => format!("remove {}", file.display()),
        StoreUrl::Postgres(_) => "run DROP SCHEMA qd CASCADE in the database".to_owned(),
    };
    format!("{to} holds a part of the copy and must not be used; {way_out}, and copy again")
}

async fn transfer(source: &StoreSnapshot, target: &dyn Store) -> anyhow::Result<u64> {
    let mut written = 0;
    for table in Table::ALL {
        let mut after: Option<String> = None;
        loop {
            let rows = source.rows(table, after.as_deref(), PAGE_ROWS).await?;
            let is_last = rows.len() < PAGE_ROWS;
            after = rows.last().map(|row| row.key.clone());
            let mut batch = Batch::default();
            for row in rows.into_iter().filter(|row| !is_of_processes(row)) {
                batch.add(row)?;
                if batch.is_full() {
                    written += std::mem::take(&mut batch).write(target).await?;
                }
            }
            let before = written;
            written += batch.write(target).await?;
            if before / PROGRESS_ROWS != written / PROGRESS_ROWS {
                info(&format!("{written} rows, in `{}`", table.as_str()));
            }
            if is_last {
                break;
            }
        }
    }
    target.flush().await?;
    Ok(written)
}

#[derive(Default)]
struct Batch {
    commit: Commit,
    rows: usize,
    bytes: usize,
}

impl Batch {
    fn add(&mut self, row: ExportedRow) -> anyhow::Result<()> {
        let ExportedRow { table, key, value, expires_ms } = row;
        self.rows += 1;
        self.bytes += key.len() + value.len();
        let value = serde_json::from_str(&value).with_context(|| {
            format!("a row of `{}` is not JSON; `quarterdeck store check` says which", table.as_str())
        })?;
        let commit = std::mem::take(&mut self.commit);
        self.commit = commit.check(table, key.clone(), None).put_until(table, key, value, expires_ms);
        Ok(())
    }

    fn is_full(&self) -> bool {
        self.rows >= BATCH_ROWS || self.bytes >= BATCH_BYTES
    }

    async fn write(self, target: &dyn Store) -> anyhow::Result<u64> {
        if self.rows == 0 {
            return Ok(0);
        }
        target.commit(self.commit).await.map_err(|error| match error {
            CommitError::Conflict { .. } => {
                anyhow::anyhow!("another process writes to the target at the same time")
            }
            error => error.into_store_error().into(),
        })?;
        Ok(self.rows as u64)
    }
}
