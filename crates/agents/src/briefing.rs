//! What a model gets before a conversation: the instruction and the tools.

use std::sync::{Arc, Mutex, PoisonError, RwLock};

use quarterdeck_contracts::{CompiledTool, Provider, estimate_tokens};
use quarterdeck_runtime::{LoadedTool, Orchestrator, Session};
use serde_json::Value;

use crate::declared_names::DeclaredNames;
use crate::prompt::{Declare, Guides, Prompts, Situation, ToldTime};

/// Makes briefs for the sessions of one agent.
pub(crate) struct Briefing {
    /// Replaced while conversations go on: the next brief has the new ones.
    prompts: RwLock<Arc<Prompts>>,
    pub(crate) declare: Declare,
    pub(crate) guide_tokens: usize,
    pub(crate) forms: DeclarationForms,
    /// The declaration of `describe_tool` in such a form.
    describe_tool: Value,
    /// The last declarations. The next session nearly always wants the same ones.
    last: Mutex<Option<Arc<ToolDeclarations>>>,
}

/// The forms in which a model takes declarations.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct DeclarationForms {
    pub(crate) usual: Provider,
    /// Says more, for tools of which the usual form would lose something.
    pub(crate) fuller: Option<Provider>,
}

impl DeclarationForms {
    /// The form of one tool; `None` when the model cannot take it.
    fn choose(self, tool: &CompiledTool) -> Option<Provider> {
        let has = |form: &Provider| tool.provider_schemas.contains_key(form);
        let is_lossless = has(&self.usual) && !tool.lossy.contains_key(&self.usual);
        let usual = Some(self.usual).filter(has).or(self.usual.predecessor().filter(has));
        self.fuller.filter(|form| !is_lossless && has(form)).or(usual)
    }
}

/// Instruction and tools of a session.
pub(crate) struct Brief {
    pub(crate) system: Arc<str>,
    pub(crate) tools: Arc<[Value]>,
    pub(crate) names: Arc<DeclaredNames>,
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
    declared: Arc<DeclaredNames>,
    tokens: usize,
}

impl Briefing {
    pub(crate) fn new(
        prompts: Prompts,
        declare: Declare,
        guide_tokens: usize,
        forms: DeclarationForms,
        describe_tool: Value,
    ) -> Self {
        let prompts = RwLock::new(Arc::new(prompts));
        Self { prompts, declare, guide_tokens, forms, describe_tool, last: Mutex::default() }
    }

    pub(crate) fn set_prompts(&self, prompts: Prompts) {
        *self.prompts.write().unwrap_or_else(PoisonError::into_inner) = Arc::new(prompts);
    }

    /// Builds the instruction and tools of a session as of now.
    pub(crate) fn brief(
        &self,
        orchestrator: &Orchestrator,
        session: &Session,
        situation: &Situation,
        told: ToldTime,
    ) -> Brief {
        self.brief_within(orchestrator, session, situation, told, self.guide_tokens)
    }

    /// The same, with another limit of what guides may take.
    pub(crate) fn brief_within(
        &self,
        orchestrator: &Orchestrator,
        session: &Session,
        situation: &Situation,
        told: ToldTime,
        guide_tokens: usize,
    ) -> Brief {
        let tools: Vec<&LoadedTool> = self.declare.tools(session).collect();
        let budgets = orchestrator.policy().budgets(session.mode());
        let times = (orchestrator.now(), told);
        let prompts = self.prompts.read().unwrap_or_else(PoisonError::into_inner).clone();
        let system = prompts.system(session, &tools, situation, budgets, guide_tokens, times);
        let describes = system.guides == Guides::Summaries;
        let declared = self.declarations(session.snapshot().version(), &tools, describes);
        Brief {
            system_tokens: estimate_tokens(system.text.chars().count()),
            system: system.text.into(),
            tools: declared.tools.clone(),
            names: declared.declared.clone(),
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
        let chosen = tools.iter().filter_map(|tool| Some((*tool, self.forms.choose(tool.compiled())?)));
        let chosen: Vec<(&LoadedTool, Provider)> = chosen.collect();
        let schema =
            |(tool, form): &(&LoadedTool, Provider)| tool.compiled().provider_schemas.get(form).cloned();
        let mut schemas: Vec<Value> = chosen.iter().filter_map(schema).collect();
        if describes {
            schemas.push(self.describe_tool.clone());
        }
        let tokens = schemas.iter().map(|schema| estimate_tokens(schema.to_string().len())).sum();
        let declared = Arc::new(ToolDeclarations {
            version: version.to_owned(),
            names: tools.iter().map(name).collect(),
            describes,
            tools: schemas.into(),
            declared: Arc::new(DeclaredNames::new(chosen.into_iter())),
            tokens,
        });
        *last = Some(declared.clone());
        declared
    }
}
