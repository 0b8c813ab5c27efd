//! Short codes for questions, where a protocol has no way to ask a person: they answer in words that code understands.
//!
//! A code is no token. It only picks one of the questions that are open in the person's own conversation, and it counts
//! only as the whole of what the person says, so that nothing a model writes can use it.

use std::sync::Arc;

use quarterdeck_contracts::sha256;

use super::conversation::{Conversation, OpenQuestion};
use super::{Decision, Inner};

/// The code of a question, from its token.
pub fn code_of(token: &str) -> String {
    sha256(format!("code:{token}").as_bytes())[..6].to_uppercase()
}

impl OpenQuestion {
    pub(super) fn is_answered_by(&self, decision: &Decision) -> bool {
        self.request.token.as_ref().is_some_and(|token| token.expose() == decision.token)
    }
}

impl Inner {
    /// The conversation of this client in which a question is open that these words decide. A client that tells the
    /// conversation itself may tell it differently the next time, and the code alone says which one is meant.
    pub(super) fn decided_in(&self, client: &str, text: &str) -> Option<Arc<Conversation>> {
        word_and_code(text)?;
        let known = self.lock();
        let mut own = known.values().filter(|conversation| conversation.session.client() == client);
        own.find(|conversation| conversation.decision_in(text).is_some()).cloned()
    }
}

impl Conversation {
    /// The decision that a person's words are, if they are one.
    pub(super) fn decision_in(&self, text: &str) -> Option<Decision> {
        let (is_approved, code) = word_and_code(text)?;
        let talk = self.lock();
        let tokens = talk.questions.iter().filter_map(|question| question.request.token.as_ref());
        let mut tokens = tokens.map(|token| token.expose());
        let token = tokens.find(|token| code_of(token).eq_ignore_ascii_case(code))?;
        Some(Decision { token: token.to_owned(), is_approved })
    }
}

/// `approve` or `deny`, and what follows.
fn word_and_code(text: &str) -> Option<(bool, &str)> {
    let (word, code) = text.trim().split_once(char::is_whitespace)?;
    match word.to_ascii_lowercase().as_str() {
        "approve" => Some((true, code.trim())),
        "deny" => Some((false, code.trim())),
        _ => None,
    }
}
