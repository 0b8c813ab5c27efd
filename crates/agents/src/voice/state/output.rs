//! What the machine wants done.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use quarterdeck_contracts::{
    ConfirmationAnswer, ConfirmationRequest, LiveInput, LiveResult, Speaker, ToolError, ToolResponse,
};
use quarterdeck_runtime::gates::Trace;
use quarterdeck_runtime::{Call as ToolCall, HeardReceipt};
use serde_json::Value;
use tokio::time::Instant;

use super::pending::RequestedCall;
use crate::voice::answers::AnswerId;
use crate::voice::journal::ContextReplay;
use crate::voice::link::ServerMessage;

/// Something that the driver does. Outputs are carried out in order, before the next input.
#[derive(Debug)]
pub(in crate::voice) enum Output {
    Client(ClientOutput),
    /// Audio that is queued for the client is not to be heard.
    DropClientAudio,
    PingClient,
    /// The client has been silent for too long and counts as lost.
    DetachClient,
    Provider(ProviderOutput),
    /// Sends the audio of [`CallState::drain_input_audio`](super::CallState::drain_input_audio) to the provider.
    ReplayInputAudio,
    /// Opens a connection with this context, in place of any that is being opened.
    Connect(ContextReplay),
    /// Takes the connection that was opened in place of the older one.
    AcceptConnection,
    RejectConnection,
    /// Runs the tool calls of one message; `requested` are the same calls in the same order.
    Submit {
        calls: Vec<ToolCall>,
        requested: Vec<Arc<RequestedCall>>,
        generation: u64,
    },
    ResolveConfirmation {
        token: String,
        answer: ConfirmationAnswer,
        /// What was said, for a decision that was.
        spoken: Option<SpokenReply>,
    },
    /// Speaks a question, in place of any other.
    SpeakQuestion {
        number: u64,
        text: String,
        language: String,
    },
    /// Has our own speech to text understand an answer, in place of any other.
    TranscribeAnswer {
        number: u64,
        samples: Arc<[i16]>,
        language: String,
    },
    /// Gives up what is being spoken or transcribed.
    StopQuestion,
    /// Audio of the user that the provider did not get, because it could have been an answer.
    SendHeldAudio(Vec<i16>),
    /// The answer has reached the model or the client.
    DeliverAnswer(AnswerId),
    /// The answer goes back to the session, which offers it again.
    ReturnAnswer(AnswerId),
    /// The model will not forget the answers it was given so far.
    SettleReceipts,
    /// The model goes on from before the answers it was given last, and may ask for them again.
    ForgetReceipts,
    StoreJournal,
    /// A turn is over, or was interrupted, with everything that was said in it.
    RecordTurn(SpokenTurn),
    /// Words of a turn that is over were transcribed only now.
    AmendTurn(String),
    /// The first audio of an answer has come so long after the end of the user's speech.
    ReportLatency(Duration),
    /// How much the user has heard of an answer is known.
    ReportHeard(HeardReceipt),
}

/// What was said in a turn, whether or not it was heard. The words do not print themselves.
#[derive(Clone, PartialEq)]
pub(in crate::voice) struct SpokenTurn {
    pub(in crate::voice) turn: u64,
    pub(in crate::voice) user: String,
    pub(in crate::voice) answer: String,
}

impl fmt::Debug for SpokenTurn {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SpokenTurn").field("turn", &self.turn).finish_non_exhaustive()
    }
}

/// The words of a spoken decision. They do not print themselves.
#[derive(Clone, PartialEq)]
pub(in crate::voice) struct SpokenReply {
    pub(in crate::voice) transcript: String,
    pub(in crate::voice) confidence: Option<f32>,
    /// The digits that were said, if any.
    pub(in crate::voice) code: Option<String>,
    pub(in crate::voice) began_at: Instant,
}

impl fmt::Debug for SpokenReply {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SpokenReply").field("confidence", &self.confidence).finish_non_exhaustive()
    }
}

