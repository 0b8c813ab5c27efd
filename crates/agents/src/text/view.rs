//! Conversations as a client shows them after a reload.

use std::sync::Arc;

use quarterdeck_contracts::{ConfirmationRequest, ToolResponse};
use quarterdeck_runtime::PendingEnd;
use quarterdeck_runtime::gates::Trace;

use super::conversation::{Conversation, OpenConfirmation};
use super::{Address, Refusal, TextAgent, User};
use crate::turn::{Ending, TurnCall, TurnEvent};

#[derive(Debug, Clone, PartialEq)]
pub struct SessionView {
    pub id: String,
    /// The registry it is pinned to.
    pub registry_version: String,
    /// Whether an answer is being written.
    pub is_running: bool,
    /// The oldest first, without turns that were regenerated.
    pub turns: Vec<TurnView>,
}

#[derive(Debug, Clone, PartialEq)]
pub struct TurnView {
    /// The client's id for the user's message.
    pub user_message_id: Option<String>,
    pub user_text: String,
    /// When, in milliseconds since 1970.
    pub at_ms: u64,
    pub message_id: Arc<str>,
    /// The answer, in order.
    pub parts: Vec<Part>,
    pub ending: Option<Ending>,
}

/// One part of an answer.
#[derive(Debug, Clone, PartialEq)]
pub enum Part {
    Text(String),
    Call {
        call: TurnCall,
        answer: Option<Arc<ToolResponse>>,
        gates: Option<Arc<Trace>>,
        /// The confirmation request, while it is open.
        question: Option<Arc<ConfirmationRequest>>,
    },
}

impl TextAgent {
    /// A conversation of this client.
    pub async fn view(&self, user: &User, of: Address<'_>) -> Result<Option<SessionView>, Refusal> {
        let view = self.core.find(user, of).await?.map(|conversation| conversation.view());
        // It may have been brought back only to be looked at.
        if let Some(view) = &view {
            self.core.evict_if_large(&view.id);
        }
        Ok(view)
    }

    /// Ends a conversation of this client; `false` when there is none.
    pub async fn end(&self, user: &User, which: Address<'_>) -> Result<bool, Refusal> {
        let Some(conversation) = self.core.find(user, which).await? else { return Ok(false) };
        conversation.session.end(PendingEnd::with_reason("user_requested")).await;
        self.core.lock().remove(conversation.session.id());
        Ok(true)
    }
}

impl Conversation {
    fn view(&self) -> SessionView {
        let state = self.lock();
        let find_confirmation_call = |id: &str| {
            let is_open =
                |confirmation: &&OpenConfirmation| self.session.is_confirmation_open(&confirmation.request);
            let mut open = state.confirmations.iter().filter(is_open);
            open.find(|confirmation| &*confirmation.call_id == id)
                .map(|confirmation| confirmation.request.clone())
        };
        let turns = state.turns.iter().filter(|record| !record.is_replaced).map(|record| {
            let mut parts: Vec<Part> = Vec::new();
            for event in record.turn.events() {
                match event {
                    TurnEvent::Round => {}
                    TurnEvent::Text(text) => parts.push(Part::Text(text.to_owned())),
                    TurnEvent::Call(call) => {
                        let (gates, question) = (record.gates_of(&call.id), find_confirmation_call(&call.id));
                        parts.push(Part::Call { call, answer: None, gates, question });
                    }
                    TurnEvent::Answer(id, response) => {
                        let of = parts.iter_mut().find_map(|part| match part {
                            Part::Call { call, answer, .. } if call.id == id => Some(answer),
                            _ => None,
                        });
                        if let Some(answer) = of {
                            *answer = Some(response.clone());
                        }
                    }
                }
            }
            for part in &mut parts {
                if let Part::Call { call, answer, .. } = part
                    && let Some(response) = record.late.get(&*call.id)
                {
                    *answer = Some(response.clone());
                }
            }
            TurnView {
                user_message_id: record.person_id.clone(),
                user_text: record.said.clone(),
                at_ms: record.at_ms,
                message_id: record.message_id.clone(),
                parts,
                ending: record.turn.ending().cloned(),
            }
        });
        SessionView {
            id: self.session.id().to_owned(),
            registry_version: self.session.snapshot().version().to_owned(),
            is_running: state.running.is_some(),
            turns: turns.collect(),
        }
    }
}
