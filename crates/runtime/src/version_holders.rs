//! Which stored sessions a version has. A session that is not in memory may still be resumed, and keeps its version.

use quarterdeck_contracts::{Commit, CommitError, Scan, StoreError, Table};

use crate::session::{SessionRow, session_key};
use crate::shared::Shared;

/// How many sessions are looked at in one go.
const BATCH_ROWS: usize = 200;

/// The key in [`Table::Versions`] of a session that is pinned to a version; with an empty id, the prefix of its sessions.
pub(crate) fn holder_key(digest: &str, session: &str) -> String {
    format!("s/{digest}/{session}")
}

/// Whether a session that can be resumed is pinned to a version. Rows of sessions that cannot are removed on the way, so
/// that the next look is short.
pub(crate) async fn has_resumable_session(shared: &Shared, digest: &str) -> Result<bool, StoreError> {
    let prefix = holder_key(digest, "");
    let mut scan = Scan::prefix(prefix.clone(), BATCH_ROWS);
    loop {
        let page = shared.store.scan(Table::Versions, scan.clone()).await?;
        let Some((last, _)) = page.last() else { return Ok(false) };
        scan.after = Some(last.clone());
        let mut stale = Commit::default();
        for (key, _) in page {
            if can_be_resumed(shared, &key[prefix.len()..]).await? {
                return Ok(true);
            }
            stale = stale.delete(Table::Versions, key);
        }
        match shared.store.commit(stale).await {
            Ok(()) | Err(CommitError::Conflict { .. }) => {}
            Err(CommitError::Store(error)) => return Err(error),
        }
    }
}

async fn can_be_resumed(shared: &Shared, id: &str) -> Result<bool, StoreError> {
    let stored = shared.store.get(Table::Sessions, &session_key(id)).await?;
    let row = stored.and_then(|stored| serde_json::from_value::<SessionRow>(stored.value).ok());
    Ok(row.is_some_and(|row| {
        row.state.is_active && shared.steady.now_ms() <= row.seen_ms + shared.resume_timeout_ms(row.mode)
    }))
}
