//! A store that is missing, empty or damaged although the data folder shows that there was one.
//!
//! An empty store in place of one that was lost forgets who is blocked, what was booked and which confirmations were
//! used. So it is never created where the audit log has lines, unless the operator asks for it.

use std::fs;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use anyhow::{Context, bail};
use quarterdeck_contracts::Store;
use quarterdeck_runtime::audit;
use quarterdeck_store::OpenError;

use crate::node_data::NodeData;
use crate::store_url::StoreUrl;
use crate::terminal::{info, warn};
use crate::{audit_chain, wire};

/// What to do where a store was lost.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum OnStoreLoss {
    Refuse,
    /// Keep what is left of it aside, and create a new one.
    Accept,
}

/// Opens the store of a node, or creates it where there never was one.
pub(crate) async fn open(node: &NodeData, on_loss: OnStoreLoss) -> anyhow::Result<Arc<dyn Store>> {
    match on_loss {
        OnStoreLoss::Refuse => open_existing(node).await,
        OnStoreLoss::Accept => replace_lost(node).await,
    }
}

/// Fails where opening the store would create a file in place of one that was lost.
pub(crate) fn refuse_empty(node: &NodeData) -> anyhow::Result<()> {
    let StoreUrl::Sqlite(store) = &node.url else { return Ok(()) };
    if !is_missing_or_empty(store) {
        return Ok(());
    }
    let trail = node.audit_file();
    if has_lines(&trail) {
        let state = if store.exists() { "empty" } else { "missing" };
        return Err(lost(
            node,
            &format!("{} is {state}, and {} says that there was one", store.display(), trail.display()),
        ));
    }
    Ok(())
}

async fn open_existing(node: &NodeData) -> anyhow::Result<Arc<dyn Store>> {
    refuse_empty(node)?;
    if matches!(&node.url, StoreUrl::Sqlite(file) if is_missing_or_empty(file)) {
        warn_about_traces(&node.folder);
    }
    let opened = wire::open_store(&node.url, &node.config).await;
    let store = opened.map_err(|error| match is_damage(&error) {
        true => lost(node, &format!("{error:#}")),
        false => error,
    })?;
    if has_lines(&node.audit_file()) && !audit_chain::is_known(node, &*store).await? {
        store.close().await?;
        return Err(lost(
            node,
            &format!(
                "{} knows nothing of {}: it is not the store that was used with this trail",
                node.url,
                node.audit_file().display()
            ),
        ));
    }
    Ok(store)
}

/// Accepts that a store was lost: what is left of a file is moved aside and a new one is created, and a database is used as
/// it is. A sound store is refused.
async fn replace_lost(node: &NodeData) -> anyhow::Result<Arc<dyn Store>> {
    match open_existing(node).await {
        Ok(store) => {
            store.close().await?;
            bail!(
                "the store {} is there and sound, so no new one is begun\nhelp: leave out `--new-store`",
                node.url
            );
        }
        Err(error) if !is_loss(&error) => return Err(error),
        Err(error) => {
            let cause = error.to_string();
            info(cause.lines().next().unwrap_or_default());
        }
    }
    if let StoreUrl::Sqlite(file) = &node.url {
        move_aside(file)?;
    }
    warn(&format!(
        "a new store is begun in {}: sessions, bookings, blocks and confirmations of the old one are not in it",
        match &node.url {
            StoreUrl::Sqlite(_) => node.folder.display().to_string(),
            url @ StoreUrl::Postgres(_) => url.to_string(),
        }
    ));
    wire::open_store(&node.url, &node.config).await
}

fn move_aside(file: &Path) -> anyhow::Result<()> {
    for ending in ["", "-wal", "-shm"] {
        let from = with_ending(file, ending);
        if from.symlink_metadata().is_ok() {
            let to = free_name(&from);
            fs::rename(&from, &to).with_context(|| format!("cannot move {} away", from.display()))?;
            info(&format!("{} is kept as {}", from.display(), to.display()));
        }
    }
    Ok(())
}

/// A store was lost. The text ends with what the operator can do.
#[derive(Debug)]
struct StoreLostError(String);

impl std::fmt::Display for StoreLostError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for StoreLostError {}

fn lost(node: &NodeData, what: &str) -> anyhow::Error {
    anyhow::Error::new(StoreLostError(format!("{what}\n{}", way_out(node))))
}

fn way_out(node: &NodeData) -> String {
    match &node.url {
        StoreUrl::Sqlite(file) => format!(
            "help: put the store back from a backup ({} and nothing else of its name), and start again;\n      \
             `quarterdeck serve --new-store` accepts the loss: what is left of the old one is kept, a new one is begun,\n      \
             and the audit trail says so",
            file.display()
        ),
        StoreUrl::Postgres(_) => format!(
            "help: restore the database, or copy the store into it: `quarterdeck store copy --from URL --to URL`; if this \n      \
             node had another name than {}, set `cluster.node` to that one;\n      \
             `quarterdeck serve --new-store` accepts the loss, and the audit trail says so",
            node.chain
        ),
    }
}

fn is_loss(error: &anyhow::Error) -> bool {
    error.downcast_ref::<StoreLostError>().is_some()
}

fn is_damage(error: &anyhow::Error) -> bool {
    matches!(
        error.downcast_ref::<OpenError>(),
        Some(OpenError::Damaged { .. } | OpenError::NotAStore { .. } | OpenError::LogAlone { .. })
    )
}

/// Warns that a store is created although the folder looks as if there had been one. Without an audit log that is not
/// certain.
fn warn_about_traces(data: &Path) {
    let traces: Vec<_> =
        ["registry.json", "cookie_secret"].into_iter().filter(|name| data.join(name).exists()).collect();
    if !traces.is_empty() {
        warn(&format!(
            "a new store is made in {}, though {} there from an earlier start: if there was a store, stop the server \
             and put it back from a backup",
            data.display(),
            if traces.len() == 1 {
                format!("{} is", traces[0])
            } else {
                format!("{} are", traces.join(" and "))
            },
        ));
    }
}

/// Whether an audit log has lines, in the file or in closed segments.
fn has_lines(trail: &Path) -> bool {
    !is_missing_or_empty(trail) || audit::log_size(trail).is_ok_and(|bytes| bytes > 0)
}

/// A file whose metadata cannot be read counts as neither: the code that opens it reports why.
fn is_missing_or_empty(file: &Path) -> bool {
    match fs::metadata(file) {
        Ok(found) => found.is_file() && found.len() == 0,
        Err(error) => error.kind() == ErrorKind::NotFound,
    }
}

fn with_ending(file: &Path, ending: &str) -> PathBuf {
    let mut name = file.as_os_str().to_owned();
    name.push(ending);
    PathBuf::from(name)
}

fn free_name(file: &Path) -> PathBuf {
    let mut names = (1..).map(|number| with_ending(file, &format!(".before-{number}")));
    names.find(|name| name.symlink_metadata().is_err()).unwrap_or_else(|| with_ending(file, ".before"))
}
