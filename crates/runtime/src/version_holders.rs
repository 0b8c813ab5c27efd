//! Which stored sessions a version has. A session that is not in memory may still be resumed, and keeps its version.

use quarterdeck_contracts::{Commit, CommitError, Mode, Scan, StoreError, Table};

use crate::confirmation::{ConfirmationRow, Status, index_key};
use crate::session::{SessionRow, session_key};
use crate::shared::Shared;
use crate::store_keys::all_rows;

/// How many sessions are looked at in one go.
const BATCH_ROWS: usize = 200;

/// The key in [`Table::Versions`] of a session that is pinned to a version; with an empty id, the prefix of its sessions.
pub(crate) fn holder_key(digest: &str, session: &str) -> String {
    format!("s/{digest}/{session}")
}

/// Which sessions keep a version loaded while they are not in memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Holders {
    /// Those that can be resumed.
    Resumable,
    /// Of those only the ones that do not move on to a newer version: calls, and conversations with an open question.
    Unmovable,
}

/// Whether such a session is pinned to a version. Rows of sessions that cannot be resumed are removed on the way, so
/// that the next look is short.
pub(crate) async fn is_held(shared: &Shared, digest: &str, holders: Holders) -> Result<bool, StoreError> {
    let prefix = holder_key(digest, "");
    let mut scan = Scan::prefix(prefix.clone(), BATCH_ROWS);
    loop {
        let page = shared.store.scan(Table::Versions, scan.clone()).await?;
        let Some((last, _)) = page.last() else { return Ok(false) };
        scan.after = Some(last.clone());
        let mut stale = Commit::default();
        for (key, _) in page {
            let id = &key[prefix.len()..];
            match resumable_mode(shared, id).await? {
                Some(mode) if holders == Holders::Resumable || mode == Mode::Voice => return Ok(true),
                Some(_) if has_open_confirmation(shared, id).await? => return Ok(true),
                Some(_) => {}
                None => stale = stale.delete(Table::Versions, key),
            }
        }
        match shared.store.commit(stale).await {
            Ok(_) | Err(CommitError::Conflict { .. }) => {}
            Err(error) => return Err(error.into_store_error()),
        }
    }
}

/// The mode of a stored session, if it can be resumed.
async fn resumable_mode(shared: &Shared, id: &str) -> Result<Option<Mode>, StoreError> {
    let stored = shared.store.get(Table::Sessions, &session_key(id)).await?;
    let row = stored.and_then(|stored| serde_json::from_value::<SessionRow>(stored.value).ok());
    let row = row.filter(|row| {
        row.state.is_active && shared.steady.now_ms() <= row.seen_ms + shared.resume_timeout_ms(row.mode)
    });
    Ok(row.map(|row| row.mode))
}

async fn has_open_confirmation(shared: &Shared, session: &str) -> Result<bool, StoreError> {
    let prefix = index_key(session, "");
    for (key, _) in all_rows(&*shared.store, Table::SessionConfirmations, &prefix).await? {
        let stored = shared.store.get(Table::Confirmations, &key[prefix.len()..]).await?;
        let row = stored.and_then(|stored| serde_json::from_value::<ConfirmationRow>(stored.value).ok());
        if row.is_some_and(|row| row.status == Status::Open && shared.steady.now_ms() < row.expires_ms) {
            return Ok(true);
        }
    }
    Ok(false)
}
