//! The person's end of a call, in whatever protocol their page speaks.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use quarterdeck_contracts::{Audio, ConfirmationRequest, Speaker, ToolError, ToolResponse};
use quarterdeck_runtime::gates::Trace;
use quarterdeck_runtime::{Block, PendingEnd};
use serde_json::Value;

/// A line to a person.
///
/// [`ClientLink::poll_fill`] waits for bytes and [`ClientLink::next`] gives what is in them, without waiting, until it gives `None`.
/// [`ClientLink::send`] puts something in line, without waiting, and [`ClientLink::poll_flush`] sends it. The line knows its
/// protocol and its limits: what it does not understand it answers itself, and who floods it is gone.
pub trait ClientLink: Send {
    /// Waits until more has arrived. An error is final.
    fn poll_fill(&mut self, context: &mut Context<'_>) -> Poll<Result<(), Disconnect>>;

    /// The next thing that has arrived.
    fn next(&mut self) -> Option<ClientMessage<'_>>;

    /// Puts something in line.
    fn send(&mut self, told: ServerMessage<'_>);

    /// Sends what is in line, for as long as the person's end takes it.
    fn poll_flush(&mut self, context: &mut Context<'_>) -> Poll<Result<(), Disconnect>>;

    /// How many bytes wait to be sent.
    fn queued_bytes(&self) -> usize;

    /// Throws away audio that waits, the oldest first, until at most `keep` bytes of it are left. How many went.
    fn drop_audio(&mut self, keep: usize) -> usize;

    /// Asks whether the other end is still there. An answer counts as something that has arrived.
    fn ping(&mut self);

    /// Sends what waits and hangs up, within a time limit of its own.
    fn close(self: Box<Self>, why: CloseReason) -> Pin<Box<dyn Future<Output = ()> + Send>>;
}

/// Nobody is there any more.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Disconnect {
    /// The connection was lost. The person may come back.
    Lost,
    /// The page has closed it.
    Closed,
    /// It sent what it must not, and was told so.
    Rejected(&'static str),
}

/// Why a line is hung up.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CloseReason {
    /// The call is over.
    Ended,
    /// The server is about to stop.
    Stopping,
    /// The person goes on elsewhere.
    TakenOver,
    /// The person may not call, or not like this.
    Refused,
    /// There is no room for another call.
    AtCapacity,
    /// Nobody has said anything for too long.
    Idle,
    /// The model cannot be reached.
    Failed,
}

/// What comes from the person's page.
#[derive(Debug, Clone, PartialEq)]
pub enum ClientMessage<'a> {
    /// The person is heard: 16 kHz.
    Audio(Audio<'a>),
    /// They write something.
    Text(&'a str),
    /// They approve a call, or not.
    Confirm {
        /// The token that they were shown.
        token: &'a str,
        /// Whether it may run.
        is_approved: bool,
    },
    /// Everything that was sent has been heard.
    Drained,
    /// They want silence.
    Interrupt,
    /// They hang up.
    Stop,
    /// Nothing, but somebody is there.
    KeepAlive,
}

/// What goes to the person's page.
#[derive(Debug, Clone)]
pub enum ServerMessage<'a> {
    /// The call stands.
    Ready {
        /// Its session.
        session_id: &'a str,
        /// Whether an earlier session goes on.
        is_resumed: bool,
        /// The registry that it is pinned to.
        tools_version: &'a str,
        /// Who speaks.
        provider: &'a str,
    },
    /// The model is heard: 24 kHz.
    Audio(Audio<'a>),
    /// Something was said.
    Transcript {
        /// By whom.
        by: Speaker,
        /// The words.
        text: &'a str,
        /// Whether it stands; a guess is replaced by what follows.
        is_final: bool,
        /// Whether it belongs to a turn that is over: it asks for nothing any more.
        is_late: bool,
    },
    /// The model calls a tool.
    ToolCall {
        /// The call.
        id: &'a str,
        /// The tool.
        name: &'a str,
        /// The arguments.
        args: &'a Value,
    },
    /// A call has come to something.
    ToolResult {
        /// The call.
        id: &'a str,
        /// To what.
        response: &'a ToolResponse,
        /// What the gates said, if they were asked.
        gates: Option<&'a Trace>,
    },
    /// The person is asked.
    ConfirmationRequest {
        /// The call.
        id: &'a str,
        /// What they are asked, with the token that answers it.
        request: &'a ConfirmationRequest,
    },
    /// A call takes its time.
    Progress {
        /// The call.
        id: &'a str,
        /// What is said about it.
        text: &'a str,
    },
    /// What was sent and not heard yet is not to be heard.
    Interrupted,
    /// The model's turn is over.
    TurnComplete,
    /// The person is blocked.
    Blocked(&'a Block),
    /// The call is over.
    End(&'a PendingEnd),
    /// Something is wrong.
    Error(&'a ToolError),
    /// The server is about to stop.
    GoingAway {
        /// In how many milliseconds.
        in_ms: u64,
    },
    /// What a tool says to the page.
    Message(&'a Value),
}

/// What a person's page begins a call with, as far as the server believes it.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct CallRequest {
    /// A session that was issued for the call, or that goes on.
    pub session_id: Option<Arc<str>>,
    /// Whether the page has proved that the session is its own to resume.
    pub may_resume: bool,
    /// What the person wants, for a session that the server does not know.
    pub pending_request: Option<String>,
}
