//! What a model is told before anybody says anything: the instruction and the tools.

use std::sync::{Arc, Mutex, PoisonError};

use quarterdeck_contracts::Provider;
use quarterdeck_runtime::{LoadedTool, Orchestrator, Session};
use serde_json::Value;

use crate::describe;
use crate::prompt::{Declare, Guides, Prompts, Situation, tokens};

/// Makes briefs for the sessions of one agent.
pub(crate) struct Briefing {
    pub(crate) prompts: Prompts,
    pub(crate) declare: Declare,
    pub(crate) guide_tokens: usize,
    pub(crate) form: Provider,
    /// The declarations that were asked for last. Nearly always the next session wants the same ones.
    last: Mutex<Option<Arc<Declared>>>,
}

/// What a model is told.
pub(crate) struct Brief {
    pub(crate) system: Arc<str>,
    pub(crate) tools: Arc<[Value]>,
    /// Whether `describe_tool` is among them.
    pub(crate) describes: bool,
    pub(crate) system_tokens: usize,
    pub(crate) tool_tokens: usize,
}

struct Declared {
    version: String,
    names: Vec<String>,
    describes: bool,
    tools: Arc<[Value]>,
    tokens: usize,
}

impl Briefing {
    pub(crate) fn new(prompts: Prompts, declare: Declare, guide_tokens: usize, form: Provider) -> Self {
        Self { prompts, declare, guide_tokens, form, last: Mutex::default() }
    }

    /// What the model of a session is told at this moment.
    pub(crate) fn brief(
        &self,
        orchestrator: &Orchestrator,
        session: &Session,
        situation: &Situation,
    ) -> Brief {
        let told: Vec<&LoadedTool> = self.declare.tools(session).collect();
        let budgets = orchestrator.policy().budgets(session.mode());
        let now = orchestrator.now();
        let system = self.prompts.system(session, &told, situation, budgets, self.guide_tokens, now);
        let describes = system.guides == Guides::Summaries;
        let declared = self.declared(session.snapshot().version(), &told, describes);
        Brief {
            system_tokens: tokens(system.text.chars().count()),
            system: system.text.into(),
            tools: declared.tools.clone(),
            describes,
            tool_tokens: declared.tokens,
        }
    }

    fn declared(&self, version: &str, told: &[&LoadedTool], describes: bool) -> Arc<Declared> {
        let mut last = self.last.lock().unwrap_or_else(PoisonError::into_inner);
        let name = |tool: &&LoadedTool| tool.metadata().tool_id.to_string();
        let is_same = |last: &&Arc<Declared>| {
            last.version == version
                && last.describes == describes
                && last.names.len() == told.len()
                && last.names.iter().zip(told).all(|(known, tool)| *known == tool.metadata().tool_id.as_str())
        };
        if let Some(same) = last.as_ref().filter(is_same) {
            return same.clone();
        }
        let schemas =
            told.iter().filter_map(|tool| tool.compiled().provider_schemas.get(&self.form).cloned());
        let mut tools: Vec<Value> = schemas.collect();
        if describes {
            tools.push(describe::declaration(self.form));
        }
        let tokens = tools.iter().map(|tool| tokens(tool.to_string().len())).sum();
        let declared = Arc::new(Declared {
            version: version.to_owned(),
            names: told.iter().map(name).collect(),
            describes,
            tools: tools.into(),
            tokens,
        });
        *last = Some(declared.clone());
        declared
    }
}
