//! What a model gets before a conversation: the instruction and the tools.

use std::sync::{Arc, Mutex, PoisonError};

use quarterdeck_contracts::{Provider, estimate_tokens};
use quarterdeck_runtime::{LoadedTool, Orchestrator, Session};
use serde_json::Value;

use crate::prompt::{Declare, Guides, Prompts, Situation};

/// Makes briefs for the sessions of one agent.
pub(crate) struct Briefing {
    pub(crate) prompts: Prompts,
    pub(crate) declare: Declare,
    pub(crate) guide_tokens: usize,
    pub(crate) form: Provider,
    /// The declaration of `describe_tool` in that form.
    describe_tool: Value,
    /// The last declarations. The next session nearly always wants the same ones.
    last: Mutex<Option<Arc<ToolDeclarations>>>,
}

/// Instruction and tools of a session.
pub(crate) struct Brief {
    pub(crate) system: Arc<str>,
    pub(crate) tools: Arc<[Value]>,
    /// Whether `describe_tool` is among them.
    pub(crate) describes: bool,
    pub(crate) system_tokens: usize,
    pub(crate) tool_tokens: usize,
}

struct ToolDeclarations {
    version: String,
    names: Vec<String>,
    describes: bool,
    tools: Arc<[Value]>,
    tokens: usize,
}

impl Briefing {
    pub(crate) fn new(
        prompts: Prompts,
        declare: Declare,
        guide_tokens: usize,
        form: Provider,
        describe_tool: Value,
    ) -> Self {
        Self { prompts, declare, guide_tokens, form, describe_tool, last: Mutex::default() }
    }

    /// Builds the instruction and tools of a session as of now.
    pub(crate) fn brief(
        &self,
        orchestrator: &Orchestrator,
        session: &Session,
        situation: &Situation,
    ) -> Brief {
        let tools: Vec<&LoadedTool> = self.declare.tools(session).collect();
        let budgets = orchestrator.policy().budgets(session.mode());
        let now = orchestrator.now();
        let system = self.prompts.system(session, &tools, situation, budgets, self.guide_tokens, now);
        let describes = system.guides == Guides::Summaries;
        let declared = self.declarations(session.snapshot().version(), &tools, describes);
        Brief {
            system_tokens: estimate_tokens(system.text.chars().count()),
            system: system.text.into(),
            tools: declared.tools.clone(),
            describes,
            tool_tokens: declared.tokens,
        }
    }

    fn declarations(&self, version: &str, tools: &[&LoadedTool], describes: bool) -> Arc<ToolDeclarations> {
        let mut last = self.last.lock().unwrap_or_else(PoisonError::into_inner);
        let name = |tool: &&LoadedTool| tool.metadata().tool_id.to_string();
        let is_same = |last: &&Arc<ToolDeclarations>| {
            last.version == version
                && last.describes == describes
                && last.names.len() == tools.len()
                && last
                    .names
                    .iter()
                    .zip(tools)
                    .all(|(known, tool)| *known == tool.metadata().tool_id.as_str())
        };
        if let Some(same) = last.as_ref().filter(is_same) {
            return same.clone();
        }
        let schemas =
            tools.iter().filter_map(|tool| tool.compiled().provider_schemas.get(&self.form).cloned());
        let mut schemas: Vec<Value> = schemas.collect();
        if describes {
            schemas.push(self.describe_tool.clone());
        }
        let tokens = schemas.iter().map(|schema| estimate_tokens(schema.to_string().len())).sum();
        let declared = Arc::new(ToolDeclarations {
            version: version.to_owned(),
            names: tools.iter().map(name).collect(),
            describes,
            tools: schemas.into(),
            tokens,
        });
        *last = Some(declared.clone());
        declared
    }
}
