//! The client's end of a call, in whatever protocol the client speaks.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use quarterdeck_contracts::{Audio, ConfirmationRequest, Speaker, ToolError, ToolResponse};
use quarterdeck_runtime::gates::Trace;
use quarterdeck_runtime::{Block, Holder, PendingEnd};
use serde_json::Value;

/// A link to a client.
///
/// [`ClientLink::poll_fill`] waits for bytes and [`ClientLink::next`] returns the messages in them, without waiting, until
/// it returns `None`. [`ClientLink::send`] queues a message, without waiting, and [`ClientLink::poll_flush`] sends what is
/// queued. The link knows its protocol and its limits: it answers what it does not understand itself, and rejects a client
/// that floods it.
pub trait ClientLink: Send {
    /// Waits until more has arrived. An error is final.
    fn poll_fill(&mut self, context: &mut Context<'_>) -> Poll<Result<(), Disconnect>>;

    fn next(&mut self) -> Option<ClientMessage<'_>>;

    fn send(&mut self, message: ServerMessage<'_>);

    /// Sends what is queued, for as long as the client takes it.
    fn poll_flush(&mut self, context: &mut Context<'_>) -> Poll<Result<(), Disconnect>>;

    fn queued_bytes(&self) -> usize;

    /// Drops queued audio, the oldest first, until at most `keep` bytes of it are left. Returns how many went.
    fn drop_audio(&mut self, keep: usize) -> usize;

    /// Asks whether the client is still there. An answer counts as something that has arrived.
    fn ping(&mut self);

    /// Sends what is queued and closes the link, within a time limit of its own.
    fn close(self: Box<Self>, reason: CloseReason) -> Pin<Box<dyn Future<Output = ()> + Send>>;
}

/// Why a client is gone.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Disconnect {
    /// The connection was lost. The client may come back.
    Lost,
    /// The client has closed it.
    Closed,
    /// The client broke the protocol or a limit, and was told so.
    Rejected(&'static str),
}

/// Why a link is closed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CloseReason {
    Ended,
    /// The server is about to stop.
    Stopping,
    /// Another link of the client has taken over.
    TakenOver,
    /// The client may not call, or not like this.
    Refused,
    /// There are as many calls as there may be.
    AtCapacity,
    /// The client was away for too long.
    Idle,
    /// The provider cannot be reached.
    Failed,
}

/// What a client sends.
#[derive(Debug, Clone, PartialEq)]
pub enum ClientMessage<'a> {
    /// Audio of the user: 16 kHz.
    Audio(Audio<'a>),
    /// A message that the user writes.
    Text(&'a str),
    /// A reply to a confirmation request.
    Confirm {
        /// The token of the request.
        token: &'a str,
        is_approved: bool,
    },
    /// How much audio has been played since the last [`ServerMessage::Interrupted`], or since the link was attached.
    Played(Duration),
    /// All audio that was sent has been played.
    Drained,
    /// The user wants silence.
    Interrupt,
    /// The user hangs up.
    Stop,
    /// Nothing but a sign of life.
    KeepAlive,
}

/// What a client gets.
#[derive(Debug, Clone)]
pub enum ServerMessage<'a> {
    /// The call has been set up.
    Ready {
        /// The session, by which the call can be resumed.
        session_id: &'a str,
        /// Whether an earlier session is resumed.
        is_resumed: bool,
        /// The registry that the session is pinned to.
        tools_version: &'a str,
        provider: &'a str,
        /// Whether the model's audio is speech. Where it is not, the client has the transcript to speak.
        speaks: bool,
    },
    /// Audio of the model: 24 kHz.
    Audio(Audio<'a>),
    /// A piece of the transcript.
    Transcript {
        by: Speaker,
        text: &'a str,
        /// An interim piece is replaced by what follows.
        is_final: bool,
        /// Whether it belongs to a turn that is over.
        is_late: bool,
    },
    ToolCall {
        id: &'a str,
        name: &'a str,
        args: &'a Value,
    },
    /// A tool call has been answered.
    ToolResult {
        id: &'a str,
        /// The envelope.
        response: &'a ToolResponse,
        /// What the gates said, if they were asked.
        gates: Option<&'a Trace>,
    },
    /// A tool call needs the user's confirmation.
    ConfirmationRequest {
        id: &'a str,
        /// What is asked, with the token that answers it.
        request: &'a ConfirmationRequest,
    },
    /// A tool call is still running.
    Progress {
        id: &'a str,
        text: &'a str,
    },
    /// A partial result of a tool call that still runs, in place of the one before it.
    Partial {
        id: &'a str,
        /// An envelope with the partial result as its data.
        response: &'a ToolResponse,
    },
    /// The user may have begun to speak: playback stops where it is, until [`ServerMessage::Resume`] or
    /// [`ServerMessage::Interrupted`].
    Pause,
    /// It was not the user: playback goes on.
    Resume,
    /// The user has interrupted: audio that was not played yet is not to be played.
    Interrupted,
    TurnComplete,
    Blocked(&'a Block),
    End(&'a PendingEnd),
    /// Something went wrong.
    Error(&'a ToolError),
    /// The server is about to stop.
    GoingAway {
        in_ms: u64,
    },
    /// A tool's message to the client.
    Message(&'a Value),
}

/// What a client begins a call with, as far as the server has verified it.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct CallRequest {
    /// A session that was issued for the call, or one to resume.
    pub session_id: Option<Arc<str>>,
    /// Whether the client has proved that the session is its own to resume.
    pub may_resume: bool,
    /// What the user wants, for a session that the server does not know.
    pub pending_request: Option<String>,
    /// The node that has the session and does not answer, if the server has found that out: it is taken over at once.
    pub dead_holder: Option<Holder>,
}
