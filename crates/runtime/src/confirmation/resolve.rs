//! Takes the user's decision about a call.
//!
//! The decision redeems the confirmation in the same commit that marks the call as started, so that double clicks, two
//! tabs and crashes come to at most one execution.

use std::sync::Arc;

use quarterdeck_contracts::telemetry::TraceContext;
use quarterdeck_contracts::{
    Commit, CommitError, ConfirmBy, ConfirmationAnswer, ConfirmationRequest, ErrorType, Mode, Outcome,
    StoreError, Table, ToolError,
};
use serde_json::{Map, Value, json};
use tokio::sync::oneshot;

use super::REMEMBERED_MS;
use super::decision::{ConfirmationDecision, DecisionSource};
use super::expiry::{expire, expire_later};
use super::outcome::{answer_from_record, close, suspended_call};
use super::row::{ConfirmationRow, Status};
use super::spoken::{self, SpokenRefusal};
use super::token::hash;
use crate::cluster_events::topic;
use crate::envelope::{
    confirmation_denied, confirmation_expired, confirmation_invalid, outcome_lost, replayed,
};
use crate::ledger::Entry;
use crate::ownership::is_lease_conflict;
use crate::pipeline::{AskedSpan, Reservation, ToolCall, ToolSpan, reserve, run_reserved, start};
use crate::redact::HIDDEN;
use crate::session::{Answer, ClientEvent, DeliveryReason, PendingConfirmation, Session, SessionCore};

impl Session {
    /// Which call a token is about, if it was issued for this session and not used. One that has expired is still about
    /// its call: the client that brings it is told so.
    pub async fn find_confirmation_call(&self, token: &str) -> Result<Option<String>, StoreError> {
        let row = self.core.shared.store.get(Table::Confirmations, &hash(token)).await?;
        let row = row.and_then(|row| serde_json::from_value::<ConfirmationRow>(row.value).ok());
        let is_unused = |row: &ConfirmationRow| matches!(row.status, Status::Open | Status::Expired);
        let unused = row.filter(|row| is_of_session(&self.core, row) && is_unused(row));
        Ok(unused.map(|row| row.call_id))
    }

    /// Whether a confirmation that this process requested can still be resolved.
    pub fn is_confirmation_open(&self, request: &ConfirmationRequest) -> bool {
        let token = request.token.as_ref();
        token.is_some_and(|token| {
            self.core.shared.is_confirmation_open(&hash(token.expose()), request.expires)
        })
    }

    /// Takes the user's decision; a bare answer is one that was given on a page. Approved, the stored call runs; the answer
    /// says what came of it in any case. A spoken decision that does not count leaves the question open, and its answer is
    /// an error that holds a [`SpokenRefusal`].
    pub async fn resolve_confirmation(
        &self,
        token: &str,
        decision: impl Into<ConfirmationDecision>,
    ) -> Answer {
        resolve(&self.core, hash(token), decision.into()).await
    }
}

/// Takes the user's decision about the confirmation with this hash.
pub(super) async fn resolve(core: &Arc<SessionCore>, hash: String, decision: ConfirmationDecision) -> Answer {
    match claim(core, hash, &decision).await {
        Claim::Taken(claimed) => claimed.resolve(core, decision).await,
        Claim::Rejected(answer) => answer,
    }
}

/// What came of taking a confirmation.
enum Claim {
    Taken(Box<ClaimedConfirmation>),
    Rejected(Answer),
}

/// A confirmation that is being resolved here and nowhere else in this process.
struct ClaimedConfirmation {
    hash: String,
    row: ConfirmationRow,
    version: u64,
    /// The call that will run.
    entry: Arc<Entry>,
    /// What the audit log says about the decision.
    decided: Map<String, Value>,
}