/// A [`ServerMessage`] that owns what it says.
#[derive(Debug, Clone, PartialEq)]
pub(in crate::voice) enum ClientOutput {
    Ready { is_resumed: bool },
    Transcript { by: Speaker, text: String, is_final: bool, is_late: bool },
    ToolCall { call: Arc<RequestedCall>, args: Value },
    ToolResult { id: Arc<str>, response: Arc<ToolResponse>, gates: Option<Trace> },
    ConfirmationRequest { id: Arc<str>, request: Arc<ConfirmationRequest> },
    Progress { id: Arc<str>, text: String },
    Partial { id: Arc<str>, response: Arc<ToolResponse> },
    Pause,
    Resume,
    Interrupted,
    TurnComplete,
    Error(Box<ToolError>),
    GoingAway { in_ms: u64 },
    Message(Value),
}

/// What a [`ServerMessage::Ready`] says of the call.
#[derive(Debug, Clone, Copy)]
pub(in crate::voice) struct CallIdentity<'a> {
    pub(in crate::voice) session_id: &'a str,
    pub(in crate::voice) tools_version: &'a str,
    pub(in crate::voice) provider: &'a str,
    pub(in crate::voice) speaks: bool,
}

impl ClientOutput {
    pub(in crate::voice) fn as_message<'a>(&'a self, of: CallIdentity<'a>) -> ServerMessage<'a> {
        match self {
            Self::Ready { is_resumed } => ServerMessage::Ready {
                session_id: of.session_id,
                is_resumed: *is_resumed,
                tools_version: of.tools_version,
                provider: of.provider,
                speaks: of.speaks,
            },
            Self::Transcript { by, text, is_final, is_late } => {
                ServerMessage::Transcript { by: *by, text, is_final: *is_final, is_late: *is_late }
            }
            Self::ToolCall { call, args } => {
                ServerMessage::ToolCall { id: &call.shown_id, name: &call.name, args }
            }
            Self::ToolResult { id, response, gates } => {
                ServerMessage::ToolResult { id, response, gates: gates.as_ref() }
            }
            Self::ConfirmationRequest { id, request } => ServerMessage::ConfirmationRequest { id, request },
            Self::Progress { id, text } => ServerMessage::Progress { id, text },
            Self::Partial { id, response } => ServerMessage::Partial { id, response },
            Self::Pause => ServerMessage::Pause,
            Self::Resume => ServerMessage::Resume,
            Self::Interrupted => ServerMessage::Interrupted,
            Self::TurnComplete => ServerMessage::TurnComplete,
            Self::Error(error) => ServerMessage::Error(error),
            Self::GoingAway { in_ms } => ServerMessage::GoingAway { in_ms: *in_ms },
            Self::Message(value) => ServerMessage::Message(value),
        }
    }
}

/// A [`LiveInput`] that owns what it says.
#[derive(Debug, Clone, PartialEq)]
pub(in crate::voice) enum ProviderOutput {
    AudioEnded,
    SpeechStarted,
    SpeechEnded,
    Text(String),
    Note { text: String, asks: bool },
    Filler { words: String, request: String },
    Result { id: Option<String>, name: String, response: Arc<ToolResponse>, is_silent: bool, is_last: bool },
    Interrupt { heard: Option<Duration> },
}

impl ProviderOutput {
    pub(in crate::voice) fn as_input(&self) -> LiveInput<'_> {
        match self {
            Self::AudioEnded => LiveInput::AudioEnded,
            Self::SpeechStarted => LiveInput::SpeechStarted,
            Self::SpeechEnded => LiveInput::SpeechEnded,
            Self::Text(text) => LiveInput::Text(text),
            Self::Note { text, asks } => LiveInput::Note { text, asks: *asks },
            Self::Filler { words, request } => LiveInput::Filler { words, request },
            Self::Result { id, name, response, is_silent, is_last } => LiveInput::Result(LiveResult {
                id: id.as_deref(),
                name,
                response,
                is_silent: *is_silent,
                is_last: *is_last,
            }),
            Self::Interrupt { heard } => LiveInput::Interrupt { heard: *heard },
        }
    }
}
