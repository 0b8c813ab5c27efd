//! Hearing a person's answer.
//!
//! The answer redeems the question in the same commit that marks the call as begun, so that double clicks, two tabs and
//! crashes come to at most one execution.

use std::sync::Arc;

use quarterdeck_contracts::{
    Check, Commit, CommitError, ConfirmationAnswer, ConfirmationRequest, ErrorType, Outcome, SideEffects,
    StoreError, Table, ToolError, ToolResponse, Write,
};
use serde_json::{Value, json};
use tokio::sync::oneshot;

use super::admit::ToolCall;
use super::answer::Answer;
use super::batch::start;
use super::data::PendingConfirmation;
use super::events::{ClientEvent, DeliveryReason};
use super::request::expired;
use super::reserve::{Reservation, outcome_unknown, refusal};
use super::{Session, SessionCore};
use crate::confirmation::{ConfirmationRow, REMEMBERED_MS, Status, hash};
use crate::envelope::refusal_error;
use crate::ledger::{CallIdentity, Entry};

/// What the begin of an approved call uses up.
#[derive(Debug, Clone)]
pub(super) struct RedemptionCommit {
    pub(super) commit: Commit,
}

impl Session {
    /// Which call a token is about, if we have issued it for this session and it was not used. One that has expired
    /// is still about its call: the client that brings it is told so.
    pub async fn find_confirmation_call(&self, token: &str) -> Result<Option<String>, StoreError> {
        let row = self.core.shared.store.get(Table::Confirmations, &hash(token)).await?;
        let row = row.and_then(|row| serde_json::from_value::<ConfirmationRow>(row.value).ok());
        let is_unused = |row: &ConfirmationRow| matches!(row.status, Status::Open | Status::Expired);
        let unused = row.filter(|row| self.core.is_ours(row) && is_unused(row));
        Ok(unused.map(|row| row.call_id))
    }

    /// Whether a question of this session that was asked by this process can still be answered.
    pub fn is_confirmation_open(&self, request: &ConfirmationRequest) -> bool {
        let token = request.token.as_ref();
        token.is_some_and(|token| {
            self.core.shared.is_confirmation_open(&hash(token.expose()), request.expires)
        })
    }

    /// The person's answer. Approved, the stored call runs; whatever happens, this tells it.
    pub async fn resolve_confirmation(&self, token: &str, answer: ConfirmationAnswer) -> Answer {
        let core = &self.core;
        let hashed = hash(token);
        let row = match core.shared.store.get(Table::Confirmations, &hashed).await {
            Ok(row) => row,
            Err(error) => return core.error_answer(None, core.store_failed(&error)),
        };
        let parsed = row.and_then(|row| {
            serde_json::from_value::<ConfirmationRow>(row.value).ok().map(|value| (value, row.version))
        });
        let Some((row, version)) = parsed.filter(|(row, _)| core.is_ours(row)) else {
            core.audit_confirmation("invalid", None, None);
            return core.error_answer(None, invalid());
        };
        let status = match core.status_of(&hashed, &row).await {
            Ok(status) => status,
            Err(error) => return core.error_answer(Some(&row), core.store_failed(&error)),
        };
        match status {
            Status::Open => {}
            Status::Expired => {
                core.audit_confirmation("expired", Some(&row.call_id), Some(&row.tool));
                // Whoever is told here is told for the call that waited, which then is not told apart.
                let waited = core.expire(&hashed);
                return waited.unwrap_or_else(|| core.error_answer(Some(&row), expired()));
            }
            Status::Approved | Status::Denied => {
                core.audit_confirmation("used", Some(&row.call_id), Some(&row.tool));
                if let Some(entry) = core.waiting(&hashed) {
                    core.answer_from_record(&hashed, &entry, status).await;
                }
                return core.error_answer(Some(&row), invalid());
            }
        }
        let Some(entry) = core.claim(&hashed, &row) else {
            core.audit_confirmation("used", Some(&row.call_id), Some(&row.tool));
            return core.error_answer(Some(&row), invalid());
        };
        let settled = |status: Status| {
            let row = ConfirmationRow { status, ..row.clone() };
            Commit {
                checks: vec![Check {
                    table: Table::Confirmations,
                    key: hashed.clone(),
                    version: Some(version),
                }],
                writes: vec![Write {
                    table: Table::Confirmations,
                    key: hashed.clone(),
                    value: Some(json!(row)),
                    expires_ms: Some(core.now_ms() + REMEMBERED_MS),
                }],
            }
        };
        let (tell, told) = oneshot::channel();
        let session = core.clone();
        match answer {
            ConfirmationAnswer::Approve => {
                let call = session.approved_call(&row, entry, settled(Status::Approved));
                start(async move { drop(tell.send(session.run_approved(&hashed, call).await)) });
            }
            ConfirmationAnswer::Deny => {
                let commit = settled(Status::Denied);
                start(async move { drop(tell.send(session.deny(&hashed, &entry, commit).await)) });
            }
        }
        match told.await {
            Ok(answer) => answer,
            Err(_) => core.error_answer(Some(&row), outcome_unknown(&row.tool)),
        }
    }
}

