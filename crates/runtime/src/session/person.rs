//! Asking a person, and hearing their answer.
//!
//! The question is stored before it is shown, with the very call that it is about. The answer redeems it in the same
//! commit that marks the call as begun, so that double clicks, two tabs and crashes come to at most one execution.

use std::sync::Arc;

use quarterdeck_contracts::{
    Check, Commit, CommitError, ConfirmationAnswer, ConfirmationRequest, ErrorType, Mode, Table, ToolError,
    ToolResponse, Write,
};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use tokio::sync::oneshot;

use super::admit::Work;
use super::answer::{Answer, Orphan, OrphanOf, Receipt};
use super::batch::start;
use super::begin::{Begun, stamp};
use super::desk::Question;
use super::events::{ClientEvent, Why};
use super::{Asking, Desk, Inner, Session};
use crate::confirmation::{hash, new_token, preview};
use crate::envelope::before_the_handler;
use crate::gates::Trace;
use crate::ledger::{Entry, Identity};

/// How long an answered question is remembered, so that a late click is told what is true.
const REMEMBERED_MS: u64 = 3_600_000;

/// What the begin of an approved call uses up.
#[derive(Debug, Clone)]
pub(super) struct Redemption {
    pub(super) commit: Commit,
}

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
    Expired,
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
        match (&question.request, &question.hash) {
            (Some(request), _) => {
                if suspends {
                    question.suspended = Some(entry.clone());
                }
                Known::Open(request.clone())
            }
            // After a restart nobody has the token any more; the question is asked anew and the old one is void.
            (None, Some(hash)) => {
                let hash = hash.clone();
                desk.questions.retain(|question| question.hash.as_ref() != Some(&hash));
                Known::Lost(hash)
            }
            (None, None) => Known::No,
        }
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
                hash: Some(hashed.clone()),
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
                CommitError::Changed { .. } => quarterdeck_contracts::StoreError::Failed(error.to_string()),
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
                session.expire(&hashed);
            }
        });
    }

    fn expire(self: &Arc<Self>, hashed: &str) {
        let mut desk = self.lock();
        let Some(place) = desk
            .questions
            .iter()
            .position(|question| question.hash.as_deref() == Some(hashed) && !question.is_claimed)
        else {
            return;
        };
        let question = desk.questions.remove(place);
        let answer = question.suspended.map(|entry| {
            let response = stamp(self, &entry.tool, expired());
            self.remember_unasked(&mut desk, &entry, &response);
            self.finish_unrun(&mut desk, &entry, response)
        });
        self.save_soon(&mut desk);
        drop(desk);
        self.audit_confirmation("expired", None, None);
        // Dropped undelivered, it goes to whoever is connected, now or next.
        drop(answer);
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

impl Session {
    /// Which call a token is about, if we have issued it for this session and nobody has used it.
    pub async fn question_of(
        &self,
        token: &str,
    ) -> Result<Option<String>, quarterdeck_contracts::StoreError> {
        let row = self.inner.shared.store.get(Table::Confirmations, &hash(token)).await?;
        let row = row.and_then(|row| serde_json::from_value::<ConfirmationRow>(row.value).ok());
        let open = row.filter(|row| self.inner.is_ours(row) && row.status == Status::Open);
        Ok(open.map(|row| row.call_id))
    }

    /// The person's answer. Approved, the stored call runs; whatever happens, this tells it.
    pub async fn answer_confirmation(&self, token: &str, answer: ConfirmationAnswer) -> Answer {
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
        if row.status != Status::Open || inner.now_ms() >= row.expires_ms {
            let was_open = matches!(row.status, Status::Open | Status::Expired);
            let step = if was_open { "expired" } else { "used" };
            inner.audit_confirmation(step, Some(&row.call_id), Some(&row.tool));
            if was_open {
                inner.expire(&hashed);
            } else if let Some(entry) = inner.waiting(&hashed) {
                inner.answer_as_elsewhere(&hashed, &entry, row.status).await;
            }
            return inner.bare(Some(&row), if was_open { expired() } else { invalid() });
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
                    expires_ms: Some(row.expires_ms + REMEMBERED_MS),
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
            Err(_) => inner.bare(Some(&row), super::begin::outcome_unknown(&row.tool)),
        }
    }
}

impl Inner {
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
        match desk.questions.iter_mut().find(|question| question.hash.as_deref() == Some(hashed)) {
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
                    hash: Some(hashed.to_owned()),
                    expires_ms: row.expires_ms,
                    is_claimed: true,
                });
                Some(fresh())
            }
        }
    }

    fn writes(&self, tool: &str) -> bool {
        self.snapshot
            .find(tool)
            .is_some_and(|tool| tool.metadata().side_effects == quarterdeck_contracts::SideEffects::Writes)
    }

    fn approved_work(&self, row: &ConfirmationRow, entry: Arc<Entry>, redeem: Commit) -> Work {
        let rate_limit = self.snapshot.find(&row.tool).and_then(|tool| tool.metadata().rate_limit.clone());
        Work {
            entry,
            args: row.args.clone(),
            clamped: Vec::new(),
            rate_limit,
            trace: Trace::default(),
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
                CommitError::Changed { .. } => self.answered_elsewhere(hashed, entry).await,
                CommitError::Store(error) => {
                    self.unclaim(hashed);
                    self.bare_of(entry, self.store_is_down(&error))
                }
            };
        }
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

    async fn answer_as_elsewhere(self: &Arc<Self>, hashed: &str, entry: &Arc<Entry>, status: Status) {
        let response = match status {
            Status::Denied => stamp(self, &entry.tool, denied(&entry.tool)),
            Status::Expired => stamp(self, &entry.tool, expired()),
            Status::Open | Status::Approved => match self.begun_before(entry).await {
                Begun::Before(envelope) => Arc::new(super::batch::replayed(&envelope, entry.turn)),
                _ => stamp(self, &entry.tool, super::begin::outcome_unknown(&entry.tool)),
            },
        };
        // Dropped undelivered, it goes to whoever is connected.
        drop(self.settled_elsewhere(hashed, entry, response));
    }

    /// The call that waits for a question which nobody is answering here.
    fn waiting(&self, hashed: &str) -> Option<Arc<Entry>> {
        let desk = self.lock();
        let question = desk.questions.iter().find(|question| question.hash.as_deref() == Some(hashed))?;
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
        let question = desk.questions.iter_mut().find(|question| question.hash.as_deref() == Some(hashed));
        let Some(question) = question else { return };
        question.is_claimed = false;
        let expires_ms = question.expires_ms;
        drop(desk);
        self.expire_later(hashed.to_owned(), expires_ms);
    }

    /// The outcome of an approved call, on its way to whoever asked.
    fn outcome(self: &Arc<Self>, entry: &Arc<Entry>, was_suspended: bool) -> Answer {
        let response = entry
            .answered()
            .unwrap_or_else(|| stamp(self, &entry.tool, super::begin::outcome_unknown(&entry.tool)));
        let orphan = Orphan {
            call_id: entry.call_id.clone(),
            name: entry.tool.clone(),
            what: OrphanOf::Asked(entry.clone()),
        };
        let answer = Answer {
            call_id: entry.call_id.clone(),
            name: entry.tool.clone(),
            response,
            is_wanted: true,
            receipt: Receipt::new(self, orphan),
        };
        if was_suspended { answer } else { self.noted(entry, answer) }
    }

    /// The call was answered long ago, so the model learns of the outcome by a note.
    fn noted(&self, entry: &Entry, answer: Answer) -> Answer {
        let how = match &answer.response.outcome {
            quarterdeck_contracts::Outcome::Success(_) => "approved by the person and was done".to_owned(),
            quarterdeck_contracts::Outcome::Failure(error) if error.kind == ErrorType::ConfirmationDenied => {
                "not approved by the person".to_owned()
            }
            quarterdeck_contracts::Outcome::Failure(error) => {
                format!("approved by the person and failed: {}", error.message)
            }
        };
        let mut desk = self.lock();
        desk.notes.push(format!("{} ({}) was {how}.", entry.tool, entry.call_id));
        desk.unsaved.session = true;
        // The person may have answered in another tab than the one that speaks.
        let told = Answer {
            call_id: answer.call_id.clone(),
            name: answer.name.clone(),
            response: answer.response.clone(),
            is_wanted: false,
            receipt: Receipt::none(),
        };
        self.tell(&mut desk, ClientEvent::Answer { why: Why::Confirmed, answer: told });
        drop(desk);
        answer
    }

    /// An answer to a person that is no call's.
    fn bare(&self, row: Option<&ConfirmationRow>, error: ToolError) -> Answer {
        let (call_id, tool) = row.map_or(("", ""), |row| (row.call_id.as_str(), row.tool.as_str()));
        Answer {
            call_id: call_id.into(),
            name: tool.into(),
            response: stamp(self, tool, error),
            is_wanted: true,
            receipt: Receipt::none(),
        }
    }

    fn bare_of(&self, entry: &Entry, error: ToolError) -> Answer {
        Answer {
            call_id: entry.call_id.clone(),
            name: entry.tool.clone(),
            response: stamp(self, &entry.tool, error),
            is_wanted: true,
            receipt: Receipt::none(),
        }
    }
}

impl Desk {
    pub(super) fn forget_question(&mut self, hashed: &str) -> Option<Question> {
        let place = self.questions.iter().position(|question| question.hash.as_deref() == Some(hashed))?;
        Some(self.questions.remove(place))
    }
}

/// Unknown, used, or somebody else's: it does not tell which.
pub(super) fn invalid() -> ToolError {
    before_the_handler(
        ErrorType::ConfirmationInvalid,
        "This confirmation is not valid. Nothing was done.".into(),
    )
}

fn denied(tool: &str) -> ToolError {
    before_the_handler(ErrorType::ConfirmationDenied, format!("The person did not approve {tool}."))
}

fn expired() -> ToolError {
    before_the_handler(
        ErrorType::ConfirmationExpired,
        "This confirmation has expired. Nothing was done.".into(),
    )
    .with_suggestion("Ask again if it is still wanted.")
}
