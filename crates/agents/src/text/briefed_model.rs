//! A chat model with what it is told before a conversation, and how it has been doing.

use std::sync::Arc;
use std::time::Duration;

use quarterdeck_contracts::telemetry::{ModelSpan, Span};
use quarterdeck_contracts::{ChatError, ChatModel, ModelReply};
use quarterdeck_runtime::{ModelEvent, Orchestrator, Session};
use tokio::time::Instant;

use super::Settings;
use super::model_health::{Failing, ModelHealth};
use super::window::Window;
use crate::briefing::{Brief, Briefing, DeclarationForms};
use crate::describe;
use crate::prompt::{Prompts, Situation, ToldTime};

/// The briefing is the model's own: providers differ in the form of declarations and in the names that they take.
pub(super) struct BriefedModel {
    pub(super) model: Arc<dyn ChatModel>,
    pub(super) window: Window,
    pub(super) health: ModelHealth,
    briefing: Briefing,
}

impl BriefedModel {
    pub(super) fn new(model: Arc<dyn ChatModel>, prompts: Prompts, settings: &Settings) -> Self {
        let describe_tool = describe::declaration(|name, description, parameters| {
            model.declare(name, description, parameters)
        });
        let forms = DeclarationForms { usual: model.declarations(), fuller: None };
        let briefing = Briefing::new(prompts, settings.declare, settings.guide_tokens, forms, describe_tool);
        Self { model, window: Window::default(), health: ModelHealth::default(), briefing }
    }

    /// The instruction and the tools, in summaries where guides have been too long for it.
    pub(super) fn brief(
        &self,
        orchestrator: &Orchestrator,
        session: &Session,
        situation: &Situation,
        told: ToldTime,
    ) -> Brief {
        let guide_tokens = if self.window.is_small() { 0 } else { self.briefing.guide_tokens };
        self.briefing.brief_within(orchestrator, session, situation, told, guide_tokens)
    }

    pub(super) fn set_prompts(&self, prompts: Prompts) {
        self.briefing.set_prompts(prompts);
    }

    /// How many tokens it takes, as far as is known.
    pub(super) fn window_tokens(&self) -> usize {
        self.window.tokens(self.model.window())
    }

    pub(super) fn status(&self) -> ModelStatus {
        ModelStatus { name: self.model.name().to_owned(), failing: self.health.failing() }
    }
}

/// A model, and whether it fails.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ModelStatus {
    /// `provider/model`.
    pub name: String,
    pub failing: Option<Failing>,
}

/// A model that fails, and what answers in its place.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ModelTrouble {
    /// `provider/model`.
    pub model: String,
    pub failing: Failing,
    /// The model that is asked in its place, if one is configured.
    pub fallback: Option<ModelStatus>,
}

impl ModelTrouble {
    /// The model that answers instead, unless it fails as well.
    pub fn stand_in(&self) -> Option<&str> {
        self.fallback.as_ref().filter(|fallback| fallback.failing.is_none()).map(|fallback| &*fallback.name)
    }
}

/// One request to a model, counted and timed. One that is dropped without an end was cancelled.
pub(super) struct ModelRequest {
    orchestrator: Orchestrator,
    model: Arc<str>,
    began: Instant,
    has_output: bool,
    is_over: bool,
    span: ModelSpan,
}

impl ModelRequest {
    pub(super) fn begin(orchestrator: &Orchestrator, asked: &BriefedModel, turn: &Span) -> Self {
        let model: Arc<str> = asked.model.name().into();
        orchestrator.metrics().record_model(&model, ModelEvent::Asked);
        let span = ModelSpan::begin(orchestrator.tracer(), &model, turn.context());
        let orchestrator = orchestrator.clone();
        Self { orchestrator, model, began: Instant::now(), has_output: false, is_over: false, span }
    }

    /// Something came, be it a thought.
    pub(super) fn record_output(&mut self) {
        if !std::mem::replace(&mut self.has_output, true) {
            let after = self.began.elapsed();
            self.record(ModelEvent::FirstToken(after));
            self.span.record_first_output(after);
        }
    }

    /// What the provider's own spans have as their parent.
    pub(super) fn span(&self) -> &ModelSpan {
        &self.span
    }

    /// Whether anything came that may have been shown.
    pub(super) fn has_output(&self) -> bool {
        self.has_output
    }

    pub(super) fn answered(mut self, asked: &BriefedModel, reply: &ModelReply) {
        // A reply that is nothing but calls has its first token with its end.
        self.record_output();
        self.is_over = true;
        self.record(ModelEvent::Answered(reply.usage));
        self.span.record_reply(reply);
        if let Some(failing) = asked.health.record_success() {
            let lasted = self.orchestrator.now_ms().saturating_sub(failing.since_ms);
            let (model, failures) = (&*self.model, failing.failures);
            tracing::info!(model, failures, lasted = ?Duration::from_millis(lasted), "model answers again");
        }
    }

    pub(super) fn failed(&mut self, asked: &BriefedModel, error: &ChatError) {
        self.is_over = true;
        self.record(ModelEvent::Failed(error.kind));
        self.span.record_failure(error);
        asked.health.record_failure(error, self.orchestrator.now_ms());
    }

    fn record(&self, event: ModelEvent) {
        self.orchestrator.metrics().record_model(&self.model, event);
    }
}

impl Drop for ModelRequest {
    fn drop(&mut self) {
        if !self.is_over {
            self.record(ModelEvent::Cancelled);
        }
    }
}
