//! What happens when a request is too long for the model.

use quarterdeck_contracts::{ChatError, ChatErrorKind};

use super::TurnDriver;

impl TurnDriver {
    /// Whether the request was too long for the model and can be made shorter. A second time it cannot.
    pub(super) fn shorten_after(&mut self, error: &ChatError) -> bool {
        if error.kind != ChatErrorKind::TooLong {
            return false;
        }
        self.context.asked.of(&self.agent).window.learn(error.context);
        let can_shorten = self.context.shorten(&self.agent, &self.guard.conversation);
        tracing::warn!(
            session = self.guard.conversation.session.id(),
            limit = error.context.map(|context| context.limit),
            sent = error.context.and_then(|context| context.sent),
            can_shorten,
            "the model's context is too small; from now on it gets summaries of the tools instead of their guides. \
             Start the model's server with a larger one, or declare fewer tools"
        );
        can_shorten
    }
}