/// Takes an open confirmation, so that a second decision at the same time finds it taken.
async fn claim(core: &Arc<SessionCore>, hash: String, decision: &ConfirmationDecision) -> Claim {
    let stored = match core.shared.store.get(Table::Confirmations, &hash).await {
        Ok(stored) => stored,
        Err(error) => return Claim::Rejected(error_answer(core, None, core.store_failed(&error))),
    };
    let parsed = stored.and_then(|stored| {
        serde_json::from_value::<ConfirmationRow>(stored.value).ok().map(|row| (row, stored.version))
    });
    let Some((row, version)) = parsed.filter(|(row, _)| is_of_session(core, row)) else {
        core.audit_confirmation("invalid", None, None);
        return Claim::Rejected(error_answer(core, None, confirmation_invalid()));
    };
    let decided = decision.source.audit_fields(core, &row);
    let audit = |step| core.audit_decision(step, &row.call_id, &row.tool, decided.clone());
    match current_status(core, &hash, &row).await {
        Err(error) => Claim::Rejected(error_answer(core, Some(&row), core.store_failed(&error))),
        Ok(Status::Expired) => {
            audit("expired");
            // The client gets the answer of the suspended call here, and not a second time as an event.
            let waited = expire(core, &hash);
            Claim::Rejected(waited.unwrap_or_else(|| error_answer(core, Some(&row), confirmation_expired())))
        }
        Ok(status @ (Status::Approved | Status::Denied)) => {
            audit("used");
            if let Some(entry) = suspended_call(core, &hash) {
                answer_from_record(core, &hash, &entry, status).await;
            }
            Claim::Rejected(error_answer(core, Some(&row), confirmation_invalid()))
        }
        Ok(Status::Open) => {
            if let Err(refusal) = judge_source(core, &hash, &row, decision) {
                audit_refusal(core, &row, refusal, decided);
                return Claim::Rejected(error_answer(core, Some(&row), refusal.error()));
            }
            let Some(entry) = mark_claimed(core, &hash, &row) else {
                audit("used");
                return Claim::Rejected(error_answer(core, Some(&row), confirmation_invalid()));
            };
            Claim::Taken(Box::new(ClaimedConfirmation { hash, row, version, entry, decided }))
        }
    }
}

/// Whether a decision that was given in this way counts.
fn judge_source(
    core: &SessionCore,
    hash: &str,
    row: &ConfirmationRow,
    decision: &ConfirmationDecision,
) -> Result<(), SpokenRefusal> {
    match &decision.source {
        DecisionSource::Spoken(words) => spoken::judge(core, hash, row, decision.answer, words),
        DecisionSource::Page
        | DecisionSource::Operator
        | DecisionSource::Terminal
        | DecisionSource::Transport => Ok(()),
    }
}

fn audit_refusal(
    core: &SessionCore,
    row: &ConfirmationRow,
    refusal: SpokenRefusal,
    mut decided: Map<String, Value>,
) {
    // The words may hold the code, which can still be said.
    if core.snapshot.find(&row.tool).is_none_or(|tool| tool.metadata().confirm_by == ConfirmBy::Code) {
        decided.insert("transcript".into(), HIDDEN.into());
    }
    decided.insert("reason".into(), refusal.as_str().into());
    core.audit_decision("spoken_refused", &row.call_id, &row.tool, decided);
}

/// The status of a confirmation. If its time has run out unnoticed, that is stored before it is reported.
async fn current_status(core: &SessionCore, hash: &str, row: &ConfirmationRow) -> Result<Status, StoreError> {
    if row.status != Status::Open || core.shared.time_left(hash, row).is_some() {
        return Ok(row.status);
    }
    Ok(core.shared.store_expiry(hash).await?.unwrap_or(Status::Expired))
}

/// Whether a confirmation belongs to this session as it is now.
fn is_of_session(core: &SessionCore, row: &ConfirmationRow) -> bool {
    row.session_id == *core.id
        && row.client_id == *core.client
        && row.mode == core.mode
        && row.registry_version == core.snapshot.version()
}

/// The call that will run, unless another decision was quicker.
fn mark_claimed(core: &SessionCore, hash: &str, row: &ConfirmationRow) -> Option<Arc<Entry>> {
    let mut data = core.lock();
    if !data.controller.state().is_active {
        return None;
    }
    match data.find_confirmation(hash) {
        Some(confirmation) if confirmation.is_claimed => None,
        Some(confirmation) => {
            confirmation.is_claimed = true;
            Some(confirmation.suspended.clone().unwrap_or_else(|| row.entry(&core.snapshot)))
        }
        None => {
            data.confirmations.push(PendingConfirmation {
                call_id: row.call_id.as_str().into(),
                content: row.content.as_str().into(),
                suspended: None,
                request: None,
                hash: hash.to_owned(),
                expires_ms: row.expires_ms,
                is_claimed: true,
                wrong_codes: 0,
            });
            Some(row.entry(&core.snapshot))
        }
    }
}

