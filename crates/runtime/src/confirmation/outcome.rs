//! The answer of a suspended call whose confirmation was resolved elsewhere, or has expired.

use std::sync::Arc;

use quarterdeck_contracts::ToolResponse;

use super::row::Status;
use crate::envelope::{confirmation_denied, confirmation_expired, outcome_lost, replayed};
use crate::ledger::Entry;
use crate::pipeline::{Reservation, find_recorded};
use crate::session::{Answer, SessionCore};

/// Answers a suspended call with what the store knows of it.
pub(super) async fn answer_from_record(
    core: &Arc<SessionCore>,
    hash: &str,
    entry: &Arc<Entry>,
    status: Status,
) {
    let refusal = |error| core.refusal(&entry.tool, error);
    let response = match status {
        Status::Denied => refusal(confirmation_denied(&entry.tool)),
        Status::Expired => refusal(confirmation_expired()),
        Status::Open | Status::Approved => match find_recorded(core, entry).await {
            Reservation::Recorded(envelope) => Arc::new(replayed(&envelope, entry.turn)),
            _ => refusal(outcome_lost(&entry.tool, entry.writes)),
        },
    };
    // Dropped undelivered, it goes to the client that is connected.
    drop(close(core, hash, entry, response));
}

/// Closes a confirmation that was decided through another node, and answers the call that waits for it; `false` while that
/// node still executes it.
pub(crate) async fn take_decision(core: &Arc<SessionCore>, hash: &str, status: Status) -> bool {
    let Some(entry) = suspended_call(core, hash) else {
        // The call was answered when the user was asked. What came of it is told by the node that has the session.
        return core.lock().remove_confirmation(hash).is_some();
    };
    if status == Status::Approved && !matches!(find_recorded(core, &entry).await, Reservation::Recorded(_)) {
        return false;
    }
    core.shared.deadlines.close(hash);
    answer_from_record(core, hash, &entry, status).await;
    true
}

/// The call that waits for a confirmation which is not being resolved here.
pub(super) fn suspended_call(core: &SessionCore, hash: &str) -> Option<Arc<Entry>> {
    let mut data = core.lock();
    let confirmation = data.find_confirmation(hash)?;
    confirmation.suspended.clone().filter(|_| !confirmation.is_claimed)
}

/// Removes a confirmation whose call has its outcome already.
pub(super) fn close(
    core: &Arc<SessionCore>,
    hash: &str,
    entry: &Arc<Entry>,
    response: Arc<ToolResponse>,
) -> Answer {
    let mut data = core.lock();
    let confirmation = data.remove_confirmation(hash);
    if confirmation.is_some_and(|confirmation| confirmation.suspended.is_some()) {
        let answer = core.answer_suspended(&mut data, entry, response);
        core.save_soon(&mut data);
        return answer;
    }
    Answer::unguarded(entry.call_id.clone(), entry.tool.clone(), response)
}
