//! Asking a person.
//!
//! The question is stored before it is shown, with the very call that it is about. How their answer is heard is in
//! `hearing`.

use std::sync::Arc;
use std::time::Duration;

use quarterdeck_contracts::{
    Commit, CommitError, ConfirmationRequest, ErrorType, StoreError, Table, ToolError, ToolResponse,
};
use serde_json::json;

use super::admit::ToolCall;
use super::answer::Answer;
use super::data::PendingConfirmation;
use super::events::ClientEvent;
use super::reserve::refusal;
use super::{ConfirmationMode, SessionCore, SessionData};
use crate::clock::epoch_ms;
use crate::confirmation::{ConfirmationRow, REMEMBERED_MS, Status, hash, new_token, preview};
use crate::envelope::refusal_error;
use crate::ledger::Entry;
use crate::orchestrator::Shared;

/// How long to wait for a store that could not be told that a question has lapsed, and how often.
const EXPIRY_RETRY_BACKOFF: Duration = Duration::from_secs(5);
const MAX_EXPIRY_ATTEMPTS: usize = 12;

impl SessionCore {
    /// Asks a person about a call.
    pub(super) async fn ask(self: &Arc<Self>, call: ToolCall) {
        let Some(tool) = self.snapshot.find(&call.entry.tool) else { return };
        let confirmation = match self.find_open(&call.entry) {
            Known::Open(request) => Ok(request),
            Known::Lost(old) => self.open_new(&call, tool.metadata(), Some(old)).await,
            Known::No => self.open_new(&call, tool.metadata(), None).await,
        };
        let mut data = self.lock();
        let answer = match confirmation {
            Ok(request) => {
                let shown = ClientEvent::Confirmation {
                    call_id: call.entry.call_id.clone(),
                    request: request.clone(),
                };
                self.push_event(&mut data, shown);
                if data.confirmation_mode == ConfirmationMode::Suspend {
                    call.entry.await_confirmation(Arc::new(ConfirmationRequest { token: None, ..request }));
                    None
                } else {
                    Some(self.confirmation_required(&call.entry.tool, Some(&request)))
                }
            }
            Err(error) => Some(refusal(self, &call.entry.tool, error)),
        };
        if let Some(response) = answer {
            self.replace_with_refusal(&mut data, &call.entry, &response);
            call.entry.set_answer(response.clone());
            self.hand_over(&mut data);
            self.save_soon(&mut data);
            drop(data);
            self.shared.metrics.record_refusal(&call.entry.tool, "confirmation");
            self.audit_call(&super::audit::AuditRecord {
                call_id: &call.entry.call_id,
                turn: call.entry.turn,
                entry: Some(&call.entry),
                tool: &call.entry.tool,
                args: &call.args,
                trace: &call.trace,
                response: &response,
                how: Some("refused"),
            });
        }
    }

    /// An equal call that a person has not answered yet.
    fn find_open(&self, entry: &Arc<Entry>) -> Known {
        let mut data = self.lock();
        let suspends = data.confirmation_mode == ConfirmationMode::Suspend;
        let open = data.confirmations.iter_mut().find(|confirmation| {
            confirmation.content == entry.content
                && !confirmation.is_claimed
                && self.shared.is_confirmation_open(&confirmation.hash, confirmation.expires_ms)
        });
        let Some(confirmation) = open else { return Known::No };
        if let Some(request) = &confirmation.request {
            if suspends {
                confirmation.suspended = Some(entry.clone());
            }
            return Known::Open(request.clone());
        }
        // After a restart nobody has the token any more; the question is asked anew and the old one is void.
        let lost = confirmation.hash.clone();
        data.confirmations.retain(|confirmation| confirmation.hash != lost);
        self.shared.deadlines.close(&lost);
        Known::Lost(lost)
    }

    async fn open_new(
        self: &Arc<Self>,
        call: &ToolCall,
        metadata: &quarterdeck_contracts::Metadata,
        replaces: Option<String>,
    ) -> Result<ConfirmationRequest, ToolError> {
        let entry = &call.entry;
        let token = new_token().map_err(|error| {
            tracing::error!(error = %error, "the operating system gives no random numbers");
            refusal_error(ErrorType::Transient, "Nobody can be asked at the moment.".into()).retryable()
        })?;
        let hashed = hash(token.expose());
        // People are told the time of day; what counts is how much time passes.
        let lifetime = self.shared.policy.confirmation_lifetime;
        let opened_ms = epoch_ms(self.now());
        let expires_ms = opened_ms + lifetime.as_millis() as u64;
        let request = ConfirmationRequest {
            token: Some(token),
            expires: expires_ms,
            tool: entry.tool.to_string(),
            args: call.args.clone(),
            preview: preview(metadata, &call.args),
        };
        let row = ConfirmationRow {
            session_id: self.id.to_string(),
            client_id: self.client.to_string(),
            mode: self.mode,
            registry_version: self.snapshot.version().to_owned(),
            tool: entry.tool.to_string(),
            args: call.args.clone(),
            content: entry.content.to_string(),
            call_id: entry.call_id.to_string(),
            provider_id: entry.provider_id.as_deref().map(str::to_owned),
            key: entry.key().to_string(),
            turn: entry.turn,
            opened_ms: Some(opened_ms),
            expires_ms,
            status: Status::Open,
        };
        self.shared.deadlines.open(&hashed, self.shared.clock.monotonic() + lifetime);
        // The session knows of it before the store does, so that an equal call at the same time asks nothing of its own.
        {
            let mut data = self.lock();
            let suspended = (data.confirmation_mode == ConfirmationMode::Suspend).then(|| entry.clone());
            data.confirmations.push(PendingConfirmation {
                content: entry.content.clone(),
                suspended,
                request: Some(request.clone()),
                hash: hashed.clone(),
                expires_ms,
                is_claimed: false,
            });
        }
        let mut commit = Commit::default().check(Table::Confirmations, hashed.clone(), None).put_until(
            Table::Confirmations,
            hashed.clone(),
            json!(row),
            Some(self.now_ms() + lifetime.as_millis() as u64 + REMEMBERED_MS),
        );
        if let Some(old) = replaces {
            commit = commit.delete(Table::Confirmations, old);
        }
        if let Err(error) = self.commit(commit).await {
            self.lock().remove_confirmation(&hashed);
            self.shared.deadlines.close(&hashed);
            let error = match error {
                CommitError::Store(error) => error,
                CommitError::Conflict { .. } => StoreError::Failed(error.to_string()),
            };
            return Err(self.store_failed(&error));
        }
        self.audit_confirmation("requested", Some(&entry.call_id), Some(&entry.tool));
        self.expire_later(hashed, lifetime);
        Ok(request)
    }