impl SessionCore {
    /// What has become of a question. Its time may have run out without anybody having noticed, and then that is stored
    /// before it is told.
    async fn status_of(&self, hashed: &str, row: &ConfirmationRow) -> Result<Status, StoreError> {
        if row.status != Status::Open || self.shared.time_left(hashed, row).is_some() {
            return Ok(row.status);
        }
        Ok(self.shared.store_expiry(hashed).await?.unwrap_or(Status::Expired))
    }

    /// Whether a question belongs to this session as it is now.
    fn is_ours(&self, row: &ConfirmationRow) -> bool {
        row.session_id == *self.id
            && row.client_id == *self.client
            && row.mode == self.mode
            && row.registry_version == self.snapshot.version()
    }

    /// Takes a question, so that a second answer at the same time finds it taken. The call that will run.
    fn claim(&self, hashed: &str, row: &ConfirmationRow) -> Option<Arc<Entry>> {
        let mut data = self.lock();
        if !data.controller.state().is_active {
            return None;
        }
        let fresh = || {
            Entry::new(CallIdentity {
                call_id: row.call_id.as_str().into(),
                provider_id: row.provider_id.as_deref().map(Arc::from),
                nth: 0,
                tool: row.tool.as_str().into(),
                content: row.content.as_str().into(),
                turn: row.turn,
                writes: self.writes(&row.tool),
            })
            .with_key(&row.key)
        };
        match data.confirmations.iter_mut().find(|confirmation| confirmation.hash == hashed) {
            Some(confirmation) if confirmation.is_claimed => None,
            Some(confirmation) => {
                confirmation.is_claimed = true;
                Some(confirmation.suspended.clone().unwrap_or_else(fresh))
            }
            None => {
                data.confirmations.push(PendingConfirmation {
                    content: row.content.as_str().into(),
                    suspended: None,
                    request: None,
                    hash: hashed.to_owned(),
                    expires_ms: row.expires_ms,
                    is_claimed: true,
                });
                Some(fresh())
            }
        }
    }

    fn writes(&self, tool: &str) -> bool {
        self.snapshot.find(tool).is_some_and(|tool| tool.metadata().side_effects == SideEffects::Writes)
    }

    fn approved_call(&self, row: &ConfirmationRow, entry: Arc<Entry>, redeem: Commit) -> ToolCall {
        let rate_limit = self.snapshot.find(&row.tool).and_then(|tool| tool.metadata().rate_limit.clone());
        let trace = entry.trace().unwrap_or_default().approved();
        ToolCall {
            entry,
            args: row.args.clone(),
            // That is not kept with the question; a copy of the arguments is right in either case.
            has_slow_arguments: true,
            clamped: Vec::new(),
            rate_limit,
            trace,
            ancestors: Vec::new(),
            redeems: Some(RedemptionCommit { commit: redeem }),
        }
    }

