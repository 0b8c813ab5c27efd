//! Asking a person.
//!
//! The question is stored before it is shown, with the very call that it is about. How their answer is heard is in
//! `hearing`.

use std::sync::Arc;

use quarterdeck_contracts::{
    Commit, CommitError, ConfirmationRequest, ErrorType, Mode, StoreError, Table, ToolError, ToolResponse,
};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::admit::Work;
use super::answer::Answer;
use super::begin::stamp;
use super::desk::Question;
use super::events::ClientEvent;
use super::{Asking, Desk, Inner};
use crate::confirmation::{hash, new_token, preview};
use crate::envelope::before_the_handler;
use crate::ledger::Entry;

/// How long an answered question is remembered, so that a late click is told what is true.
pub(super) const REMEMBERED_MS: u64 = 3_600_000;

/// A question, as the store keeps it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct ConfirmationRow {
    pub(crate) session_id: String,
    pub(crate) client_id: String,
    pub(crate) mode: Mode,
    pub(crate) registry_version: String,
    pub(crate) tool: String,
    /// As they will be run.
    pub(crate) args: Value,
    /// As the model wrote them, with the tool: what makes two calls equal.
    pub(crate) content: String,
    pub(crate) call_id: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) provider_id: Option<String>,
    pub(crate) key: String,
    pub(crate) turn: u64,
    pub(crate) expires_ms: u64,
    pub(crate) status: Status,
}

/// What has become of a question.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Status {
    Open,
    Approved,
    Denied,
}

impl Inner {
    /// Asks a person about a call.
    pub(super) async fn ask(self: &Arc<Self>, work: Work) {
        let now = self.now_ms();
        let lifetime = self.shared.policy.confirmation_lifetime;
        let Some(tool) = self.snapshot.find(&work.entry.tool) else { return };
        let question = match self.same_question(&work.entry, now) {
            Known::Open(request) => Ok(request),
            Known::Lost(old) => {
                self.new_question(&work, tool.metadata(), now + lifetime.as_millis() as u64, Some(old)).await
            }
            Known::No => {
                self.new_question(&work, tool.metadata(), now + lifetime.as_millis() as u64, None).await
            }
        };
        let mut desk = self.lock();
        let answer = match question {
            Ok(request) => {
                let shown = ClientEvent::Confirmation {
                    call_id: work.entry.call_id.clone(),
                    request: request.clone(),
                };
                self.tell(&mut desk, shown);
                if desk.asking == Asking::Suspends {
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
    fn same_question(&self, entry: &Arc<Entry>, now: u64) -> Known {
        let mut desk = self.lock();
        let suspends = desk.asking == Asking::Suspends;
        let open = desk.questions.iter_mut().find(|question| {
            question.content == entry.content && question.expires_ms > now && !question.is_claimed
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
        Known::Lost(lost)
    }

    async fn new_question(
        self: &Arc<Self>,
        work: &Work,
        metadata: &quarterdeck_contracts::Metadata,
        expires_ms: u64,
        replaces: Option<String>,
    ) -> Result<ConfirmationRequest, ToolError> {
        let entry = &work.entry;
        let token = new_token().map_err(|error| {
            tracing::error!(error = %error, "the operating system gives no random numbers");
            before_the_handler(ErrorType::Transient, "Nobody can be asked at the moment.".into()).retryable()
        })?;
        let hashed = hash(token.expose());
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
            expires_ms,
            status: Status::Open,
        };
        // The desk knows of it before the store does, so that an equal call at the same time asks nothing of its own.
        {
            let mut desk = self.lock();
            let suspended = (desk.asking == Asking::Suspends).then(|| entry.clone());
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
            Some(expires_ms + REMEMBERED_MS),
        );
        if let Some(old) = replaces {
            commit = commit.delete(Table::Confirmations, old);
        }
        if let Err(error) = self.commit(commit).await {
            self.lock().forget_question(&hashed);
            let error = match error {
                CommitError::Store(error) => error,
                CommitError::Changed { .. } => StoreError::Failed(error.to_string()),
            };
            return Err(self.store_is_down(&error));
        }
        self.audit_confirmation("requested", Some(&entry.call_id), Some(&entry.tool));
        self.expire_later(hashed, expires_ms);
        Ok(request)
    }

    /// Sees to it that a call does not wait for a person for ever.
    pub(super) fn expire_later(self: &Arc<Self>, hashed: String, expires_ms: u64) {
        let session = Arc::downgrade(self);
        let wait = std::time::Duration::from_millis(expires_ms.saturating_sub(self.now_ms()));
        tokio::spawn(async move {
            tokio::time::sleep(wait).await;
            if let Some(session) = session.upgrade() {
                // Dropped undelivered, it goes to whoever is connected, now or next.
                drop(session.expire(&hashed));
            }
        });
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
