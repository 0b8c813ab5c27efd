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

use super::admit::Work;
use super::answer::Answer;
use super::asking::expired;
use super::batch::start;
use super::begin::{Begun, outcome_unknown, stamp};
use super::desk::Question;
use super::events::{ClientEvent, DeliveryReason};
use super::{Inner, Session};
use crate::confirmation::{ConfirmationRow, REMEMBERED_MS, Status, hash};
use crate::envelope::before_the_handler;
use crate::ledger::{Entry, Identity};

/// What the begin of an approved call uses up.
#[derive(Debug, Clone)]
pub(super) struct Redemption {
    pub(super) commit: Commit,
}

impl Session {
    /// Which call a token is about, if we have issued it for this session and it was not used. One that has expired
    /// is still about its call: the client that brings it is told so.
    pub async fn find_confirmation_call(&self, token: &str) -> Result<Option<String>, StoreError> {
        let row = self.inner.shared.store.get(Table::Confirmations, &hash(token)).await?;
        let row = row.and_then(|row| serde_json::from_value::<ConfirmationRow>(row.value).ok());
        let is_unused = |row: &ConfirmationRow| matches!(row.status, Status::Open | Status::Expired);
        let unused = row.filter(|row| self.inner.is_ours(row) && is_unused(row));
        Ok(unused.map(|row| row.call_id))
    }

    /// Whether a question of this session that was asked by this process can still be answered.
    pub fn is_confirmation_open(&self, request: &ConfirmationRequest) -> bool {
        let token = request.token.as_ref();
        token.is_some_and(|token| {
            self.inner.shared.is_confirmation_open(&hash(token.expose()), request.expires)
        })
    }

    /// The person's answer. Approved, the stored call runs; whatever happens, this tells it.
    pub async fn resolve_confirmation(&self, token: &str, answer: ConfirmationAnswer) -> Answer {
        let inner = &self.inner;
        let hashed = hash(token);
        let row = match inner.shared.store.get(Table::Confirmations, &hashed).await {
            Ok(row) => row,
            Err(error) => return inner.bare(None, inner.store_is_down(&error)),
        };
        let parsed = row.and_then(|row| {
            serde_json::from_value::<ConfirmationRow>(row.value).ok().map(|value| (value, row.version))
        });
        let Some((row, version)) = parsed.filter(|(row, _)| inner.is_ours(row)) else {
            inner.audit_confirmation("invalid", None, None);
            return inner.bare(None, invalid());
        };
        let status = match inner.standing(&hashed, &row).await {
            Ok(status) => status,
            Err(error) => return inner.bare(Some(&row), inner.store_is_down(&error)),
        };
        match status {
            Status::Open => {}
            Status::Expired => {
                inner.audit_confirmation("expired", Some(&row.call_id), Some(&row.tool));
                // Whoever is told here is told for the call that waited, which then is not told apart.
                let waited = inner.expire(&hashed);
                return waited.unwrap_or_else(|| inner.bare(Some(&row), expired()));
            }
            Status::Approved | Status::Denied => {
                inner.audit_confirmation("used", Some(&row.call_id), Some(&row.tool));
                if let Some(entry) = inner.waiting(&hashed) {
                    inner.answer_as_elsewhere(&hashed, &entry, status).await;
                }
                return inner.bare(Some(&row), invalid());
            }
        }
        let Some(entry) = inner.claim(&hashed, &row) else {
            inner.audit_confirmation("used", Some(&row.call_id), Some(&row.tool));
            return inner.bare(Some(&row), invalid());
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
                    expires_ms: Some(inner.now_ms() + REMEMBERED_MS),
                }],
            }
        };
        let (tell, told) = oneshot::channel();
        let session = inner.clone();
        match answer {
            ConfirmationAnswer::Approve => {
                let work = session.approved_work(&row, entry, settled(Status::Approved));
                start(async move { drop(tell.send(session.run_approved(&hashed, work).await)) });
            }
            ConfirmationAnswer::Deny => {
                let commit = settled(Status::Denied);
                start(async move { drop(tell.send(session.deny(&hashed, &entry, commit).await)) });
            }
        }
        match told.await {
            Ok(answer) => answer,
            Err(_) => inner.bare(Some(&row), outcome_unknown(&row.tool)),
        }
    }
}

