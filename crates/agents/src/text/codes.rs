//! Short codes for questions, where a protocol has no way to ask a person: they answer in words that code understands.
//!
//! A code is no token. It only picks one of the questions that are open in the person's own conversation, and it counts
//! only as the whole of what the person says, so that nothing a model writes can use it.

use sha2::{Digest, Sha256};

use super::Decision;
use super::conversation::{Conversation, OpenQuestion};

/// The code of a question, from its token.
pub fn code_of(token: &str) -> String {
    let digest = Sha256::digest([b"code:", token.as_bytes()].concat());
    digest.iter().take(3).map(|byte| format!("{byte:02X}")).collect()
}

impl OpenQuestion {
    pub(super) fn is_answered_by(&self, decision: &Decision) -> bool {
        self.request.token.as_ref().is_some_and(|token| token.expose() == decision.token)
    }
}

impl Conversation {
    /// The decision that a person's words are, if they are one.
    pub(super) fn decision_in(&self, text: &str) -> Option<Decision> {
        let (word, code) = text.trim().split_once(char::is_whitespace)?;
        let is_approved = match word.to_ascii_lowercase().as_str() {
            "approve" => true,
            "deny" => false,
            _ => return None,
        };
        let talk = self.lock();
        let tokens = talk.questions.iter().filter_map(|question| question.request.token.as_ref());
        let mut tokens = tokens.map(|token| token.expose());
        let token = tokens.find(|token| code_of(token).eq_ignore_ascii_case(code.trim()))?;
        Some(Decision { token: token.to_owned(), is_approved })
    }
}
