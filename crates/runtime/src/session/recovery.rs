//! How a session ends, and how it comes back.

use std::sync::Arc;

use quarterdeck_contracts::{Scan, StoreError, Table};
use serde_json::json;

use super::answer::{AnswerSource, PendingAnswer};
use super::data::PendingConfirmation;
use super::events::ClientEvent;
use super::reserve::{outcome_unknown, refusal};
use super::rows::CallRow;
use super::{Session, SessionCore};
use crate::confirmation::{ConfirmationRow, Status};
use crate::gates::Redelivery;
use crate::ledger::Ledger;
use crate::state::PendingEnd;

/// How many rows are read at once.
const PAGE_ROWS: usize = 500;

impl Session {
    /// Ends the session. What has begun to write finishes; nothing else does. Ending it again changes nothing.
    pub async fn end(&self, end: PendingEnd) {
        let core = &self.core;
        let (transition, commit) = {
            let mut data = core.lock();
            for entry in &data.unfinished {
                entry.cancel();
            }
            let transition = data.controller.end(&end.reason);
            data.facts = None;
            if transition.applied {
                core.push_event(&mut data, ClientEvent::End(end.clone()));
            }
            data.unsaved.session = true;
            (transition, core.unsaved(&mut data))
        };
        if !transition.applied {
            core.audit_transitions(vec![transition]);
            return;
        }
        core.audit_transitions(vec![transition]);
        core.audit_session("session_end", json!({ "reason": end.reason }));
        core.shared.metrics.session_ended(core.mode);
        core.shared.voice_sessions.closed(core.mode, &core.client);
        core.shared.forget(&core.id);
        if let Err(error) = core.commit(commit).await {
            tracing::error!(session = %core.id, error = %error, "the end of a session was not stored");
        }
    }
}

/// A session that nobody holds waits in the store, with everything it has come to.
impl Drop for SessionCore {
    fn drop(&mut self) {
        if !*self.is_registered.get_mut() {
            return;
        }
        self.save_now();
        if self.lock().controller.state().is_active {
            self.shared.metrics.session_ended(self.mode);
            self.shared.voice_sessions.closed(self.mode, &self.client);
        }
        self.shared.forget_dropped(&self.id);
    }
}

impl SessionCore {
    /// Whether a client is there.
    pub(crate) fn is_connected(&self) -> bool {
        self.lock().connection.is_some()
    }

    /// When a client was last there; `None` while one is.
    pub(crate) fn disconnected_since(&self) -> Option<u64> {
        let data = self.lock();
        data.connection.is_none().then_some(data.seen_ms)
    }

    /// When something last happened.
    pub(crate) fn seen_ms(&self) -> u64 {
        self.lock().seen_ms
    }

    /// Brings back what the store knows of the session's calls and questions.
    pub(crate) async fn restore(self: &Arc<Self>, notes: Vec<String>) -> Result<(), StoreError> {
        let rows = self.stored_calls().await?;
        {
            let mut data = self.lock();
            data.notes = notes;
            data.call_prefix = format!("call_{}_", crate::orchestrator::random_hex(4).unwrap_or_default());
            // The session's own row may be older than its last write.
            let last = rows.iter().map(|row| row.turn).max().unwrap_or(0);
            let last = last.max(data.ledger.turn_number());
            data.ledger = Ledger::new(last, self.shared.policy.max_remembered_calls);
            // Nobody knows which look-ups of the turn were not stored in time, and a budget is never exceeded: what
            // the turn has recorded is answered from the record, and the next turn is free again.
            let budgets = *self.shared.policy.budgets(self.mode);
            let turn = data.ledger.turn();
            (turn.calls, turn.retrieval) = (budgets.calls, budgets.retrieval);
            turn.has_read_foreign_text = true;
            if !data.notes.is_empty() {
                data.ledger.announce_foreign_text();
            }
        }
        for row in rows {
            self.restore_call(&row);
        }
        self.restore_confirmations().await
    }

    async fn stored_calls(&self) -> Result<Vec<CallRow>, StoreError> {
        let mut rows = Vec::new();
        let mut scan = Scan::prefix(format!("{}/", self.id), PAGE_ROWS);
        loop {
            let page = self.shared.store.scan(Table::Calls, scan.clone()).await?;
            let Some((last, _)) = page.last() else { return Ok(rows) };
            scan.after = Some(last.clone());
            for (key, row) in page {
                match serde_json::from_value::<CallRow>(row.value) {
                    Ok(row) => rows.push(row),
                    Err(error) => tracing::error!(key, error = %error, "a stored call cannot be read"),
                }
            }
        }
    }

    fn restore_call(&self, row: &CallRow) {
        let mut data = self.lock();
        let response = match &row.envelope {
            Some(envelope) => Arc::new(envelope.clone()),
            // It had begun when the process ended: it is not run again, and whoever asks is told the truth.
            None => refusal(self, &row.tool, outcome_unknown(&row.tool)),
        };
        if row.is_refusal {
            let id = row.provider_id.as_deref().unwrap_or(&row.call_id);
            // A question that a person has answered since is on record beside its outcome, which counts.
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
        } else if row.writes {
            data.undelivered.push(PendingAnswer {
                call_id: entry.call_id.clone(),
                name: entry.tool.clone(),
                what: AnswerSource::Call(entry),
            });
        }
    }

    async fn restore_confirmations(self: &Arc<Self>) -> Result<(), StoreError> {
        let mut scan = Scan::prefix("", PAGE_ROWS);
        loop {
            let page = self.shared.store.scan(Table::Confirmations, scan.clone()).await?;
            let Some((last, _)) = page.last() else { return Ok(()) };
            scan.after = Some(last.clone());
            for (hash, row) in page {
                let Ok(row) = serde_json::from_value::<ConfirmationRow>(row.value) else { continue };
                let is_open = row.status == Status::Open;
                if row.session_id != *self.id || !is_open || row.registry_version != self.snapshot.version() {
                    continue;
                }
                let Some(left) = self.shared.time_left(&hash, &row) else {
                    self.shared.store_expiry(&hash).await?;
                    continue;
                };
                self.lock().confirmations.push(PendingConfirmation {
                    content: row.content.as_str().into(),
                    suspended: None,
                    request: None,
                    hash: hash.clone(),
                    expires_ms: row.expires_ms,
                    is_claimed: false,
                });
                self.expire_later(hash, left);
            }
        }
    }
}
