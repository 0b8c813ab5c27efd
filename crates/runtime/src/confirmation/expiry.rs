//! Ends confirmations that the user has not resolved in time, so that no call waits for ever.

use std::sync::Arc;
use std::time::Duration;

use quarterdeck_contracts::StoreError;

use super::outcome::{answer_from_record, suspended_call};
use super::row::Status;
use crate::envelope::confirmation_expired;
use crate::session::{Answer, SessionCore};
use crate::shared::Shared;

/// How long to wait, and how often, for a store that could not take the expiry of a confirmation.
const RETRY_BACKOFF: Duration = Duration::from_secs(5);
const MAX_RETRIES: usize = 12;

/// Ends a confirmation after a time, for good, also when its session is not held any more.
pub(crate) fn expire_later(core: &Arc<SessionCore>, hashed: String, wait: Duration) {
    let (core, shared) = (Arc::downgrade(core), Arc::downgrade(&core.shared));
    tokio::spawn(async move {
        tokio::time::sleep(wait).await;
        let is_claimed = core.upgrade().is_some_and(|core| {
            core.lock().find_confirmation(&hashed).is_some_and(|confirmation| confirmation.is_claimed)
        });
        if is_claimed {
            // What comes of the decision counts. If nothing does, the claim's release calls this again.
            return;
        }
        let Some(shared) = shared.upgrade() else { return };
        let stored = shared.store_expiry(&hashed).await;
        if let Some(core) = core.upgrade() {
            report_expired(&core, &hashed, stored.as_ref().ok().copied().flatten()).await;
        }
        if let Err(error) = stored {
            retry_store_expiry(&shared, &hashed, error).await;
        }
    });
}

/// The call does not wait any longer, even if the expiry could not be stored: in this process the deadline holds.
async fn report_expired(core: &Arc<SessionCore>, hashed: &str, status: Option<Status>) {
    match (status, suspended_call(core, hashed)) {
        (Some(status @ (Status::Approved | Status::Denied)), Some(entry)) => {
            answer_from_record(core, hashed, &entry, status).await;
        }
        // Dropped undelivered, it goes to the connection that there is, now or next.
        _ => drop(expire(core, hashed)),
    }
}

/// Closes a confirmation whose time is over, and answers the call that waited for it.
pub(super) fn expire(core: &Arc<SessionCore>, hashed: &str) -> Option<Answer> {
    let mut data = core.lock();
    if data.find_confirmation(hashed)?.is_claimed {
        return None;
    }
    let suspended = data.remove_confirmation(hashed)?.suspended;
    let answer = suspended.map(|entry| {
        let response = core.refusal(&entry.tool, confirmation_expired());
        core.answer_suspended(&mut data, &entry, response)
    });
    core.save_soon(&mut data);
    drop(data);
    core.audit_confirmation("expired", None, None);
    answer
}

async fn retry_store_expiry(shared: &Shared, hashed: &str, mut error: StoreError) {
    for _ in 0..MAX_RETRIES {
        tracing::error!(error = %error, "confirmation expiry was not stored, retrying");
        tokio::time::sleep(RETRY_BACKOFF).await;
        match shared.store_expiry(hashed).await {
            Ok(_) => return,
            Err(again) => error = again,
        }
    }
}
