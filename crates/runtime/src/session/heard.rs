//! What the user of a call has heard of an answer.

use std::time::Duration;

use serde_json::json;

use super::Session;

/// How much of one answer was played to the user.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct HeardReceipt {
    /// The turn that was answered.
    pub turn: u64,
    pub heard: Duration,
    /// How long the answer is, as far as it was spoken.
    pub of: Duration,
    /// How many words were heard to their end.
    pub words: u32,
    /// How many words the answer has; zero where no transcript of it has come.
    pub of_words: u32,
    /// Whether it was cut off.
    pub is_interrupted: bool,
}

impl Session {
    /// Writes to the audit log how much the user has heard of an answer. The words themselves are in the history, where they
    /// can be erased.
    pub fn record_heard(&self, receipt: HeardReceipt) {
        let HeardReceipt { turn, heard, of, words, of_words, is_interrupted } = receipt;
        let mut fields = json!({
            "turnId": turn, "heardMs": heard.as_millis() as u64, "ofMs": of.as_millis() as u64,
            "isInterrupted": is_interrupted,
        });
        if of_words > 0 {
            fields["words"] = words.into();
            fields["ofWords"] = of_words.into();
        }
        self.core.audit_session("answer_heard", fields);
    }
}
