//! Resolves confirmations without their tokens, for a transport that asks the user itself.
//!
//! Such a transport never holds a token, so it cannot leak one. It keeps the id, which no client can redeem.

use std::sync::Arc;
use std::time::Duration;

use quarterdeck_contracts::{ConfirmationAnswer, ConfirmationRequest};
use serde_json::{Map, Value};

use super::decision::{ConfirmationDecision, DecisionSource};
use super::resolve::resolve;
use crate::ledger::CallContent;
use crate::session::{Answer, PendingConfirmation, Session};

/// Names a confirmation. It is the hash of the token, which it does not reveal.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ConfirmationId(String);

impl ConfirmationId {
    /// Reads an id that [`Self::as_str`] gave. Nothing else is looked up in the store.
    pub fn parse(text: &str) -> Option<Self> {
        let is_hash = text.len() == 64 && text.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'));
        is_hash.then(|| Self(text.to_owned()))
    }

    pub fn as_str(&self) -> &str {
        &self.0
    }
}

/// A confirmation that the user has not decided about. It holds no token.
#[derive(Debug, Clone)]
pub struct OpenConfirmation {
    pub id: ConfirmationId,
    /// The call that will run, by its id in the session.
    pub call_id: Arc<str>,
    /// What [`call_content`] gives for the call as it was made.
    pub content: Arc<str>,
    pub request: ConfirmationRequest,
    pub time_left: Duration,
}

/// Tool and arguments as one text, however the arguments are written; absent ones are `null` or `{}`.
pub fn call_content(tool: &str, args: &Value) -> Arc<str> {
    let content = match args {
        Value::Null => CallContent::new(tool, &Value::Object(Map::new())),
        args => CallContent::new(tool, args),
    };
    content.text().clone()
}

impl Session {
    /// The confirmation that a call was answered with, while it is open; `asked` is the request in that answer.
    pub fn find_open_confirmation(&self, asked: &ConfirmationRequest) -> Option<OpenConfirmation> {
        let is_asked = |request: &ConfirmationRequest| {
            request.clone().without_secrets() == asked.clone().without_secrets()
        };
        self.open_confirmation_where(|pending| pending.request.as_ref().is_some_and(is_asked))
    }

    /// A confirmation of this session by its id, while it is open.
    pub fn open_confirmation_by_id(&self, id: &ConfirmationId) -> Option<OpenConfirmation> {
        self.open_confirmation_where(|pending| pending.hash == id.0)
    }

    /// Takes the user's decision, as [`Session::resolve_confirmation`] does by its token. The caller answers for it that
    /// the decision is the user's.
    pub async fn resolve_confirmation_by_id(
        &self,
        id: &ConfirmationId,
        decision: ConfirmationAnswer,
    ) -> Answer {
        let decision = ConfirmationDecision::new(decision, DecisionSource::Transport);
        resolve(&self.core, id.0.clone(), decision).await
    }

    /// The user has decided on a page of the server. It counts when the call is made again.
    pub fn audit_page_decision(&self, call_id: &str, tool: &str, decision: ConfirmationAnswer) {
        let step = match decision {
            ConfirmationAnswer::Approve => "approved_on_page",
            ConfirmationAnswer::Deny => "denied_on_page",
        };
        self.core.audit_confirmation(step, Some(call_id), Some(tool));
    }

    /// A client has brought a decision that was not asked for about this call.
    pub fn audit_invalid_confirmation(&self, tool: &str) {
        self.core.audit_confirmation("invalid", None, Some(tool));
    }

    fn open_confirmation_where(
        &self,
        is_wanted: impl Fn(&PendingConfirmation) -> bool,
    ) -> Option<OpenConfirmation> {
        let shared = &self.core.shared;
        let data = self.core.lock();
        let pending = data.confirmations.iter().find(|pending| {
            !pending.is_claimed
                && shared.is_confirmation_open(&pending.hash, pending.expires_ms)
                && is_wanted(pending)
        })?;
        Some(OpenConfirmation {
            id: ConfirmationId(pending.hash.clone()),
            call_id: pending.call_id.clone(),
            content: pending.content.text().clone(),
            request: pending.request.clone()?.without_secrets(),
            time_left: shared.until_deadline(&pending.hash),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::super::token::hash;
    use super::*;

    #[test]
    fn only_a_hash_is_the_id_of_a_confirmation() {
        let hashed = hash("qdc_0123");
        assert_eq!(ConfirmationId::parse(&hashed).unwrap().as_str(), hashed);
        for text in ["", "qdc_0123", &hashed[1..], &hashed.to_uppercase(), &format!("{hashed}0")] {
            assert_eq!(ConfirmationId::parse(text), None, "{text}");
        }
    }
}
