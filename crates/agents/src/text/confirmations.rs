//! Resolves confirmations and resumes the turns that waited for them.

use std::sync::Arc;

use quarterdeck_contracts::telemetry::TraceContext;
use quarterdeck_contracts::{
    ConfirmationAnswer, ErrorType, Outcome, StoreError, ToolError, ToolResponse, Usage,
};
use quarterdeck_runtime::{Answer, ConfirmationDecision, ConfirmationMode, Session, TurnStart, random_hex};

use super::context::TurnContext;
use super::conversation::{Conversation, ResolvedConfirmation, TurnGuard};
use super::driver::TurnDriver;
use super::event::{Failure, StreamEvent};
use super::history::TurnRecord;
use super::lookup::record_known_outcomes;
use super::start::{prepend_notes, started_event};
use super::stream::Reader;
use super::{Address, ConfirmationReply, Refusal, TextAgent, TextCore, User};
use crate::turn::Ending;

impl TextAgent {
    /// Resolves confirmations and resumes the turn that waits for them.
    pub async fn resolve_confirmations(
        &self,
        user: &User,
        to: Address<'_>,
        decisions: Vec<ConfirmationReply>,
    ) -> Result<Reader, Refusal> {
        let agent = &self.core;
        let conversation = agent.find_held(user, to).await?.ok_or_else(invalid_confirmation)?;
        let mut valid = Vec::new();
        for decision in decisions {
            if conversation.session.find_confirmation_call(&decision.token).await?.is_some() {
                valid.push(decision);
            }
        }
        // All of them may have been resolved outside the conversation, which then only waits to be resumed.
        let can_resume = conversation.unfinished().is_some_and(|record| !record.turn.is_suspended());
        if valid.is_empty() && !can_resume {
            return Err(invalid_confirmation());
        }
        let guard = agent.wait_for_turn(&conversation, None).await.map_err(|_| Refusal::Busy)?;
        let context = TurnContext::new(agent, &conversation, &user.situation, None);
        let reader = guard.stream.follow();
        tokio::spawn(self.core.clone().resume_turn(guard, valid, context, user.client.span));
        Ok(reader)
    }

    /// Resolves one confirmation outside the conversation. The model learns of it in the next turn. It is done to its end also
    /// when the client has gone, or the conversation would not say what came of it.
    pub async fn resolve_confirmation(
        &self,
        user: &User,
        decision: &ConfirmationReply,
    ) -> Result<Arc<ToolResponse>, Refusal> {
        let agent = &self.core;
        let orchestrator = &agent.orchestrator;
        let client = user.client.clone();
        let id = orchestrator
            .find_confirmation_session(&decision.token, &client.id)
            .await?
            .ok_or_else(invalid_confirmation)?;
        // A session of either mode may have asked.
        let session = orchestrator.resume(&id, client, &agent.registry).await?;
        session.hold().await?;
        let conversation = agent.find(user, Address::Session(&id)).await?;
        let (agent, decision, parent) = (agent.clone(), decision.clone(), user.client.span);
        let resolving = tokio::spawn(async move {
            let resolved = agent.resolve(&session, conversation.as_deref(), &decision, parent).await;
            if let Some(conversation) = &conversation {
                agent.release_settled(conversation).await;
            }
            resolved.response
        });
        Ok(resolving
            .await
            .map_err(|error| StoreError::Failed(format!("the decision was not taken: {error}")))?)
    }
}

impl TextCore {
    pub(super) async fn resolve(
        &self,
        session: &Session,
        conversation: Option<&Conversation>,
        decision: &ConfirmationReply,
        parent: Option<TraceContext>,
    ) -> ResolvedConfirmation {
        let taken = ConfirmationDecision::from(decision.answer()).within(parent);
        let answer = session.resolve_confirmation(&decision.token, taken).await;
        let resolved = ResolvedConfirmation::from(&answer);
        let response = &resolved.response;
        // A confirmation that is still open, or being resolved by another request, has no outcome yet. One that has expired
        // does: without it the turn would wait for ever.
        let is_open = session.find_confirmation_call(&decision.token).await.is_ok_and(|open| open.is_some());
        if let Some(conversation) = conversation
            && (!is_open || is_failure(response, ErrorType::ConfirmationExpired))
            && !is_invalid(response)
            && let Some(record) = conversation.record_resolution(&resolved)
        {
            self.store_turn(conversation, &record).await;
        }
        answer.mark_delivered();
        resolved
    }

