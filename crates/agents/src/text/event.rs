//! What a turn tells whoever follows it. Servers put it into their own words.

use std::sync::Arc;

use quarterdeck_contracts::{ChatErrorKind, ConfirmationRequest, ErrorType, ToolResponse, Usage};
use quarterdeck_runtime::gates::Trace;
use serde_json::Value;

use super::held::written_bytes;
use crate::turn::{Ending, TurnCall};

/// Something that happens in a turn, as it happens.
#[derive(Debug, Clone, PartialEq)]
pub enum StreamEvent {
    /// The turn has begun, or goes on after a person's word.
    Started {
        /// The id of the message that answers.
        message_id: Arc<str>,
        /// The session.
        session_id: Arc<str>,
    },
    /// The model is asked.
    RoundStarted,
    /// More words for the person.
    Text(Box<str>),
    /// More of what the model thinks.
    Thought(Box<str>),
    /// The model calls a tool.
    ToolCall(Arc<TurnCall>),
    /// A person is asked about a call.
    ConfirmationRequest {
        /// Which call.
        id: Arc<str>,
        /// What is asked, with the token that answers it.
        request: Arc<ConfirmationRequest>,
    },
    /// A call is answered.
    ToolResult {
        /// Which call.
        id: Arc<str>,
        /// The envelope.
        response: Arc<ToolResponse>,
        /// What the gates said, if they were asked just now.
        gates: Option<Arc<Trace>>,
    },
    /// A note while a slow tool runs.
    Progress {
        /// Which call.
        id: Arc<str>,
        /// What it says.
        text: Box<str>,
    },
    /// The outcome of a call of an earlier turn.
    LateToolResult {
        /// Which call.
        id: Arc<str>,
        /// The tool.
        name: Arc<str>,
        /// The envelope.
        response: Arc<ToolResponse>,
        /// What the gates said, if somebody remembers.
        gates: Option<Arc<Trace>>,
    },
    /// Something for the page: a tool's message, or a note of ours.
    Data {
        /// What it is: `timeout`, `voice-session-start`.
        name: Box<str>,
        /// What it says.
        value: Value,
    },
    /// Words that this reader did not read in time, and that are not kept for it any longer.
    Lagged {
        /// How many bytes they were.
        bytes: u64,
    },
    /// It went wrong. The session goes on.
    Failed(Failure),
    /// The turn is over, or waits for a person.
    Finished {
        /// How it ended; `None` while it waits.
        ending: Option<Ending>,
        /// What it took.
        usage: Usage,
    },
}

/// What a person is told when the model fails.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Failure {
    /// The type that clients know.
    pub kind: ErrorType,
    /// One sentence for a person.
    pub message: String,
    /// Whether it may work later.
    pub retryable: bool,
}

/// The largest piece that words are told in.
const MAX_PIECE_BYTES: usize = 16 << 10;

impl StreamEvent {
    /// Roughly, beyond the event itself. What the turn holds as well is not counted.
    pub(super) fn size(&self) -> usize {
        match self {
            Self::Text(text) | Self::Thought(text) => text.len(),
            Self::Progress { text, .. } => text.len(),
            Self::Data { value, .. } => written_bytes(value),
            _ => 256,
        }
    }

    /// Whether the rest still makes sense without it.
    pub(super) fn is_droppable(&self) -> bool {
        matches!(self, Self::Text(_) | Self::Thought(_) | Self::Progress { .. } | Self::Data { .. })
    }

    /// The same in pieces that are not too large to wait for a reader.
    pub(super) fn pieces(self) -> Vec<Self> {
        match self {
            Self::Text(text) if text.len() > MAX_PIECE_BYTES => pieces(&text).map(Self::Text).collect(),
            Self::Thought(text) if text.len() > MAX_PIECE_BYTES => pieces(&text).map(Self::Thought).collect(),
            other => vec![other],
        }
    }
}

fn pieces(mut text: &str) -> impl Iterator<Item = Box<str>> {
    std::iter::from_fn(move || {
        let (piece, rest) = text.split_at(text.floor_char_boundary(MAX_PIECE_BYTES));
        text = rest;
        (!piece.is_empty()).then(|| piece.into())
    })
}

impl Failure {
    /// A word about a question that is not open, or was never asked.
    pub(super) fn invalid_confirmation() -> Self {
        let message = "This question has been answered already, or does not exist.".into();
        Self { kind: ErrorType::ConfirmationInvalid, message, retryable: false }
    }

    /// The words for a model's failure. What exactly went wrong is for the log.
    pub fn of(kind: ChatErrorKind) -> Self {
        let (kind, message, retryable) = match kind {
            ChatErrorKind::Unreachable => {
                (ErrorType::Transient, "The model cannot be reached. Please try again in a moment.", true)
            }
            ChatErrorKind::Unauthorised => (
                ErrorType::Auth,
                "The model refuses our key. Whoever runs this site has to set a valid one.",
                false,
            ),
            ChatErrorKind::RateLimited => (
                ErrorType::RateLimit,
                "The model is asked too often at the moment. Please try again later.",
                true,
            ),
            ChatErrorKind::Overloaded => {
                (ErrorType::Transient, "The model has trouble at the moment. Please try again.", true)
            }
            ChatErrorKind::Rejected => (
                ErrorType::Permanent,
                "The model does not accept our request. Whoever runs this site finds the reason in the log.",
                false,
            ),
            ChatErrorKind::TooLong => {
                (ErrorType::Permanent, "This is too long for the model. Please say it in fewer words.", false)
            }
            ChatErrorKind::Refused => (ErrorType::Permanent, "The model will not answer this.", false),
            ChatErrorKind::Cut => {
                (ErrorType::Transient, "The answer was cut off on its way. Please ask again.", true)
            }
            ChatErrorKind::Garbled => (
                ErrorType::Transient,
                "The model sent something that cannot be read. Please ask again.",
                true,
            ),
            ChatErrorKind::Silent => {
                (ErrorType::Transient, "The model did not answer in time. Please ask again.", true)
            }
        };
        Self { kind, message: message.into(), retryable }
    }
}