    /// Redeems and runs. What keeps it from beginning leaves the question open.
    async fn run_approved(self: Arc<Self>, hashed: &str, mut call: ToolCall) -> Answer {
        let entry = call.entry.clone();
        match self.reserve(&mut call).await {
            Reservation::Granted => {}
            Reservation::Refused(error) if error.kind == ErrorType::ConfirmationInvalid => {
                return self.resolved_elsewhere(hashed, &entry).await;
            }
            Reservation::Refused(error) => {
                self.audit_confirmation("not_run", Some(&entry.call_id), Some(&entry.tool));
                self.release(hashed);
                return self.error_of_call(&entry, *error);
            }
            // An equal call has run already; the approval is for it.
            Reservation::Recorded(envelope) => {
                let response = Arc::new(super::batch::replayed(&envelope, entry.turn));
                return self.answer_once_resolved(hashed, &entry, response);
            }
        }
        self.shared.deadlines.close(hashed);
        self.audit_confirmation("approved", Some(&entry.call_id), Some(&entry.tool));
        let was_suspended = {
            let mut data = self.lock();
            let confirmation = data.remove_confirmation(hashed);
            self.enter(&mut data, &entry);
            confirmation.is_some_and(|confirmation| confirmation.suspended.is_some())
        };
        self.run_reserved(call).await;
        self.outcome(&entry, was_suspended)
    }

    async fn deny(self: Arc<Self>, hashed: &str, entry: &Arc<Entry>, commit: Commit) -> Answer {
        if let Err(error) = self.commit(commit).await {
            return match error {
                CommitError::Conflict { .. } => self.resolved_elsewhere(hashed, entry).await,
                CommitError::Store(error) => {
                    self.release(hashed);
                    self.error_of_call(entry, self.store_failed(&error))
                }
            };
        }
        self.shared.deadlines.close(hashed);
        self.audit_confirmation("denied", Some(&entry.call_id), Some(&entry.tool));
        let mut data = self.lock();
        let confirmation = data.remove_confirmation(hashed);
        let response = refusal(&self, &entry.tool, denied(&entry.tool));
        self.replace_with_refusal(&mut data, entry, &response);
        let answer = self.answer_unexecuted(&mut data, entry, response);
        self.save_soon(&mut data);
        drop(data);
        let was_suspended = confirmation.is_some_and(|confirmation| confirmation.suspended.is_some());
        if was_suspended { answer } else { self.add_note(entry, answer) }
    }

    /// The person has answered through another process. A call that waits here is told what came of it there.
    async fn resolved_elsewhere(self: &Arc<Self>, hashed: &str, entry: &Arc<Entry>) -> Answer {
        self.audit_confirmation("used", Some(&entry.call_id), Some(&entry.tool));
        let row = self.shared.store.get(Table::Confirmations, hashed).await.ok().flatten();
        let row = row.and_then(|row| serde_json::from_value::<ConfirmationRow>(row.value).ok());
        self.answer_from_record(hashed, entry, row.map_or(Status::Approved, |row| row.status)).await;
        self.error_of_call(entry, invalid())
    }

    pub(super) async fn answer_from_record(
        self: &Arc<Self>,
        hashed: &str,
        entry: &Arc<Entry>,
        status: Status,
    ) {
        let response = match status {
            Status::Denied => refusal(self, &entry.tool, denied(&entry.tool)),
            Status::Expired => refusal(self, &entry.tool, expired()),
            Status::Open | Status::Approved => match self.find_recorded(entry).await {
                Reservation::Recorded(envelope) => Arc::new(super::batch::replayed(&envelope, entry.turn)),
                _ => refusal(self, &entry.tool, outcome_unknown(&entry.tool)),
            },
        };
        // Dropped undelivered, it goes to whoever is connected.
        drop(self.answer_once_resolved(hashed, entry, response));
    }

    /// The call that waits for a question which nobody is answering here.
    pub(super) fn waiting(&self, hashed: &str) -> Option<Arc<Entry>> {
        let data = self.lock();
        let confirmation = data.confirmations.iter().find(|confirmation| confirmation.hash == hashed)?;
        confirmation.suspended.clone().filter(|_| !confirmation.is_claimed)
    }

