//! What an operator may choose.

use std::time::Duration;

/// Settings of a [`Pipeline`](crate::Pipeline).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PipelineSettings {
    /// The language of users whose own is not known, `en` or `de-AT`.
    pub language: Option<String>,
    /// How much audio before the start of speech belongs to the utterance.
    pub pre_roll: Duration,
    /// After how long an utterance is transcribed although it goes on.
    pub max_utterance: Duration,
    /// How much audio is made ahead of what can have been played.
    pub max_lead: Duration,
}

impl Default for PipelineSettings {
    fn default() -> Self {
        Self {
            language: None,
            pre_roll: Duration::from_millis(1_000),
            max_utterance: Duration::from_secs(60),
            max_lead: Duration::from_secs(3),
        }
    }
}
