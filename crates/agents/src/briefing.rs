//! What a model gets before a conversation: the instruction and the tools.

mod prepared;

use std::sync::{Arc, Mutex, PoisonError, RwLock};

use quarterdeck_contracts::{CompiledTool, Provider, estimate_tokens};
use quarterdeck_runtime::{LoadedTool, Orchestrator, Session};
use serde_json::Value;

use self::prepared::{PreparedBrief, ToolDeclarations};
use crate::declared_names::DeclaredNames;
use crate::prompt::{Audience, Declare, Guides, Prompts, Situation, ToldTime};

/// How many briefs are kept prepared: clients that have signed in and others, with the tools of two versions.
const MAX_PREPARED: usize = 4;

/// Makes briefs for the sessions of one agent.
pub(crate) struct Briefing {
    /// Replaced while conversations go on: the next brief has the new ones.
    prompts: RwLock<Arc<Prompts>>,
    pub(crate) declare: Declare,
    pub(crate) guide_tokens: usize,
    pub(crate) forms: DeclarationForms,
    /// The declaration of `describe_tool` in such a form.
    describe_tool: Value,
    /// The last ones, the latest first. The next session nearly always wants one of them.
    prepared: Mutex<Vec<Arc<PreparedBrief>>>,
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

impl Briefing {
    pub(crate) fn new(
        prompts: Prompts,
        declare: Declare,
        guide_tokens: usize,
        forms: DeclarationForms,
        describe_tool: Value,
    ) -> Self {
        let prompts = RwLock::new(Arc::new(prompts));
        Self { prompts, declare, guide_tokens, forms, describe_tool, prepared: Mutex::default() }
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
        let prepared = self.prepare(orchestrator, session, guide_tokens);
        let situation = situation.describe(session.mode(), orchestrator.now(), told);
        let (system, system_tokens) = prepared.system(&situation);
        let ToolDeclarations { tools, names, tokens } = &prepared.declared;
        Brief {
            system,
            system_tokens,
            tools: tools.clone(),
            names: names.clone(),
            describes: prepared.describes(),
            tool_tokens: *tokens,
        }
    }

    /// What this session's brief has in common with others.
    fn prepare(
        &self,
        orchestrator: &Orchestrator,
        session: &Session,
        guide_tokens: usize,
    ) -> Arc<PreparedBrief> {
        let prompts = self.prompts.read().unwrap_or_else(PoisonError::into_inner).clone();
        let tools: Vec<&LoadedTool> = self.declare.tools(session).collect();
        let budgets = orchestrator.policy().budgets(session.mode());
        let audience = Audience::of(session, budgets, guide_tokens);
        let mut prepared = self.prepared.lock().unwrap_or_else(PoisonError::into_inner);
        let known =
            prepared.iter().position(|known| known.is_for(&prompts, session.snapshot(), &tools, &audience));
        if let Some(place) = known {
            prepared[..=place].rotate_right(1);
            return prepared[0].clone();
        }
        let standing = prompts.standing(session.snapshot().version(), &tools, &audience);
        let declared = self.declarations(&tools, standing.guides == Guides::Summaries);
        let brief = PreparedBrief::new(prompts, session.snapshot(), &tools, audience, standing, declared);
        let brief = Arc::new(brief);
        prepared.retain(|known| known.is_in_use());
        prepared.truncate(MAX_PREPARED - 1);
        prepared.insert(0, brief.clone());
        brief
    }

    fn declarations(&self, tools: &[&LoadedTool], describes: bool) -> ToolDeclarations {
        let chosen = tools.iter().filter_map(|tool| Some((*tool, self.forms.choose(tool.compiled())?)));
        let chosen: Vec<(&LoadedTool, Provider)> = chosen.collect();
        let schema =
            |(tool, form): &(&LoadedTool, Provider)| tool.compiled().provider_schemas.get(form).cloned();
        let mut schemas: Vec<Value> = chosen.iter().filter_map(schema).collect();
        if describes {
            schemas.push(self.describe_tool.clone());
        }
        let tokens = schemas.iter().map(|schema| estimate_tokens(schema.to_string().len())).sum();
        let names = Arc::new(DeclaredNames::new(chosen.into_iter()));
        ToolDeclarations { tools: schemas.into(), names, tokens }
    }
}