    /// Removes a confirmation whose call has its outcome already.
    fn answer_once_resolved(
        self: &Arc<Self>,
        hashed: &str,
        entry: &Arc<Entry>,
        response: Arc<ToolResponse>,
    ) -> Answer {
        let mut data = self.lock();
        let confirmation = data.remove_confirmation(hashed);
        if confirmation.is_some_and(|confirmation| confirmation.suspended.is_some()) {
            self.replace_with_refusal(&mut data, entry, &response);
            self.save_soon(&mut data);
            return self.answer_unexecuted(&mut data, entry, response);
        }
        drop(data);
        Answer { response, ..self.error_of_call(entry, invalid()) }
    }

    /// Lets a question be answered again. Its time may have run out while somebody was answering it.
    fn release(self: &Arc<Self>, hashed: &str) {
        let mut data = self.lock();
        let confirmation = data.confirmations.iter_mut().find(|confirmation| confirmation.hash == hashed);
        let Some(confirmation) = confirmation else { return };
        confirmation.is_claimed = false;
        drop(data);
        self.expire_later(hashed.to_owned(), self.shared.until_deadline(hashed));
    }

    /// Whether a question is being answered at this moment.
    pub(super) fn is_claimed(&self, hashed: &str) -> bool {
        let data = self.lock();
        data.confirmations.iter().any(|confirmation| confirmation.hash == hashed && confirmation.is_claimed)
    }

    /// The outcome of an approved call, on its way to whoever asked.
    fn outcome(self: &Arc<Self>, entry: &Arc<Entry>, was_suspended: bool) -> Answer {
        let response =
            entry.answer().unwrap_or_else(|| refusal(self, &entry.tool, outcome_unknown(&entry.tool)));
        let answer = Answer::to_suspended(self, entry, response);
        if was_suspended { answer } else { self.add_note(entry, answer) }
    }

    /// The call was answered long ago, so the model learns of the outcome by a note.
    fn add_note(&self, entry: &Entry, answer: Answer) -> Answer {
        let how = match &answer.response.outcome {
            Outcome::Success(Value::Null) => "approved by the person and was done".to_owned(),
            Outcome::Success(data) => format!("approved by the person and was done: {data}"),
            Outcome::Failure(error) if error.kind == ErrorType::ConfirmationDenied => {
                "not approved by the person".to_owned()
            }
            Outcome::Failure(error) => {
                format!("approved by the person and failed: {}", error.message)
            }
        };
        let mut data = self.lock();
        if self.holds_foreign_text(&entry.tool, &answer.response) {
            data.ledger.announce_foreign_text();
        }
        data.notes.push(format!("{} ({}) was {how}.", entry.tool, entry.call_id));
        data.unsaved.session = true;
        // The person may have answered in another tab than the one that speaks.
        let told = Answer {
            is_wanted: false,
            trace: answer.trace.clone(),
            ..Answer::without_receipt(answer.call_id.clone(), answer.name.clone(), answer.response.clone())
        };
        self.push_event(&mut data, ClientEvent::Answer { why: DeliveryReason::Confirmed, answer: told });
        drop(data);
        answer
    }

    /// An answer to a person that is no call's.
    fn error_answer(&self, row: Option<&ConfirmationRow>, error: ToolError) -> Answer {
        let (call_id, tool) = row.map_or(("", ""), |row| (row.call_id.as_str(), row.tool.as_str()));
        Answer::without_receipt(call_id.into(), tool.into(), refusal(self, tool, error))
    }

    fn error_of_call(&self, entry: &Entry, error: ToolError) -> Answer {
        Answer::without_receipt(entry.call_id.clone(), entry.tool.clone(), refusal(self, &entry.tool, error))
    }
}

/// Unknown, used, or somebody else's: it does not tell which.
pub(super) fn invalid() -> ToolError {
    refusal_error(
        ErrorType::ConfirmationInvalid,
        "This question has been answered already, or does not exist.".into(),
    )
}

fn denied(tool: &str) -> ToolError {
    refusal_error(ErrorType::ConfirmationDenied, format!("The person did not approve {tool}."))
}
