//! What stays the same through a whole call.

use std::sync::Arc;

use quarterdeck_contracts::Mode;
use quarterdeck_runtime::{LoadedTool, Session};
use serde_json::Value;

use super::Inner;
use crate::describe;
use crate::prompt::{Guides, Situation, tokens};

/// The instruction and the tools.
pub(super) struct Prepared {
    pub(super) system: Arc<str>,
    pub(super) tools: Arc<[Value]>,
    /// Whether `describe_tool` is among them.
    pub(super) describes: bool,
}

impl Prepared {
    pub(super) fn new(agent: &Inner, session: &Session, situation: &Situation) -> Self {
        let orchestrator = &agent.orchestrator;
        let told: Vec<&LoadedTool> = agent.settings.declare.tools(session).collect();
        let system = agent.prompts.system(
            session,
            &told,
            situation,
            orchestrator.policy().of(Mode::Voice),
            agent.settings.guide_tokens,
            orchestrator.now(),
        );
        let form = agent.model.declarations();
        let declared = told.iter().filter_map(|tool| tool.compiled().provider_schemas.get(&form).cloned());
        let mut tools: Vec<Value> = declared.collect();
        let describes = system.guides == Guides::Summaries;
        if describes {
            tools.push(describe::declaration(form));
        }
        let system_tokens = tokens(system.text.chars().count());
        let tool_tokens: usize = tools.iter().map(|tool| tokens(tool.to_string().len())).sum();
        orchestrator.metrics().context(
            system_tokens as u64,
            tool_tokens as u64,
            (system_tokens + tool_tokens) as u64,
            0,
        );
        tracing::info!(session = session.id(), system_tokens, tool_tokens, "session started");
        Self { system: system.text.into(), tools: tools.into(), describes }
    }
}
