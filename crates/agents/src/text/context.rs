//! What stays the same through all rounds of a turn.

use std::sync::Arc;

use quarterdeck_contracts::ChatMessage;
use serde_json::Value;

use super::TextCore;
use super::conversation::Conversation;
use super::history::{count_excess_turns, message_tokens};
use crate::briefing::Brief;
use crate::declared_names::DeclaredNames;
use crate::prompt::Situation;

/// The instruction, the tools, and how much of the history fits beside them.
pub(super) struct TurnContext {
    pub(super) system: Arc<str>,
    pub(super) tools: Arc<[Value]>,
    pub(super) names: Arc<DeclaredNames>,
    /// Whether `describe_tool` is among them.
    pub(super) describes: bool,
    pub(super) trimmed_turns: usize,
    /// The client's own transcript, in protocols where the client keeps the conversation.
    pub(super) transcript: Option<Vec<ChatMessage>>,
    system_tokens: usize,
    tool_tokens: usize,
}

impl TurnContext {
    pub(super) fn new(
        agent: &TextCore,
        conversation: &Conversation,
        situation: &Situation,
        transcript: Option<Vec<ChatMessage>>,
    ) -> Self {
        let brief = agent.briefing.brief(&agent.orchestrator, &conversation.session, situation);
        let Brief { system, tools, names, describes, system_tokens, tool_tokens } = brief;
        let room = (agent.model.window() * 9 / 10).saturating_sub(system_tokens + tool_tokens);
        let trimmed_turns = 0;
        let mut context =
            Self { system, tools, names, describes, trimmed_turns, transcript, system_tokens, tool_tokens };
        context.trim_history(conversation, room);
        context.record_context_use(agent, 0);
        context
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
            agent.model.window() as u64,
        );
    }

    /// Estimated tokens of the instruction and the declarations.
    pub(super) fn tokens(&self) -> (usize, usize) {
        (self.system_tokens, self.tool_tokens)
    }
}