impl ClaimedConfirmation {
    /// Runs to its end even if the caller is dropped.
    async fn resolve(self, core: &Arc<SessionCore>, decision: ConfirmationDecision) -> Answer {
        let (sender, receiver) = oneshot::channel();
        let session = core.clone();
        let (call_id, tool) = (self.row.call_id.clone(), self.row.tool.clone());
        let writes = self.entry.writes;
        start(async move {
            let parent = decision.parent;
            let answer = match decision.answer {
                ConfirmationAnswer::Approve => self.approve(&session, parent).await,
                ConfirmationAnswer::Deny => self.deny(&session, parent).await,
            };
            drop(sender.send(answer));
        });
        receiver.await.unwrap_or_else(|_| {
            let response = core.refusal(&tool, outcome_lost(&tool, writes));
            Answer::unguarded(call_id.into(), tool.into(), response)
        })
    }

    /// Redeems the confirmation and runs the call. What keeps it from starting leaves the confirmation open.
    async fn approve(self, core: &Arc<SessionCore>, parent: Option<TraceContext>) -> Answer {
        let redemption = self.redemption(core, Status::Approved);
        let span = ToolSpan::begin_decided(core, &self.entry, self.asked(), parent);
        let Self { hash, row, entry, decided, .. } = self;
        let tool = core.snapshot.find(&row.tool);
        let rate_limit = tool.and_then(|tool| tool.metadata().rate_limit.clone());
        let mut call = ToolCall::approved(entry.clone(), row.args, row.seen, rate_limit, redemption, span);
        match reserve(core, &mut call).await {
            Reservation::Granted => {}
            Reservation::Refused(error) if error.kind == ErrorType::ConfirmationInvalid => {
                return answer_resolved_elsewhere(core, &hash, &entry, decided).await;
            }
            Reservation::Refused(error) => {
                core.audit_decision("not_run", &entry.call_id, &entry.tool, decided);
                release(core, &hash);
                return error_of_call(core, &entry, *error);
            }
            // An equal call has run already; the approval is for it.
            Reservation::Recorded(envelope) => {
                let response = Arc::new(replayed(&envelope, entry.turn));
                return close(core, &hash, &entry, response);
            }
        }
        core.shared.deadlines.close(&hash);
        core.audit_decision("approved", &entry.call_id, &entry.tool, decided);
        let was_suspended = {
            let mut data = core.lock();
            let confirmation = data.remove_confirmation(&hash);
            data.insert_running(&entry);
            confirmation.is_some_and(|confirmation| confirmation.suspended.is_some())
        };
        run_reserved(core, call).await;
        core.shared.announce(topic::CONFIRMATION, &*core.id);
        // Who has written on meanwhile has a model that was told that it is not known yet. A live model waits for its answer.
        let is_awaited =
            was_suspended && (core.mode == Mode::Voice || core.lock().ledger.turn_number() == entry.turn);
        let response = entry
            .answer()
            .unwrap_or_else(|| core.refusal(&entry.tool, outcome_lost(&entry.tool, entry.writes)));
        let answer = Answer::to_suspended(core, &entry, response);
        if is_awaited { answer } else { add_note(core, &entry, answer) }
    }

    async fn deny(self, core: &Arc<SessionCore>, parent: Option<TraceContext>) -> Answer {
        let commit = self.redemption(core, Status::Denied);
        let mut span = ToolSpan::begin_decided(core, &self.entry, self.asked(), parent);
        let Self { hash, entry, decided, .. } = self;
        if let Err(error) = core.commit_start(commit).await {
            return match error {
                error if is_lease_conflict(&error) => {
                    release(core, &hash);
                    error_of_call(core, &entry, core.not_started(error))
                }
                CommitError::Conflict { .. } => answer_resolved_elsewhere(core, &hash, &entry, decided).await,
                error => {
                    release(core, &hash);
                    error_of_call(core, &entry, core.store_failed(&error.into_store_error()))
                }
            };
        }
        core.shared.deadlines.close(&hash);
        core.audit_decision("denied", &entry.call_id, &entry.tool, decided);
        core.shared.announce(topic::CONFIRMATION, &*core.id);
        let mut data = core.lock();
        let confirmation = data.remove_confirmation(&hash);
        let response = core.refusal(&entry.tool, confirmation_denied(&entry.tool));
        span.record_denied(&response);
        let answer = core.answer_suspended(&mut data, &entry, response);
        core.save_soon(&mut data);
        drop(data);
        let was_suspended = confirmation.is_some_and(|confirmation| confirmation.suspended.is_some());
        if was_suspended { answer } else { add_note(core, &entry, answer) }
    }