    /// Sees to it that a call does not wait for a person for ever, and that a question which has lapsed stays so, also
    /// when the session is not held any more.
    pub(super) fn expire_later(self: &Arc<Self>, hashed: String, wait: Duration) {
        let (session, shared) = (Arc::downgrade(self), Arc::downgrade(&self.shared));
        tokio::spawn(async move {
            tokio::time::sleep(wait).await;
            let is_claimed = session.upgrade().is_some_and(|session| session.is_claimed(&hashed));
            if is_claimed {
                // What comes of the answer decides; see `release`.
                return;
            }
            let Some(shared) = shared.upgrade() else { return };
            let stored = shared.store_expiry(&hashed).await;
            if let Some(session) = session.upgrade() {
                session.report_expired(&hashed, stored.as_ref().ok().copied().flatten()).await;
            }
            if let Err(error) = stored {
                retry_store_expiry(&shared, &hashed, error).await;
            }
        });
    }

    /// A call does not wait any longer, also when the store could not be told: in this process the deadline stands.
    async fn report_expired(self: &Arc<Self>, hashed: &str, status: Option<Status>) {
        match (status, self.waiting(hashed)) {
            (Some(status @ (Status::Approved | Status::Denied)), Some(entry)) => {
                self.answer_from_record(hashed, &entry, status).await;
            }
            // Dropped undelivered, it goes to the connection that there is, now or next.
            _ => drop(self.expire(hashed)),
        }
    }

    /// A question that nobody has answered in time, and the answer of the call that waited for it.
    pub(super) fn expire(self: &Arc<Self>, hashed: &str) -> Option<Answer> {
        let mut data = self.lock();
        let place = data
            .confirmations
            .iter()
            .position(|confirmation| confirmation.hash == hashed && !confirmation.is_claimed)?;
        let confirmation = data.confirmations.remove(place);
        let answer = confirmation.suspended.map(|entry| {
            let response = refusal(self, &entry.tool, expired());
            self.replace_with_refusal(&mut data, &entry, &response);
            self.answer_unexecuted(&mut data, &entry, response)
        });
        self.save_soon(&mut data);
        drop(data);
        self.audit_confirmation("expired", None, None);
        answer
    }

    /// A call that was answered without having run may be made again; its id stands for the answer.
    pub(super) fn replace_with_refusal(
        &self,
        data: &mut SessionData,
        entry: &Arc<Entry>,
        response: &Arc<ToolResponse>,
    ) {
        data.ledger.remove(entry);
        if let Some(id) = &entry.provider_id {
            self.remember_refusal(data, id, &entry.content, response, entry.turn);
        }
    }

    pub(super) fn confirmation_required(
        &self,
        tool: &str,
        request: Option<&ConfirmationRequest>,
    ) -> Arc<ToolResponse> {
        let mut error =
            refusal_error(ErrorType::ConfirmationRequired, format!("A person must approve {tool} first."))
                .with_suggestion(
                    "Tell the person that they are being asked, and go on; the outcome will be told.",
                );
        // Never with the token: this is what a model reads.
        error.confirmation_request =
            request.map(|request| ConfirmationRequest { token: None, ..request.clone() });
        refusal(self, tool, error)
    }
}

/// Tells a store that has failed again for a while that a question has lapsed.
async fn retry_store_expiry(shared: &Shared, hashed: &str, mut error: StoreError) {
    for _ in 0..MAX_EXPIRY_ATTEMPTS {
        tracing::error!(error = %error, "confirmation expiry was not stored, trying again");
        tokio::time::sleep(EXPIRY_RETRY_BACKOFF).await;
        match shared.store_expiry(hashed).await {
            Ok(_) => return,
            Err(again) => error = again,
        }
    }
}

/// What is known of a question.
enum Known {
    No,
    Open(ConfirmationRequest),
    /// It is open, but nobody has its token.
    Lost(String),
}

impl SessionData {
    pub(super) fn remove_confirmation(&mut self, hashed: &str) -> Option<PendingConfirmation> {
        let place = self.confirmations.iter().position(|confirmation| confirmation.hash == hashed)?;
        Some(self.confirmations.remove(place))
    }
}

/// The person did not answer in time.
pub(super) fn expired() -> ToolError {
    refusal_error(ErrorType::ConfirmationExpired, "This confirmation has expired. Nothing was done.".into())
        .with_suggestion("Ask again if it is still wanted.")
}
