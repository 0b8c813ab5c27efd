//! Changes a turn to the fallback.

use quarterdeck_contracts::ChatErrorKind;
use quarterdeck_runtime::ModelEvent;

use super::TurnDriver;
use crate::text::briefed_model::BriefedModel;
use crate::text::context::AskedModel;
use crate::text::event::StreamEvent;

impl TurnDriver {
    /// A model that fails all the time costs every user its timeout, so with a fallback it is left alone for a while.
    pub(super) fn skip_paused_model(&mut self) {
        let now_ms = self.agent.orchestrator.now_ms();
        let is_paused = |model: &BriefedModel| model.health.is_paused(now_ms);
        let can_stand_in = self.agent.fallback.as_ref().is_some_and(|fallback| !is_paused(fallback));
        let first = &self.agent.model;
        if let Some(failing) = first.health.failing().filter(|_| can_stand_in && is_paused(first)) {
            self.use_fallback(failing.kind);
        }
    }

    /// Changes to the fallback for the rest of the turn. `false` if there is none, it is asked already, or the reason is
    /// the conversation itself.
    pub(super) fn use_fallback(&mut self, reason: ChatErrorKind) -> bool {
        let Some(fallback) = &self.agent.fallback else { return false };
        if self.context.asked == AskedModel::Fallback || !reason.is_model_trouble() {
            return false;
        }
        let (from, to) = (self.agent.model.model.name(), fallback.model.name());
        tracing::warn!(
            session = self.guard.conversation.session.id(),
            turn = self.record.number,
            model = from,
            fallback = to,
            reason = reason.as_str(),
            "model failed, fallback asked"
        );
        self.agent.orchestrator.metrics().record_model(to, ModelEvent::StoodIn);
        let value = serde_json::json!({ "model": from, "fallback": to, "reason": reason.as_str() });
        self.emit(StreamEvent::Data { name: "model-fallback".into(), value });
        self.context = self.context.for_fallback(&self.agent, &self.guard.conversation);
        true
    }
}