impl Inner {
    /// What has become of a question. Its time may have run out without anybody having noticed, and then that is stored
    /// before it is told.
    async fn standing(&self, hashed: &str, row: &ConfirmationRow) -> Result<Status, StoreError> {
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
        let mut desk = self.lock();
        if !desk.controller.state().is_active {
            return None;
        }
        let fresh = || {
            Entry::new(Identity {
                call_id: row.call_id.as_str().into(),
                provider_id: row.provider_id.as_deref().map(Arc::from),
                nth: 0,
                tool: row.tool.as_str().into(),
                content: row.content.as_str().into(),
                turn: row.turn,
                writes: self.writes(&row.tool),
            })
            .known_as(&row.key)
        };
        match desk.questions.iter_mut().find(|question| question.hash == hashed) {
            Some(question) if question.is_claimed => None,
            Some(question) => {
                question.is_claimed = true;
                Some(question.suspended.clone().unwrap_or_else(fresh))
            }
            None => {
                desk.questions.push(Question {
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

    fn approved_work(&self, row: &ConfirmationRow, entry: Arc<Entry>, redeem: Commit) -> Work {
        let rate_limit = self.snapshot.find(&row.tool).and_then(|tool| tool.metadata().rate_limit.clone());
        let trace = entry.trace().unwrap_or_default().approved();
        Work {
            entry,
            args: row.args.clone(),
            // That is not kept with the question; a copy of the arguments is right in either case.
            took_long_to_judge: true,
            clamped: Vec::new(),
            rate_limit,
            trace,
            ancestors: Vec::new(),
            redeems: Some(Redemption { commit: redeem }),
        }
    }

    /// Redeems and runs. What keeps it from beginning leaves the question open.
    async fn run_approved(self: Arc<Self>, hashed: &str, mut work: Work) -> Answer {
        let entry = work.entry.clone();
        match self.begin(&mut work).await {
            Begun::Yes => {}
            Begun::No(error) if error.kind == ErrorType::ConfirmationInvalid => {
                return self.answered_elsewhere(hashed, &entry).await;
            }
            Begun::No(error) => {
                self.audit_confirmation("not_run", Some(&entry.call_id), Some(&entry.tool));
                self.unclaim(hashed);
                return self.bare_of(&entry, *error);
            }
            // An equal call has run already; the approval is for it.
            Begun::Before(envelope) => {
                let response = Arc::new(super::batch::replayed(&envelope, entry.turn));
                return self.settled_elsewhere(hashed, &entry, response);
            }
        }
        self.shared.deadlines.close(hashed);
        self.audit_confirmation("approved", Some(&entry.call_id), Some(&entry.tool));
        let was_suspended = {
            let mut desk = self.lock();
            let question = desk.forget_question(hashed);
            self.enter(&mut desk, &entry);
            question.is_some_and(|question| question.suspended.is_some())
        };
        self.carry_out_begun(work).await;
        self.outcome(&entry, was_suspended)
    }

    async fn deny(self: Arc<Self>, hashed: &str, entry: &Arc<Entry>, commit: Commit) -> Answer {
        if let Err(error) = self.commit(commit).await {
            return match error {
                CommitError::Conflict { .. } => self.answered_elsewhere(hashed, entry).await,
                CommitError::Store(error) => {
                    self.unclaim(hashed);
                    self.bare_of(entry, self.store_is_down(&error))
                }
            };
        }
        self.shared.deadlines.close(hashed);
        self.audit_confirmation("denied", Some(&entry.call_id), Some(&entry.tool));
        let mut desk = self.lock();
        let question = desk.forget_question(hashed);
        let response = stamp(&self, &entry.tool, denied(&entry.tool));
        self.remember_unasked(&mut desk, entry, &response);
        let answer = self.finish_unrun(&mut desk, entry, response);
        self.save_soon(&mut desk);
        drop(desk);
        let was_suspended = question.is_some_and(|question| question.suspended.is_some());
        if was_suspended { answer } else { self.noted(entry, answer) }
    }

    /// The person has answered through another process. A call that waits here is told what came of it there.
    async fn answered_elsewhere(self: &Arc<Self>, hashed: &str, entry: &Arc<Entry>) -> Answer {
        self.audit_confirmation("used", Some(&entry.call_id), Some(&entry.tool));
        let row = self.shared.store.get(Table::Confirmations, hashed).await.ok().flatten();
        let row = row.and_then(|row| serde_json::from_value::<ConfirmationRow>(row.value).ok());
        self.answer_as_elsewhere(hashed, entry, row.map_or(Status::Approved, |row| row.status)).await;
        self.bare_of(entry, invalid())
    }

    pub(super) async fn answer_as_elsewhere(
        self: &Arc<Self>,
        hashed: &str,
        entry: &Arc<Entry>,
        status: Status,
    ) {
        let response = match status {
            Status::Denied => stamp(self, &entry.tool, denied(&entry.tool)),
            Status::Expired => stamp(self, &entry.tool, expired()),
            Status::Open | Status::Approved => match self.begun_before(entry).await {
                Begun::Before(envelope) => Arc::new(super::batch::replayed(&envelope, entry.turn)),
                _ => stamp(self, &entry.tool, outcome_unknown(&entry.tool)),
            },
        };
        // Dropped undelivered, it goes to whoever is connected.
        drop(self.settled_elsewhere(hashed, entry, response));
    }

    /// The call that waits for a question which nobody is answering here.
    pub(super) fn waiting(&self, hashed: &str) -> Option<Arc<Entry>> {
        let desk = self.lock();
        let question = desk.questions.iter().find(|question| question.hash == hashed)?;
        question.suspended.clone().filter(|_| !question.is_claimed)
    }

    /// Takes a question off the desk whose call has its outcome already.
    fn settled_elsewhere(
        self: &Arc<Self>,
        hashed: &str,
        entry: &Arc<Entry>,
        response: Arc<ToolResponse>,
    ) -> Answer {
        let mut desk = self.lock();
        let question = desk.forget_question(hashed);
        if question.is_some_and(|question| question.suspended.is_some()) {
            self.remember_unasked(&mut desk, entry, &response);
            self.save_soon(&mut desk);
            return self.finish_unrun(&mut desk, entry, response);
        }
        drop(desk);
        Answer { response, ..self.bare_of(entry, invalid()) }
    }

    /// Lets a question be answered again. Its time may have run out while somebody was answering it.
    fn unclaim(self: &Arc<Self>, hashed: &str) {
        let mut desk = self.lock();
        let question = desk.questions.iter_mut().find(|question| question.hash == hashed);
        let Some(question) = question else { return };
        question.is_claimed = false;
        drop(desk);
        self.expire_later(hashed.to_owned(), self.shared.until_deadline(hashed));
    }

    /// Whether a question is being answered at this moment.
    pub(super) fn is_claimed(&self, hashed: &str) -> bool {
        let desk = self.lock();
        desk.questions.iter().any(|question| question.hash == hashed && question.is_claimed)
    }

    /// The outcome of an approved call, on its way to whoever asked.
    fn outcome(self: &Arc<Self>, entry: &Arc<Entry>, was_suspended: bool) -> Answer {
        let response =
            entry.answered().unwrap_or_else(|| stamp(self, &entry.tool, outcome_unknown(&entry.tool)));
        let answer = Answer::to_asked(self, entry, response);
        if was_suspended { answer } else { self.noted(entry, answer) }
    }

    /// The call was answered long ago, so the model learns of the outcome by a note.
    fn noted(&self, entry: &Entry, answer: Answer) -> Answer {
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
        let mut desk = self.lock();
        if self.holds_foreign_text(&entry.tool, &answer.response) {
            desk.ledger.tells_foreign_text();
        }
        desk.notes.push(format!("{} ({}) was {how}.", entry.tool, entry.call_id));
        desk.unsaved.session = true;
        // The person may have answered in another tab than the one that speaks.
        let told = Answer {
            is_wanted: false,
            trace: answer.trace.clone(),
            ..Answer::unowed(answer.call_id.clone(), answer.name.clone(), answer.response.clone())
        };
        self.tell(&mut desk, ClientEvent::Answer { why: DeliveryReason::Confirmed, answer: told });
        drop(desk);
        answer
    }

    /// An answer to a person that is no call's.
    fn bare(&self, row: Option<&ConfirmationRow>, error: ToolError) -> Answer {
        let (call_id, tool) = row.map_or(("", ""), |row| (row.call_id.as_str(), row.tool.as_str()));
        Answer::unowed(call_id.into(), tool.into(), stamp(self, tool, error))
    }

    fn bare_of(&self, entry: &Entry, error: ToolError) -> Answer {
        Answer::unowed(entry.call_id.clone(), entry.tool.clone(), stamp(self, &entry.tool, error))
    }
}

/// Unknown, used, or somebody else's: it does not tell which.
pub(super) fn invalid() -> ToolError {
    before_the_handler(
        ErrorType::ConfirmationInvalid,
        "This question has been answered already, or does not exist.".into(),
    )
}

fn denied(tool: &str) -> ToolError {
    before_the_handler(ErrorType::ConfirmationDenied, format!("The person did not approve {tool}."))
}
