//! Writes conversations for operators, behind the answers: they are queued, and a crash may lose the last ones.

use quarterdeck_contracts::{Commit, CommitError, Scan, Store, StoreError, Table};
use quarterdeck_runtime::{HeardReceipt, Orchestrator, Session};
use serde_json::json;

use super::{HeardWords, TranscriptTurn, heard_key, index_key, session_prefix, turn_key};

/// How many rows are erased in one commit.
const BATCH_ROWS: usize = 500;

/// Keeps a turn that is over, if conversations are kept. `turn` is only made then.
pub(crate) fn record_turn(
    orchestrator: &Orchestrator,
    session: &Session,
    turn: impl FnOnce() -> TranscriptTurn,
) {
    let Some(until) = kept_until(orchestrator) else { return };
    let turn = turn();
    let (client, id) = (session.client(), session.id());
    let key = turn_key(client, id, turn.turn);
    let index = json!({ "clientId": client });
    queue(
        session,
        Commit::default().put_until(Table::History, key, json!(turn), Some(until)).put_until(
            Table::History,
            index_key(id),
            index,
            Some(until),
        ),
    );
}

/// Keeps how much of an answer was heard, if conversations are kept.
pub(crate) fn record_heard(orchestrator: &Orchestrator, session: &Session, receipt: HeardReceipt) {
    let Some(until) = kept_until(orchestrator) else { return };
    let key = heard_key(session.client(), session.id(), receipt.turn);
    let heard = json!(HeardWords::from(receipt));
    queue(session, Commit::default().put_until(Table::History, key, heard, Some(until)));
}

fn kept_until(orchestrator: &Orchestrator) -> Option<u64> {
    let retention = orchestrator.policy().transcript_retention?;
    Some(orchestrator.now_ms() + retention.as_millis() as u64)
}

fn queue(session: &Session, commit: Commit) {
    session.store_soon(commit);
}

/// Erases what is kept of one session: its user has deleted it.
pub(crate) async fn erase_conversation(
    store: &dyn Store,
    client: &str,
    session: &str,
) -> Result<(), StoreError> {
    let prefix = session_prefix(client, session);
    loop {
        let rows = store.scan(Table::History, Scan::prefix(prefix.clone(), BATCH_ROWS)).await?;
        let commit =
            rows.iter().fold(Commit::default(), |commit, (key, _)| commit.delete(Table::History, key));
        let is_last = rows.is_empty();
        let commit = if is_last { commit.delete(Table::History, index_key(session)) } else { commit };
        store.commit(commit).await.map_err(CommitError::into_store_error)?;
        if is_last {
            return Ok(());
        }
    }
}
