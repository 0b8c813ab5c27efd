//! What all conversations of one kind are told alike. It is made once: guides and declarations are tens of kilobytes, and
//! each message would pay for them before its first token.

use std::sync::{Arc, Mutex, PoisonError, Weak};

use quarterdeck_contracts::estimate_tokens;
use quarterdeck_runtime::{LoadedTool, Snapshot};
use serde_json::Value;

use crate::declared_names::DeclaredNames;
use crate::prompt::{Audience, Guides, Prompts, Standing};

pub(super) struct PreparedBrief {
    prompts: Arc<Prompts>,
    /// Not held: a version that no session has any more is dropped.
    snapshot: Weak<Snapshot>,
    tools: Vec<String>,
    audience: Audience,
    standing: Standing,
    standing_chars: usize,
    pub(super) declared: ToolDeclarations,
    /// The last instruction, with the situation that it ends with: conversations that begin in the same minute share it.
    last_system: Mutex<Option<(String, Arc<str>)>>,
}

pub(super) struct ToolDeclarations {
    pub(super) tools: Arc<[Value]>,
    pub(super) names: Arc<DeclaredNames>,
    pub(super) tokens: usize,
}

impl PreparedBrief {
    pub(super) fn new(
        prompts: Arc<Prompts>,
        snapshot: &Arc<Snapshot>,
        tools: &[&LoadedTool],
        audience: Audience,
        standing: Standing,
        declared: ToolDeclarations,
    ) -> Self {
        Self {
            prompts,
            snapshot: Arc::downgrade(snapshot),
            tools: tools.iter().map(|tool| tool.metadata().tool_id.to_string()).collect(),
            audience,
            standing_chars: standing.text.chars().count(),
            standing,
            declared,
            last_system: Mutex::default(),
        }
    }

    /// Whether a session with these prompts and tools is told the same.
    pub(super) fn is_for(
        &self,
        prompts: &Arc<Prompts>,
        snapshot: &Arc<Snapshot>,
        tools: &[&LoadedTool],
        audience: &Audience,
    ) -> bool {
        // Nothing else can be at the place of either as long as this refers to it.
        Arc::ptr_eq(&self.prompts, prompts)
            && std::ptr::eq(self.snapshot.as_ptr(), Arc::as_ptr(snapshot))
            && self.audience == *audience
            && self.tools.len() == tools.len()
            && self.tools.iter().zip(tools).all(|(known, tool)| known == tool.metadata().tool_id.as_str())
    }

    /// Whether a session may still ask for it.
    pub(super) fn is_in_use(&self) -> bool {
        self.snapshot.strong_count() > 0
    }

    /// Whether `describe_tool` is declared.
    pub(super) fn describes(&self) -> bool {
        self.standing.guides == Guides::Summaries
    }

    /// The instruction in a situation, and how many tokens it takes.
    pub(super) fn system(&self, situation: &str) -> (Arc<str>, usize) {
        let tokens = estimate_tokens(self.standing_chars + situation.chars().count());
        let mut last = self.last_system.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((_, system)) = last.as_ref().filter(|(known, _)| known == situation) {
            return (system.clone(), tokens);
        }
        let system: Arc<str> = [self.standing.text.as_str(), situation].concat().into();
        *last = Some((situation.to_owned(), system.clone()));
        (system, tokens)
    }
}