    /// Answers the calls of a suspended turn whose user has sent something else, and ends the turn.
    pub(super) async fn end_suspended_turn(&self, conversation: &Conversation, answers: Vec<Answer>) {
        let closed = {
            let mut state = conversation.lock();
            let Some(record) = state.turns.last_mut().filter(|record| record.turn.ending().is_none()) else {
                return;
            };
            for answer in answers {
                record.record_resolution(ResolvedConfirmation::from(&answer));
                answer.mark_delivered();
            }
            let session = &conversation.session;
            record_known_outcomes(session, record);
            let snapshot = session.snapshot();
            let waiting: Vec<(Arc<str>, String)> =
                record.turn.unresolved_calls().map(|(id, tool)| (id.into(), tool.to_owned())).collect();
            for (call_id, tool) in waiting.into_iter().filter(|(id, _)| session.is_being_decided(id)) {
                let message = format!(
                    "{tool} was approved and is being carried out; whether it was done is not known yet."
                );
                let error = ToolError {
                    partial_side_effects: Some(true),
                    ..ToolError::new(ErrorType::Internal, message)
                };
                let response = Arc::new(snapshot.refuse(&tool, error, self.orchestrator.now()));
                record.record_resolution(ResolvedConfirmation { call_id, response, gates: None });
            }
            record.turn.stop(None, Ending::Answered, |tool| {
                let message = format!("{tool} was not approved in time. Nothing was done.");
                let error = ToolError::new(ErrorType::ConfirmationExpired, message);
                Arc::new(snapshot.refuse(tool, error, self.orchestrator.now()))
            });
            record.clone()
        };
        self.store_turn(conversation, &closed).await;
    }

    /// Resolves confirmations and resumes the turn that waited for them.
    async fn resume_turn(
        self: Arc<Self>,
        guard: TurnGuard,
        decisions: Vec<ConfirmationReply>,
        context: TurnContext,
        parent: Option<TraceContext>,
    ) {
        let conversation = guard.conversation.clone();
        let session = &conversation.session;
        let connection = session.connect_with(ConfirmationMode::Suspend);
        let waiting = conversation.unfinished();
        let message_id = match &waiting {
            Some(record) => record.message_id.clone(),
            None => format!("msg_{}", random_hex(8).unwrap_or_default()).into(),
        };
        let _ = guard.stream.push(started_event(&guard, &message_id));
        // What was resolved outside the conversation is news to its reader.
        if let Some(record) = &waiting {
            for (id, response) in record.turn.last_answers() {
                let gates = record.gates_of(&id);
                let _ = guard.stream.push(StreamEvent::ToolResult { id: id.into(), response, gates });
            }
        }
        let mut is_news = waiting.is_some();
        let number = waiting.as_ref().map_or(0, |record| record.number);
        let span = self.begin_span(session, number, &context, parent);
        for decision in decisions {
            let ResolvedConfirmation { call_id: id, response, gates } =
                self.resolve(session, Some(&conversation), &decision, span.context()).await;
            // A reply that is too late for a turn that has ended counts as little as a second one.
            let is_late = waiting.is_none() && is_failure(&response, ErrorType::ConfirmationExpired);
            if !is_invalid(&response) && !is_late {
                is_news = true;
                let _ = guard.stream.push(StreamEvent::ToolResult { id, response, gates });
            }
        }
        if !is_news {
            // Another request was faster, and the model has been told.
            let failure = Failure::invalid_confirmation();
            let _ = guard.stream.push(StreamEvent::Failed(failure));
            let ending = Some(Ending::Failed);
            let _ = guard.stream.push(StreamEvent::Finished { ending, usage: Usage::default() });
            drop((connection, guard));
            return self.release_settled(&conversation).await;
        }
        let record = match self.resumed_record(&conversation, message_id) {
            Ok(record) => record,
            Err(error) => return tracing::error!(error = %error, "turn not started"),
        };
        // A handle to a conversation keeps it in memory.
        drop(conversation);
        TurnDriver::new(self, guard, connection, record, context, span).run().await;
    }

    /// The record of the turn that waited. When none waits any more because the user has sent other messages, a new turn
    /// tells the model what was resolved.
    fn resumed_record(
        &self,
        conversation: &Conversation,
        message_id: Arc<str>,
    ) -> Result<TurnRecord, Refusal> {
        if let Some(mut record) = conversation.unfinished() {
            conversation.lock().apply_early_resolutions(&mut record);
            return Ok(record);
        }
        let TurnStart { number, notes, told, .. } = conversation.session.begin_turn(None);
        conversation.session.store_soon(told);
        let text = prepend_notes(conversation, notes, "");
        Ok(TurnRecord { message_id, ..self.new_record(number, None, String::new(), text)? })
    }
}

impl From<&Answer> for ResolvedConfirmation {
    fn from(answer: &Answer) -> Self {
        Self {
            call_id: answer.call_id.clone(),
            response: answer.response.clone(),
            gates: answer.trace.clone().map(Arc::new),
        }
    }
}

impl ConfirmationReply {
    fn answer(&self) -> ConfirmationAnswer {
        if self.is_approved { ConfirmationAnswer::Approve } else { ConfirmationAnswer::Deny }
    }
}

fn invalid_confirmation() -> Refusal {
    let Failure { kind, message, .. } = Failure::invalid_confirmation();
    Refusal::Confirmation(Box::new(ToolError::new(kind, message)))
}

/// Unknown, used, or being resolved by another request: no outcome of the call.
fn is_invalid(response: &ToolResponse) -> bool {
    is_failure(response, ErrorType::ConfirmationInvalid)
}

fn is_failure(response: &ToolResponse, kind: ErrorType) -> bool {
    matches!(&response.outcome, Outcome::Failure(error) if error.kind == kind)
}