    fn asked(&self) -> AskedSpan<'_> {
        AskedSpan { approval: &self.hash, link: self.row.span, opened_ms: self.row.opened_ms }
    }

    /// The commit that uses the confirmation up, if no other process has.
    fn redemption(&self, core: &SessionCore, status: Status) -> Commit {
        let row = ConfirmationRow { status, ..self.row.clone() };
        let (table, key) = (Table::Confirmations, self.hash.clone());
        let expires_ms = Some(core.now_ms() + REMEMBERED_MS);
        let unused = Commit::default().check(table, key.clone(), Some(self.version));
        unused.put_until(table, key, json!(row), expires_ms)
    }
}

/// The user has decided through another process, or too late. A call that waits here gets the outcome from there.
async fn answer_resolved_elsewhere(
    core: &Arc<SessionCore>,
    hash: &str,
    entry: &Arc<Entry>,
    decided: Map<String, Value>,
) -> Answer {
    let row = core.shared.store.get(Table::Confirmations, hash).await.ok().flatten();
    let row = row.and_then(|row| serde_json::from_value::<ConfirmationRow>(row.value).ok());
    let status = row.map_or(Status::Approved, |row| row.status);
    let (step, error) = match status {
        Status::Expired => ("expired", confirmation_expired()),
        Status::Open | Status::Approved | Status::Denied => ("used", confirmation_invalid()),
    };
    core.audit_decision(step, &entry.call_id, &entry.tool, decided);
    answer_from_record(core, hash, entry, status).await;
    error_of_call(core, entry, error)
}

/// Lets a confirmation be resolved again. Its time may have run out while it was claimed.
fn release(core: &Arc<SessionCore>, hash: &str) {
    let mut data = core.lock();
    let Some(confirmation) = data.find_confirmation(hash) else { return };
    confirmation.is_claimed = false;
    drop(data);
    expire_later(core, hash.to_owned(), core.shared.until_deadline(hash));
}

/// The call was answered long ago, so the model learns of the outcome by a note.
fn add_note(core: &SessionCore, entry: &Entry, answer: Answer) -> Answer {
    let how = match &answer.response.outcome {
        Outcome::Success(Value::Null) => "approved by the user and was done".to_owned(),
        Outcome::Success(data) => format!("approved by the user and was done: {data}"),
        Outcome::Failure(error) if error.kind == ErrorType::ConfirmationDenied => {
            "not approved by the user".to_owned()
        }
        Outcome::Failure(error) => format!("approved by the user and failed: {}", error.message),
    };
    let mut data = core.lock();
    if core.holds_foreign_text(&entry.tool, &answer.response) {
        data.ledger.announce_foreign_text();
    }
    data.notes.texts.push(format!("{} ({}) was {how}.", entry.tool, entry.call_id));
    data.unsaved.session = true;
    // The user may have decided in another tab than the one that speaks.
    let (call_id, name) = (answer.call_id.clone(), answer.name.clone());
    let notice = Answer::notice(call_id, name, answer.response.clone(), answer.trace.clone());
    core.push_event(&mut data, ClientEvent::Answer { reason: DeliveryReason::Confirmed, answer: notice });
    drop(data);
    answer
}

/// An answer to the client that is no call's.
fn error_answer(core: &SessionCore, row: Option<&ConfirmationRow>, error: ToolError) -> Answer {
    let (call_id, tool) = row.map_or(("", ""), |row| (row.call_id.as_str(), row.tool.as_str()));
    Answer::unguarded(call_id.into(), tool.into(), core.refusal(tool, error))
}

fn error_of_call(core: &SessionCore, entry: &Entry, error: ToolError) -> Answer {
    Answer::unguarded(entry.call_id.clone(), entry.tool.clone(), core.refusal(&entry.tool, error))
}
