//! Until when a confirmation can be resolved.
//!
//! Within a process a confirmation expires by a clock that cannot be set; across a restart the state of its row counts,
//! and the time of day only within the time that it had been given. Expiry is written into the row, for good.

use std::time::Duration;

use quarterdeck_contracts::{Commit, CommitError, Scan, StoreError, Table};
use serde_json::json;

use super::REMEMBERED_MS;
use super::row::{ConfirmationRow, Status};
use crate::clock::epoch_ms;
use crate::shared::Shared;

/// How often a row that others change at the same time is read again.
const MAX_ATTEMPTS: usize = 16;
/// How long the store may take. A call that waits is answered then, whatever the disk does.
const STORE_TIMEOUT: Duration = Duration::from_secs(3);
/// How many rows are read at once.
const PAGE_ROWS: usize = 500;

impl Shared {
    /// How long an open confirmation can still be resolved; `None` when it has expired.
    pub(crate) fn time_left(&self, hashed: &str, row: &ConfirmationRow) -> Option<Duration> {
        let (wall, passed) = (epoch_ms(self.clock.now()), self.clock.monotonic());
        let left = Duration::from_millis(row.expires_ms.saturating_sub(wall));
        let deadline = {
            let mut deadlines = self.deadlines.lock();
            match deadlines.get(hashed) {
                Some(deadline) => *deadline,
                None => {
                    let given = row.time_given().unwrap_or(self.policy.confirmation_lifetime);
                    // A clock that stands before the request says nothing about how old it is.
                    let was_set_back = row.opened_ms.is_some_and(|opened| wall < opened);
                    let left = if was_set_back { Duration::ZERO } else { left.min(given) };
                    *deadlines.entry(hashed.to_owned()).or_insert(passed + left)
                }
            }
        };
        // A machine that slept has not counted that time, but its time of day has.
        let left = left.min(deadline.saturating_sub(passed));
        (!left.is_zero()).then_some(left)
    }

    /// Whether a confirmation that was requested in this process can still be resolved.
    pub(crate) fn is_confirmation_open(&self, hashed: &str, expires_ms: u64) -> bool {
        let deadline = self.deadlines.lock().get(hashed).copied();
        deadline.is_some_and(|deadline| deadline > self.clock.monotonic())
            && expires_ms > epoch_ms(self.clock.now())
    }

    /// How long until a confirmation of this process expires; zero when that is not known.
    pub(crate) fn until_deadline(&self, hashed: &str) -> Duration {
        let deadline = self.deadlines.lock().get(hashed).copied().unwrap_or_default();
        deadline.saturating_sub(self.clock.monotonic())
    }

    /// Makes expiry final, unless the confirmation was resolved. What its row says afterwards; `None` without a row.
    pub(crate) async fn store_expiry(&self, hashed: &str) -> Result<Option<Status>, StoreError> {
        match tokio::time::timeout(STORE_TIMEOUT, self.expire_in_store(hashed)).await {
            Ok(status) => status,
            Err(_) => Err(StoreError::Failed("it did not answer in time".into())),
        }
    }

    async fn expire_in_store(&self, hashed: &str) -> Result<Option<Status>, StoreError> {
        for _ in 0..MAX_ATTEMPTS {
            let Some(stored) = self.store.get(Table::Confirmations, hashed).await? else {
                self.deadlines.close(hashed);
                return Ok(None);
            };
            let Ok(row) = serde_json::from_value::<ConfirmationRow>(stored.value) else {
                return Err(StoreError::Failed("a stored confirmation cannot be read".into()));
            };
            if row.status != Status::Open {
                self.deadlines.close(hashed);
                return Ok(Some(row.status));
            }
            let row = ConfirmationRow { status: Status::Expired, ..row };
            let commit =
                Commit::default().check(Table::Confirmations, hashed, Some(stored.version)).put_until(
                    Table::Confirmations,
                    hashed,
                    json!(row),
                    Some(self.steady.now_ms() + REMEMBERED_MS),
                );
            match self.store.commit(commit).await {
                Ok(_) => {
                    self.deadlines.close(hashed);
                    return Ok(Some(Status::Expired));
                }
                Err(CommitError::Conflict { .. }) => {}
                Err(error) => return Err(error.into_store_error()),
            }
        }
        Err(StoreError::Failed("a confirmation is being changed all the time".into()))
    }

    /// Makes the expiry of confirmations final that no call waits for. Those of an earlier process are known from here on.
    pub(crate) async fn expire_due(&self) -> Result<(), StoreError> {
        let mut scan = Scan::prefix("", PAGE_ROWS);
        loop {
            let page = self.store.scan(Table::Confirmations, scan.clone()).await?;
            let Some((last, _)) = page.last() else { return Ok(()) };
            scan.after = Some(last.clone());
            for (hashed, stored) in page {
                let Ok(row) = serde_json::from_value::<ConfirmationRow>(stored.value) else { continue };
                // One of another node is that node's to end, by its own clock, for a while.
                let is_others = || self.node.is_some() && !self.deadlines.lock().contains_key(&hashed);
                let wall = epoch_ms(self.clock.now());
                if is_others() && wall < row.expires_ms + self.clock_tolerance_ms() {
                    continue;
                }
                if row.status == Status::Open && self.time_left(&hashed, &row).is_none() {
                    self.store_expiry(&hashed).await?;
                }
            }
        }
    }
}
