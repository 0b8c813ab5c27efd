//! What stays the same through all rounds of a turn.

use std::sync::Arc;

use quarterdeck_contracts::ChatMessage;
use serde_json::Value;

use super::TextCore;
use super::briefed_model::BriefedModel;
use super::conversation::Conversation;
use super::history::{count_excess_turns, message_tokens};
use crate::briefing::Brief;
use crate::declared_names::DeclaredNames;
use crate::prompt::{Situation, ToldTime};

/// The instruction and the tools of the model that is asked, and how much of the history fits beside them.
pub(super) struct TurnContext {
    pub(super) asked: AskedModel,
    pub(super) system: Arc<str>,
    pub(super) tools: Arc<[Value]>,
    pub(super) names: Arc<DeclaredNames>,
    /// Whether `describe_tool` is among them.
    pub(super) describes: bool,
    pub(super) trimmed_turns: usize,
    /// The client's own transcript, in protocols where the client keeps the conversation.
    pub(super) transcript: Option<Vec<ChatMessage>>,
    /// What time it is, where the instruction does not say. It goes into the message that begins a turn; one that is
    /// resumed goes on without.
    pub(super) time_note: Option<String>,
    situation: Situation,
    system_tokens: usize,
    tool_tokens: usize,
}

/// Which of the models is asked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum AskedModel {
    First,
    Fallback,
}

impl AskedModel {
    pub(super) fn of(self, agent: &TextCore) -> &BriefedModel {
        match self {
            Self::First => &agent.model,
            // A context for the fallback exists only where there is one.
            Self::Fallback => agent.fallback.as_ref().unwrap_or(&agent.model),
        }
    }
}

impl TurnContext {
    pub(super) fn new(
        agent: &TextCore,
        conversation: &Conversation,
        situation: &Situation,
        transcript: Option<Vec<ChatMessage>>,
    ) -> Self {
        Self::of_model(AskedModel::First, agent, conversation, situation, transcript)
    }

    /// The context for the fallback, in which declarations have its form and the history fits its window.
    pub(super) fn for_fallback(&mut self, agent: &TextCore, conversation: &Conversation) -> Self {
        let transcript = self.transcript.take();
        Self::of_model(AskedModel::Fallback, agent, conversation, &self.situation, transcript)
    }

    fn of_model(
        asked: AskedModel,
        agent: &TextCore,
        conversation: &Conversation,
        situation: &Situation,
        transcript: Option<Vec<ChatMessage>>,
    ) -> Self {
        let model = asked.of(agent);
        let told = ToldTime::Began(conversation.began());
        let brief = model.brief(&agent.orchestrator, &conversation.session, situation, told);
        let Brief { system, tools, names, describes, system_tokens, tool_tokens } = brief;
        let room = (model.window_tokens() * 9 / 10).saturating_sub(system_tokens + tool_tokens);
        let mut context = Self {
            asked,
            situation: situation.clone(),
            system,
            tools,
            names,
            describes,
            trimmed_turns: 0,
            transcript,
            time_note: situation.time_note(conversation.began(), agent.orchestrator.now()),
            system_tokens,
            tool_tokens,
        };
        context.trim_history(conversation, room);
        context.record_context_use(agent, 0);
        context
    }

    /// Makes it as short as the model's window asks for by now: summaries instead of guides, and less history. `false` when
    /// it was as short before.
    pub(super) fn shorten(&mut self, agent: &TextCore, conversation: &Conversation) -> bool {
        let length = |context: &Self| {
            (context.describes, context.trimmed_turns, context.transcript.as_ref().map(Vec::len))
        };
        let before = length(self);
        let (situation, transcript) = (self.situation.clone(), self.transcript.take());
        *self = Self::of_model(self.asked, agent, conversation, &situation, transcript);
        // The turn that is running is the last one, and is never left out.
        let earlier = conversation.lock().turns.len().saturating_sub(1);
        self.trimmed_turns = self.trimmed_turns.min(earlier);
        length(self) != before
    }

    /// Leaves out the oldest turns that do not fit. Some room stays for what this turn brings.
    fn trim_history(&mut self, conversation: &Conversation, room: usize) {
        let room = room - room / 4;
        match &mut self.transcript {
            None => self.trimmed_turns = count_excess_turns(&conversation.lock().turns, room),
            Some(transcript) => {
                let mut used = 0;
                let fits = transcript.iter().rev().take_while(|message| {
                    used += message_tokens(message);
                    used <= room
                });
                let kept = fits.count();
                transcript.drain(..transcript.len() - kept);
            }
        }
    }

    pub(super) fn record_context_use(&self, agent: &TextCore, used: u64) {
        let (system, tools) = (self.system_tokens as u64, self.tool_tokens as u64);
        agent.orchestrator.metrics().context(
            system,
            tools,
            used.max(system + tools),
            self.asked.of(agent).window_tokens() as u64,
        );
    }

    /// Estimated tokens of the instruction and the declarations.
    pub(super) fn tokens(&self) -> (usize, usize) {
        (self.system_tokens, self.tool_tokens)
    }
}
