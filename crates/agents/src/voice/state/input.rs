//! What the machine is told.

use std::sync::Arc;

use quarterdeck_contracts::{ConfirmationRequest, LiveError, LiveEvent, ToolResponse, Transcript};
use quarterdeck_runtime::{DeliveryReason, PendingEnd};
use serde_json::Value;
use tokio::time::Instant;

use super::pending::RequestedCall;
use crate::voice::answers::ReceivedAnswer;
use crate::voice::link::ClientMessage;

/// Something that has happened. Audio has a path of its own and is none.
#[derive(Debug)]
pub(in crate::voice) enum Input<'a> {
    Client(ClientMessage<'a>),
    /// A link of the client has taken over.
    ClientAttached,
    ClientLost,
    Provider(LiveEvent<'static>),
    /// A connection has been opened, which the machine accepts or rejects.
    ProviderOpened,
    /// What an accepted connection had sent by then has been handled.
    ProviderCaughtUp,
    ProviderLost(LiveError),
    /// A connection could not be opened.
    ProviderUnreachable(LiveError),
    /// A tool's message to the client.
    ToolMessage(Value),
    Progress {
        call_id: Arc<str>,
        text: String,
    },
    /// A partial result of a call that still runs.
    Partial {
        call_id: Arc<str>,
        response: Arc<ToolResponse>,
    },
    ConfirmationRequested {
        call_id: Arc<str>,
        request: ConfirmationRequest,
    },
    /// The answer of a call that could not be given to the connection that asked.
    LateAnswer {
        reason: DeliveryReason,
        answer: ReceivedAnswer,
    },
    /// The session is over.
    SessionEnded(PendingEnd),
    /// One of these calls of a message is expected to take long.
    LongWait {
        calls: Vec<Arc<RequestedCall>>,
    },
    CallCompleted {
        call: Arc<RequestedCall>,
        /// `None` for a call that waits for a confirmation, which no call of a voice session does.
        answer: Option<ReceivedAnswer>,
        /// The connection that asked.
        generation: u64,
        /// Whether every other call of the message has its answer.
        is_last: bool,
    },
    /// `None` when the task that resolved it was lost.
    ConfirmationResolved {
        token: String,
        answer: Option<ReceivedAnswer>,
    },
    /// A question has been spoken to its end, or could not be.
    QuestionSpoken {
        number: u64,
    },
    QuestionFailed {
        number: u64,
    },
    /// What our own speech to text has made of an answer; `None` when it has failed.
    AnswerTranscribed {
        number: u64,
        transcript: Option<Transcript>,
    },
    /// Another connection has taken the session over, which only a second call of it can do.
    SessionReplaced,
    /// Another node continues the call.
    HandedOver,
    ServerStopping {
        deadline: Instant,
    },
    /// Everything that had arrived has been handled.
    BatchDone,
    /// The time that [`CallState::next_tick`](super::CallState::next_tick) named has come.
    Tick,
}
