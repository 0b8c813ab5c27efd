//! A user's decision about a call, and how it was given.

use std::fmt;
use std::time::SystemTime;

use quarterdeck_contracts::ConfirmationAnswer;
use quarterdeck_contracts::telemetry::TraceContext;
use serde_json::{Map, Value, json};

use super::row::ConfirmationRow;
use crate::clock::epoch_ms;
use crate::redact::{HIDDEN, Secrets};
use crate::session::SessionCore;

/// How many characters of a transcript the audit log keeps. An answer of the grammar is shorter.
const MAX_TRANSCRIPT_CHARS: usize = 200;

/// What the user decided, and how.
#[derive(Debug, Clone, PartialEq)]
pub struct ConfirmationDecision {
    pub answer: ConfirmationAnswer,
    pub source: DecisionSource,
    /// The span that the approved call is a part of.
    pub parent: Option<TraceContext>,
}

impl ConfirmationDecision {
    pub fn new(answer: ConfirmationAnswer, source: DecisionSource) -> Self {
        Self { answer, source, parent: None }
    }

    /// The same, taken within a span.
    #[must_use]
    pub fn within(mut self, parent: Option<TraceContext>) -> Self {
        self.parent = parent;
        self
    }
}

/// A decision that came with its token and nothing else is one by [`DecisionSource::Page`].
impl From<ConfirmationAnswer> for ConfirmationDecision {
    fn from(answer: ConfirmationAnswer) -> Self {
        Self::new(answer, DecisionSource::Page)
    }
}

/// How a decision was given. The audit log has it.
#[derive(Debug, Clone, PartialEq)]
pub enum DecisionSource {
    /// In a client that shows the question: a click on the page or the widget, or a typed reply with its code.
    Page,
    /// By an operator who tries a tool on the deck.
    Operator,
    /// At the terminal of the program.
    Terminal,
    /// By a transport that asks the user itself, such as MCP.
    Transport,
    /// By voice. Whether that counts is judged for each question.
    Spoken(SpokenWords),
}

impl DecisionSource {
    /// The name in the audit log.
    pub fn as_str(&self) -> &'static str {
        match self {
            Self::Page => "page",
            Self::Operator => "operator",
            Self::Terminal => "terminal",
            Self::Transport => "transport",
            Self::Spoken(_) => "spoken",
        }
    }

    /// What the audit log says about it. The words are the user's, so that what is sensitive about the call is hidden in
    /// them too.
    pub(super) fn audit_fields(&self, core: &SessionCore, row: &ConfirmationRow) -> Map<String, Value> {
        let mut fields = Map::from_iter([("source".to_owned(), self.as_str().into())]);
        let Self::Spoken(words) = self else { return fields };
        let tool = core.snapshot.find(&row.tool);
        let start: String = words.transcript.chars().take(MAX_TRANSCRIPT_CHARS).collect();
        // Of a tool that does not exist it is not known what is sensitive.
        let transcript = match tool.map(|tool| Secrets::of(tool.sensitive(), &row.args)) {
            Some(secrets) => secrets.hide(&start),
            None => HIDDEN.to_owned(),
        };
        fields.insert("transcript".into(), transcript.into());
        fields.insert("confidence".into(), json!(words.confidence));
        fields.insert("heardAtMs".into(), epoch_ms(words.heard_at).into());
        fields
    }
}

/// What the user said, by the transcript of their own audio. It does not print itself.
#[derive(Clone, PartialEq)]
pub struct SpokenWords {
    /// All that was said in the utterance.
    pub transcript: String,
    /// How sure the recogniser is of it, from 0 to 1, if it says.
    pub confidence: Option<f32>,
    /// When the user began to say it, by [`crate::Orchestrator::now`].
    pub heard_at: SystemTime,
    /// The four digits that were said, if any.
    pub code: Option<String>,
}

impl fmt::Debug for SpokenWords {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SpokenWords")
            .field("confidence", &self.confidence)
            .field("heard_at", &self.heard_at)
            .finish_non_exhaustive()
    }
}
