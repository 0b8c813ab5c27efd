//! The events that a turn streams to its readers.

use std::sync::Arc;
use std::time::Duration;

use quarterdeck_contracts::{ChatError, ChatErrorKind, ConfirmationRequest, ErrorType, ToolResponse, Usage};
use quarterdeck_runtime::gates::Trace;
use serde_json::Value;

use super::held::written_bytes;
use crate::turn::{Ending, TurnCall};

/// Something that happens in a turn, as it happens.
#[derive(Debug, Clone, PartialEq)]
pub enum StreamEvent {
    /// The turn has started, or is resumed after a confirmation.
    Started {
        message_id: Arc<str>,
        session_id: Arc<str>,
    },
    /// The model is asked.
    RoundStarted,
    Text(Box<str>),
    /// More of what the model thinks.
    Thought(Box<str>),
    ToolCall(Arc<TurnCall>),
    /// A call needs confirmation.
    ConfirmationRequest {
        id: Arc<str>,
        /// What is asked, with the token that answers it.
        request: Arc<ConfirmationRequest>,
    },
    ToolResult {
        id: Arc<str>,
        response: Arc<ToolResponse>,
        /// What the gates said, if they were asked just now.
        gates: Option<Arc<Trace>>,
    },
    /// A note while a slow tool runs.
    Progress {
        id: Arc<str>,
        text: Box<str>,
    },
    /// A partial result of a call that still runs, in place of the one before it.
    PartialResult {
        id: Arc<str>,
        response: Arc<ToolResponse>,
    },
    /// The outcome of a call of an earlier turn.
    LateToolResult {
        id: Arc<str>,
        name: Arc<str>,
        response: Arc<ToolResponse>,
        /// What the gates said, if it is still known.
        gates: Option<Arc<Trace>>,
    },
    /// Data for the client: a tool's message, or a notice of ours.
    Data {
        /// What it is: `timeout`, `voice-session-start`.
        name: Box<str>,
        value: Value,
    },
    /// The reader was too slow, and has lost this much text.
    Lagged {
        bytes: u64,
    },
    /// The turn failed. The session continues.
    Failed(Failure),
    /// The turn is over, or waits for a confirmation.
    Finished {
        /// How it ended; `None` while it waits.
        ending: Option<Ending>,
        usage: Usage,
    },
}

/// What the user is told when a turn fails.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Failure {
    /// The type that clients know.
    pub kind: ErrorType,
    /// One sentence for the user.
    pub message: String,
    pub retryable: bool,
    /// How the model failed, if that is the reason.
    pub cause: Option<ChatErrorKind>,
    /// When the model's provider wants to be asked again, as far as it said.
    pub retry_after: Option<Duration>,
}

/// Longer text is split into events of this size.
const MAX_PIECE_BYTES: usize = 16 << 10;

impl StreamEvent {
    /// Roughly, beyond the event itself. What the turn holds as well is not counted.
    pub(super) fn size(&self) -> usize {
        match self {
            Self::Text(text) | Self::Thought(text) => text.len(),
            Self::Progress { text, .. } => text.len(),
            Self::Data { value, .. } => written_bytes(value),
            Self::PartialResult { response, .. } => written_bytes(&**response),
            _ => 256,
        }
    }

    /// Whether the rest still makes sense without it.
    pub(super) fn is_droppable(&self) -> bool {
        matches!(
            self,
            Self::Text(_)
                | Self::Thought(_)
                | Self::Progress { .. }
                | Self::PartialResult { .. }
                | Self::Data { .. }
        )
    }

    /// The same in pieces that are not too large to wait for a reader.
    pub(super) fn pieces(self) -> impl Iterator<Item = Self> {
        // A token is one piece; no list is made for it.
        let (whole, pieces) = match self {
            Self::Text(text) if text.len() > MAX_PIECE_BYTES => {
                (None, pieces(&text).map(Self::Text).collect())
            }
            Self::Thought(text) if text.len() > MAX_PIECE_BYTES => {
                (None, pieces(&text).map(Self::Thought).collect())
            }
            other => (Some(other), Vec::new()),
        };
        whole.into_iter().chain(pieces)
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
    /// A reply to a confirmation that is not open.
    pub(super) fn invalid_confirmation() -> Self {
        let message = "This question has been answered already, or does not exist.".into();
        Self {
            kind: ErrorType::ConfirmationInvalid,
            message,
            retryable: false,
            cause: None,
            retry_after: None,
        }
    }

    /// An answer that the end of the server has cut.
    pub(super) fn of_stopped_server() -> Self {
        let message =
            "The server is restarting, so this answer was cut short. Please ask again in a moment.".into();
        Self { kind: ErrorType::Transient, message, retryable: true, cause: None, retry_after: None }
    }

    /// The message for a model's failure. Details are for the log.
    pub fn of(error: &ChatError) -> Self {
        let (kind, message, retryable) = match error.kind {
            ChatErrorKind::Unreachable => {
                (ErrorType::Transient, "The model cannot be reached. Please try again in a moment.", true)
            }
            ChatErrorKind::Unauthorised => {
                (ErrorType::Auth, "The model refuses our key. The operator has to set a valid one.", false)
            }
            ChatErrorKind::RateLimited => (
                ErrorType::RateLimit,
                "The model is rate-limited at the moment. Please try again later.",
                true,
            ),
            ChatErrorKind::Overloaded => {
                (ErrorType::Transient, "The model has trouble at the moment. Please try again.", true)
            }
            ChatErrorKind::Rejected => (
                ErrorType::Permanent,
                "The model does not accept our request. The operator finds the reason in the log.",
                false,
            ),
            ChatErrorKind::TooLong => {
                (ErrorType::Permanent, "This is too long for the model. Please shorten it.", false)
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
        let message = too_long_message(error).unwrap_or_else(|| message.into());
        let (cause, retry_after) = (Some(error.kind), error.retry_after);
        Self { kind, message, retryable, cause, retry_after }
    }
}

/// The numbers of what was too long, where the model has told them.
fn too_long_message(error: &ChatError) -> Option<String> {
    let context = error.context.filter(|_| error.kind == ChatErrorKind::TooLong)?;
    let sent = context.sent.map(|sent| format!(" and was sent {sent}")).unwrap_or_default();
    Some(format!(
        "This is too long for the model, which takes {} tokens{sent}. Please begin a new conversation; if that does not \
         help, the operator has to give the model a larger context.",
        context.limit
    ))
}
