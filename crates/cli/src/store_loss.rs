//! A store that is missing, empty or damaged, in a folder that says that there was more.
//!
//! An empty store in place of one that was lost forgets who is blocked, what was booked and which confirmations were
//! used. So it is never made where the audit trail has lines, unless the operator says that it shall be.

use std::fs;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use anyhow::{Context, bail};
use quarterdeck_contracts::{Store, Table};
use quarterdeck_store::{OpenError, SqliteStore};

use crate::terminal::{say, warn};
use crate::{data, wire};

/// What the operator says about a store that was lost.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Loss {
    /// Nothing: then none is accepted.
    Refused,
    /// That a new one shall be begun.
    Accepted,
}

/// Opens the store of a data folder, or makes it where there never was one.
pub(crate) async fn open(data: &Path, loss: Loss) -> anyhow::Result<Arc<SqliteStore>> {
    match loss {
        Loss::Refused => open_known(data).await,
        Loss::Accepted => begin_new(data).await,
    }
}

/// Refuses to go on where a store would be made in place of one that was lost.
pub(crate) fn refuse_empty(data: &Path) -> anyhow::Result<()> {
    let store = data::store_file(data);
    if !is_missing_or_empty(&store) {
        return Ok(());
    }
    let trail = data::trail_file(data);
    if !is_missing_or_empty(&trail) {
        let state = if store.exists() { "empty" } else { "missing" };
        return Err(lost(
            data,
            &format!("{} is {state}, and {} says that there was one", store.display(), trail.display()),
        ));
    }
    Ok(())
}

async fn open_known(data: &Path) -> anyhow::Result<Arc<SqliteStore>> {
    refuse_empty(data)?;
    if is_missing_or_empty(&data::store_file(data)) {
        warn_of_signs(data);
    }
    let store = wire::open_store(data).map_err(|error| match is_damage(&error) {
        true => lost(data, &format!("{error:#}")),
        false => error,
    })?;
    if !is_missing_or_empty(&data::trail_file(data)) && store.get(Table::Audit, data::NODE).await?.is_none() {
        store.close().await?;
        return Err(lost(
            data,
            &format!(
                "{} knows nothing of {}: it is not the store that was used with this trail",
                data::store_file(data).display(),
                data::trail_file(data).display()
            ),
        ));
    }
    Ok(store)
}

/// Puts what is left of an old store aside and begins a new one. A sound store is no loss.
async fn begin_new(data: &Path) -> anyhow::Result<Arc<SqliteStore>> {
    match open_known(data).await {
        Ok(store) => {
            store.close().await?;
            bail!(
                "the store {} is there and sound, so no new one is begun\nhelp: leave out `--new-store`",
                data::store_file(data).display()
            );
        }
        Err(error) if !is_loss(&error) => return Err(error),
        Err(error) => {
            let cause = error.to_string();
            say(cause.lines().next().unwrap_or_default());
        }
    }
    let file = data::store_file(data);
    for ending in ["", "-wal", "-shm"] {
        let from = with_ending(&file, ending);
        if from.symlink_metadata().is_ok() {
            let to = free_name(&from);
            fs::rename(&from, &to).with_context(|| format!("cannot move {} away", from.display()))?;
            say(&format!("{} is kept as {}", from.display(), to.display()));
        }
    }
    warn(&format!(
        "a new store is begun in {}: sessions, bookings, blocks and confirmations of the old one are not in it",
        data.display()
    ));
    wire::open_store(data)
}

/// A store was lost; what it says ends with what can be done about it.
#[derive(Debug)]
struct Lost(String);

impl std::fmt::Display for Lost {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for Lost {}

fn lost(data: &Path, what: &str) -> anyhow::Error {
    anyhow::Error::new(Lost(format!("{what}\n{}", way_out(data))))
}

fn way_out(data: &Path) -> String {
    format!(
        "help: put the store back from a backup ({} and nothing else of its name), and start again;\n      \
         `quarterdeck serve --new-store` accepts the loss: what is left of the old one is kept, a new one is begun,\n      \
         and the audit trail says so",
        data::store_file(data).display()
    )
}

/// Whether there is nothing left to be opened, so that a new store loses nothing more.
fn is_loss(error: &anyhow::Error) -> bool {
    error.downcast_ref::<Lost>().is_some()
}

fn is_damage(error: &anyhow::Error) -> bool {
    matches!(
        error.downcast_ref::<OpenError>(),
        Some(OpenError::Damaged { .. } | OpenError::NotAStore { .. } | OpenError::LogAlone { .. })
    )
}

/// Says that a store is made although the folder looks as if there had been one. Without a trail there is no telling.
fn warn_of_signs(data: &Path) {
    let signs: Vec<_> =
        ["registry.json", "cookie_secret"].into_iter().filter(|name| data.join(name).exists()).collect();
    if !signs.is_empty() {
        warn(&format!(
            "a new store is made in {}, though {} there from an earlier start: if there was a store, stop the server \
             and put it back from a backup",
            data.display(),
            if signs.len() == 1 {
                format!("{} is", signs[0])
            } else {
                format!("{} are", signs.join(" and "))
            },
        ));
    }
}

/// Whether nothing stands in a file. What cannot be looked at is left to the code that opens it.
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
