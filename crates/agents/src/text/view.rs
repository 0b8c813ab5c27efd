//! Conversations as a client shows them after a reload.

use std::sync::Arc;

use quarterdeck_contracts::{ConfirmationRequest, ToolResponse};
use quarterdeck_runtime::gates::Trace;

use super::conversation::{Conversation, OpenConfirmation};
use super::feedback::Feedback;
use super::history::TurnRecord;
use super::listing::Listing;
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
    /// What the user thinks of it.
    pub feedback: Option<Feedback>,
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
    /// A conversation of this client. One whose session has ended is shown for as long as it is in the list.
    pub async fn view(&self, user: &User, of: Address<'_>) -> Result<Option<SessionView>, Refusal> {
        let core = &self.core;
        let (root, mut view) = match core.find(user, of).await? {
            Some(conversation) => (conversation.root(), conversation.view()),
            None => match core.load_ended(user, of).await? {
                Some((id, listing, turns)) => (listing.root.clone(), ended_view(id, &listing, &turns)),
                None => return Ok(None),
            },
        };
        core.add_feedback(&user.client.id, &root, &mut view).await?;
        // It may have been brought back only to be looked at.
        core.evict_if_large(&view.id);
        Ok(Some(view))
    }
}

impl Conversation {
    /// What is kept of the conversation as a whole is kept under this session.
    pub(super) fn root(&self) -> String {
        let state = self.lock();
        state.listing.as_ref().map_or_else(|| self.session.id().to_owned(), |listing| listing.root.clone())
    }

    fn view(&self) -> SessionView {
        let state = self.lock();
        let find_confirmation = |id: &str| {
            let is_open =
                |confirmation: &&OpenConfirmation| self.session.is_confirmation_open(&confirmation.request);
            let mut open = state.confirmations.iter().filter(is_open);
            open.find(|confirmation| &*confirmation.call_id == id)
                .map(|confirmation| confirmation.request.clone())
        };
        SessionView {
            id: self.session.id().to_owned(),
            registry_version: self.session.snapshot().version().to_owned(),
            is_running: state.running.is_some(),
            turns: views(&state.turns, find_confirmation),
        }
    }
}

fn ended_view(id: String, listing: &Listing, turns: &[TurnRecord]) -> SessionView {
    SessionView {
        id,
        registry_version: listing.registry_version.clone(),
        is_running: false,
        turns: views(turns, |_| None),
    }
}

/// The turns as they are shown, without those that were regenerated.
fn views(
    turns: &[TurnRecord],
    find_confirmation: impl Fn(&str) -> Option<Arc<ConfirmationRequest>>,
) -> Vec<TurnView> {
    let shown = turns.iter().filter(|record| !record.is_replaced);
    shown
        .map(|record| TurnView {
            user_message_id: record.person_id.clone(),
            user_text: record.said.clone(),
            at_ms: record.at_ms,
            message_id: record.message_id.clone(),
            parts: parts(record, &find_confirmation),
            ending: record.turn.ending().cloned(),
            feedback: None,
        })
        .collect()
}

pub(super) fn parts(
    record: &TurnRecord,
    find_confirmation: impl Fn(&str) -> Option<Arc<ConfirmationRequest>>,
) -> Vec<Part> {
    let mut parts: Vec<Part> = Vec::new();
    for event in record.turn.events() {
        match event {
            TurnEvent::Round => {}
            TurnEvent::Text(text) => parts.push(Part::Text(text.to_owned())),
            TurnEvent::Call(call) => {
                let (gates, question) = (record.gates_of(&call.id), find_confirmation(&call.id));
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
    parts
}
