//! What a session gets back from the store after a restart.

use std::sync::Arc;

use quarterdeck_contracts::{Mode, StoreError, Table};

use crate::confirmation::{ConfirmationRow, Status, expire_later, index_key};
use crate::envelope::outcome_unknown;
use crate::gates::Redelivery;
use crate::ids::random_hex;
use crate::ledger::TurnFacts;
use crate::session::{CallRow, PendingAnswer, PendingConfirmation, SessionCore};
use crate::store_keys::all_rows;
use crate::tasks::restore_outcomes;

/// Restores the session's calls and open confirmations. Those that were requested under another version of the tools are
/// void; how many there are. `turn` is what the node before has handed over of the present turn, if it could.
pub(crate) async fn restore(
    core: &Arc<SessionCore>,
    notes: Vec<String>,
    turn: Option<&TurnFacts>,
) -> Result<usize, StoreError> {
    let rows = stored_calls(core).await?;
    {
        let mut data = core.lock();
        data.notes.texts = notes;
        data.call_ids.prefix = format!("call_{}_", random_hex(4).unwrap_or_default());
        // The session's own row may be older than its last write.
        let last = rows.iter().map(|row| row.turn).max().unwrap_or(0);
        let last = last.max(data.ledger.turn_number());
        data.ledger = core.new_ledger(last);
        if !turn.is_some_and(|turn| data.ledger.continue_turn(turn)) {
            // It is not known which look-ups of the turn were not stored in time, and a budget is never exceeded: what the
            // turn has recorded is answered from the record, and the next turn is free again.
            data.ledger.turn().exhaust(core.shared.policy.budgets(core.mode));
        }
        if !data.notes.texts.is_empty() {
            data.ledger.announce_foreign_text();
        }
    }
    for row in rows {
        restore_call(core, &row);
    }
    restore_outcomes(core).await?;
    restore_confirmations(core).await
}

async fn stored_calls(core: &SessionCore) -> Result<Vec<CallRow>, StoreError> {
    let rows = all_rows(&*core.shared.store, Table::Calls, &format!("{}/", core.id)).await?;
    let parsed = rows.into_iter().filter_map(|(key, value)| {
        let row = serde_json::from_value::<CallRow>(value);
        row.inspect_err(|error| tracing::error!(key, error = %error, "stored call cannot be read")).ok()
    });
    Ok(parsed.collect())
}

fn restore_call(core: &SessionCore, row: &CallRow) {
    let mut data = core.lock();
    let response = match &row.envelope {
        Some(envelope) => Arc::new(envelope.clone()),
        // It had started when the process ended: it is not run again, and its answer says so.
        None => core.refusal(&row.tool, outcome_unknown(&row.tool)),
    };
    if row.is_refusal {
        let id = row.provider_id.as_deref().unwrap_or(&row.call_id);
        // A request for approval that was resolved since is on record beside its outcome, which counts.
        if data.ledger.redelivery(Some(id), &row.content) == Redelivery::New {
            data.ledger.remember_refusal(id, row.content.as_str().into(), response, row.turn);
        }
        return;
    }
    let entry = row.entry();
    entry.set_answer(response);
    data.ledger.insert(entry.clone());
    if row.is_delivered {
        data.ledger.mark_delivered(&entry);
        // A live model is resumed from a moment before its last answers, and told again what the user said since: what it was
        // told of its writes it may have forgotten, and the user may have begun another turn when it makes them again.
        if core.mode == Mode::Voice && entry.turn == data.ledger.turn_number() {
            data.ledger.mark_forgotten(&entry);
        }
    } else if row.writes {
        data.undelivered.push(PendingAnswer::of_call(&entry));
    }
}

async fn restore_confirmations(core: &Arc<SessionCore>) -> Result<usize, StoreError> {
    let store = &core.shared.store;
    let mut void = 0;
    let prefix = index_key(&core.id, "");
    for (key, _) in all_rows(&**store, Table::SessionConfirmations, &prefix).await? {
        let hash = key[prefix.len()..].to_owned();
        let stored = store.get(Table::Confirmations, &hash).await?;
        let row = stored.and_then(|row| serde_json::from_value::<ConfirmationRow>(row.value).ok());
        let is_open = |row: &ConfirmationRow| row.status == Status::Open && row.session_id == *core.id;
        let Some(row) = row.filter(is_open) else { continue };
        if row.registry_version != core.snapshot.version() {
            void += 1;
            continue;
        }
        let Some(left) = core.shared.time_left(&hash, &row) else {
            core.shared.store_expiry(&hash).await?;
            continue;
        };
        core.lock().confirmations.push(PendingConfirmation {
            call_id: row.call_id.as_str().into(),
            content: row.content.as_str().into(),
            suspended: None,
            request: None,
            hash: hash.clone(),
            expires_ms: row.expires_ms,
            is_claimed: false,
            wrong_codes: 0,
        });
        expire_later(core, hash, left);
    }
    Ok(void)
}
