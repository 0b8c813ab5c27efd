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

use super::admit::Work;
use super::answer::Answer;
use super::begin::stamp;
use super::desk::Question;
use super::events::ClientEvent;
use super::{ConfirmationMode, Desk, Inner};
use crate::clock::epoch_ms;
use crate::confirmation::{ConfirmationRow, REMEMBERED_MS, Status, hash, new_token, preview};
use crate::envelope::before_the_handler;
use crate::ledger::Entry;
use crate::orchestrator::Shared;

/// How long to wait for a store that could not be told that a question has lapsed, and how often.
const EXPIRY_RETRY_BACKOFF: Duration = Duration::from_secs(5);
const MAX_EXPIRY_ATTEMPTS: usize = 12;

impl Inner {
    /// Asks a person about a call.
    pub(super) async fn ask(self: &Arc<Self>, work: Work) {
        let Some(tool) = self.snapshot.find(&work.entry.tool) else { return };
        let question = match self.same_question(&work.entry) {
            Known::Open(request) => Ok(request),
            Known::Lost(old) => self.new_question(&work, tool.metadata(), Some(old)).await,
            Known::No => self.new_question(&work, tool.metadata(), None).await,
        };
        let mut desk = self.lock();
        let answer = match question {
            Ok(request) => {
                let shown = ClientEvent::Confirmation {
                    call_id: work.entry.call_id.clone(),
                    request: request.clone(),
                };
                self.tell(&mut desk, shown);
                if desk.asking == ConfirmationMode::Suspend {
                    work.entry.ask(Arc::new(ConfirmationRequest { token: None, ..request }));
                    None
                } else {
                    Some(self.confirmation_required(&work.entry.tool, Some(&request)))
                }
            }
            Err(error) => Some(stamp(self, &work.entry.tool, error)),
        };
        if let Some(response) = answer {
            self.remember_unasked(&mut desk, &work.entry, &response);
            work.entry.answer(response.clone());
            self.hand_over(&mut desk);
            self.save_soon(&mut desk);
            drop(desk);
            self.shared.metrics.refused(&work.entry.tool, "confirmation");
            self.audit_call(&super::note::Told {
                call_id: &work.entry.call_id,
                turn: work.entry.turn,
                entry: Some(&work.entry),
                tool: &work.entry.tool,
                args: &work.args,
                trace: &work.trace,
                response: &response,
                how: Some("refused"),
            });
        }
    }

    /// An equal call that a person has not answered yet.
    fn same_question(&self, entry: &Arc<Entry>) -> Known {
        let mut desk = self.lock();
        let suspends = desk.asking == ConfirmationMode::Suspend;
        let open = desk.questions.iter_mut().find(|question| {
            question.content == entry.content
                && !question.is_claimed
                && self.shared.is_confirmation_open(&question.hash, question.expires_ms)
        });
        let Some(question) = open else { return Known::No };
        if let Some(request) = &question.request {
            if suspends {
                question.suspended = Some(entry.clone());
            }
            return Known::Open(request.clone());
        }
        // After a restart nobody has the token any more; the question is asked anew and the old one is void.
        let lost = question.hash.clone();
        desk.questions.retain(|question| question.hash != lost);
        self.shared.deadlines.close(&lost);
        Known::Lost(lost)
    }

    async fn new_question(
        self: &Arc<Self>,
        work: &Work,
        metadata: &quarterdeck_contracts::Metadata,
        replaces: Option<String>,
    ) -> Result<ConfirmationRequest, ToolError> {
        let entry = &work.entry;
        let token = new_token().map_err(|error| {
            tracing::error!(error = %error, "the operating system gives no random numbers");
            before_the_handler(ErrorType::Transient, "Nobody can be asked at the moment.".into()).retryable()
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
            args: work.args.clone(),
            preview: preview(metadata, &work.args),
        };
        let row = ConfirmationRow {
            session_id: self.id.to_string(),
            client_id: self.client.to_string(),
            mode: self.mode,
            registry_version: self.snapshot.version().to_owned(),
            tool: entry.tool.to_string(),
            args: work.args.clone(),
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
        // The desk knows of it before the store does, so that an equal call at the same time asks nothing of its own.
        {
            let mut desk = self.lock();
            let suspended = (desk.asking == ConfirmationMode::Suspend).then(|| entry.clone());
            desk.questions.push(Question {
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
            self.lock().forget_question(&hashed);
            self.shared.deadlines.close(&hashed);
            let error = match error {
                CommitError::Store(error) => error,
                CommitError::Conflict { .. } => StoreError::Failed(error.to_string()),
            };
            return Err(self.store_is_down(&error));
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
                // What comes of the answer decides; see `unclaim`.
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
                self.answer_as_elsewhere(hashed, &entry, status).await;
            }
            // Dropped undelivered, it goes to the connection that there is, now or next.
            _ => drop(self.expire(hashed)),
        }
    }

    /// A question that nobody has answered in time, and the answer of the call that waited for it.
    pub(super) fn expire(self: &Arc<Self>, hashed: &str) -> Option<Answer> {
        let mut desk = self.lock();
        let place =
            desk.questions.iter().position(|question| question.hash == hashed && !question.is_claimed)?;
        let question = desk.questions.remove(place);
        let answer = question.suspended.map(|entry| {
            let response = stamp(self, &entry.tool, expired());
            self.remember_unasked(&mut desk, &entry, &response);
            self.finish_unrun(&mut desk, &entry, response)
        });
        self.save_soon(&mut desk);
        drop(desk);
        self.audit_confirmation("expired", None, None);
        answer
    }

    /// A call that was answered without having run may be made again; its id stands for the answer.
    pub(super) fn remember_unasked(&self, desk: &mut Desk, entry: &Arc<Entry>, response: &Arc<ToolResponse>) {
        desk.ledger.forget(entry);
        if let Some(id) = &entry.provider_id {
            self.remember_refusal(desk, id, &entry.content, response, entry.turn);
        }
    }

    pub(super) fn confirmation_required(
        &self,
        tool: &str,
        request: Option<&ConfirmationRequest>,
    ) -> Arc<ToolResponse> {
        let mut error = before_the_handler(
            ErrorType::ConfirmationRequired,
            format!("A person must approve {tool} first."),
        )
        .with_suggestion("Tell the person that they are being asked, and go on; the outcome will be told.");
        // Never with the token: this is what a model reads.
        error.confirmation_request =
            request.map(|request| ConfirmationRequest { token: None, ..request.clone() });
        stamp(self, tool, error)
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

impl Desk {
    pub(super) fn forget_question(&mut self, hashed: &str) -> Option<Question> {
        let place = self.questions.iter().position(|question| question.hash == hashed)?;
        Some(self.questions.remove(place))
    }
}

/// The person did not answer in time.
pub(super) fn expired() -> ToolError {
    before_the_handler(
        ErrorType::ConfirmationExpired,
        "This confirmation has expired. Nothing was done.".into(),
    )
    .with_suggestion("Ask again if it is still wanted.")
}
