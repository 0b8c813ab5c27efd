//! A model that is spoken with, as the voice agent sees every provider.
//!
//! In writing we drive the model; in a live session the provider drives us. So a connection is a pair of queues that are
//! filled and emptied by polling, and everything between is done at once: audio is the hot path, it is handed on where
//! it lies, in the encoding in which it came.

use std::borrow::Cow;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::telemetry::ConversationTracer;
use crate::{ModelCall, Provider, ToolResponse, Usage};

/// A model that is spoken with.
///
/// What differs between models of one provider is the implementation's business, and data there: the agent never asks
/// for a model's name to decide something.
pub trait LiveModel: Send + Sync {
    /// In which form it wants tools to be declared.
    fn declarations(&self) -> Provider;

    /// A form that says more, for tools of which the first would lose something, if the model takes one.
    fn fuller_declarations(&self) -> Option<Provider> {
        None
    }

    /// Declares a function that is not in the artifact, in such a form.
    fn declare(&self, name: &str, description: &str, parameters: &Value) -> Value {
        json!({ "name": name, "description": description, "parameters": parameters })
    }

    /// Provider and model, `gemini/gemini-3.8-live`: for display and logs.
    fn name(&self) -> &str;

    /// How many tokens a conversation may have.
    fn window(&self) -> u64 {
        131_072
    }

    /// Whether it is built in and no language model, which users are told.
    fn is_rehearsal(&self) -> bool {
        false
    }

    /// Whether its audio is speech. Where it is not, clients have the transcript to speak.
    fn speaks(&self) -> bool {
        true
    }

    /// Whether it understands speech. Where it does not, users are told to type.
    fn hears(&self) -> bool {
        true
    }

    /// Whether it takes from us when the user begins and stops to speak ([`LiveInput::SpeechStarted`]).
    fn relies_on_ear(&self) -> bool {
        false
    }

    /// Opens a conversation, or goes on with one. Ready once the provider is: it has a time limit of its own.
    fn connect(&self, opening: LiveSetup) -> LiveConnecting;
}

/// A connection that is being opened.
pub type LiveConnecting =
    Pin<Box<dyn Future<Output = Result<Box<dyn LiveConnection>, LiveError>> + Send + 'static>>;

/// What a conversation begins with.
#[derive(Debug, Clone, Default)]
pub struct LiveSetup {
    /// Who the model is and what it should do.
    pub system: Arc<str>,
    /// The tools, each in a form that [`LiveModel::declarations`] or [`LiveModel::fuller_declarations`] asks for.
    pub tools: Arc<[Value]>,
    /// The provider's handle of an earlier connection whose conversation goes on.
    pub resume: Option<String>,
    /// What was said that the provider does not know, the oldest first: everything, or what came after the handle.
    pub history: Vec<LiveTurn>,
    /// Whether the last of it waits for an answer.
    pub asks: bool,
    /// The user's language, `en` or `de-AT`, if it is known. A model that hears by itself finds out alone.
    pub language: Option<String>,
    /// For a model that asks others. What a provider does behind its own connection has no spans here.
    pub tracer: ConversationTracer,
}

/// Something that was said.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct LiveTurn {
    /// By whom.
    pub by: Speaker,
    /// The words.
    pub text: String,
}

/// Who said something.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Speaker {
    /// The user, `person` in stored records.
    #[serde(rename = "person")]
    User,
    /// The model.
    Model,
}

/// An open conversation.
///
/// [`LiveConnection::poll_fill`] waits for bytes; [`LiveConnection::next`] gives what is in them, without waiting, until
/// it gives `None`. [`LiveConnection::send`] puts something in line, without waiting; [`LiveConnection::poll_flush`] sends
/// what is in line. Both kinds of waiting can be given up at any moment without losing anything.
pub trait LiveConnection: Send {
    /// Waits until more has arrived. An error is final.
    fn poll_fill(&mut self, context: &mut Context<'_>) -> Poll<Result<(), LiveError>>;

    /// The next event of what has arrived. Of one message, calls come before everything else.
    fn next(&mut self) -> Option<LiveEvent<'_>>;

    /// Puts something in line. When the provider does not read, old audio goes and everything else stays.
    fn send(&mut self, input: LiveInput<'_>);

    /// Sends what is in line.
    fn poll_flush(&mut self, context: &mut Context<'_>) -> Poll<Result<(), LiveError>>;

    /// Says goodbye, within a time limit of its own.
    fn close(self: Box<Self>) -> Pin<Box<dyn Future<Output = ()> + Send>>;
}

/// A piece of audio: 16-bit little-endian mono samples, 16 kHz from the user and 24 kHz from the model.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Audio<'a> {
    /// The samples.
    Pcm(Cow<'a, [u8]>),
    /// The samples in base64, as JSON carries them. It has been checked to be valid base64.
    Base64(Cow<'a, str>),
}

impl Audio<'_> {
    /// How many bytes of samples it is.
    pub fn samples_len(&self) -> usize {
        match self {
            Self::Pcm(bytes) => bytes.len(),
            Self::Base64(text) => text.len() / 4 * 3,
        }
    }
}

/// What the provider sends.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub enum LiveEvent<'a> {
    /// The model is heard.
    Audio(Audio<'a>),
    /// The model calls tools. These belong to one message.
    Calls(Vec<ModelCall>),
    /// It takes back calls, by their ids. It wants no answer to them.
    CallsCancelled(Vec<String>),
    /// What the user said, as far as it was understood. Pieces follow each other.
    InputTranscript(TranscriptPiece<'a>),
    /// What the model says, in words. Pieces follow each other.
    OutputTranscript(TranscriptPiece<'a>),
    /// The user has begun to speak.
    SpeechStarted,
    /// The user has barged in: what was not heard yet is not to be.
    Interrupted {
        /// Whether what was cut off will still be said to be over, by a [`LiveEvent::TurnComplete`].
        end_follows: bool,
    },
    /// What the user has heard of the answer that was cut off last, where the provider knows it to the word. It stands in the
    /// place of any estimate, and comes before the answer to what interrupted it.
    HeardAnswer(String),
    /// What was asked will not be answered. The end of the turn follows.
    ResponseFailed,
    /// The model has said what it had to say.
    GenerationComplete,
    /// The turn is over.
    TurnComplete {
        /// Whether the model goes on by itself, so that the user need not speak first.
        more_follows: bool,
    },
    /// The provider is about to close the connection.
    GoingAway {
        /// When, if it said.
        left: Option<Duration>,
    },
    /// From here on the conversation can be gone on with by this handle; without one it can not, for now.
    ResumptionHandle(Option<String>),
    /// What it has taken.
    Usage(Usage),
    /// Something went wrong that does not end the conversation. For the operator.
    Warning(String),
}

impl LiveEvent<'_> {
    /// The same, for keeps.
    pub fn into_owned(self) -> LiveEvent<'static> {
        match self {
            Self::Audio(Audio::Pcm(bytes)) => LiveEvent::Audio(Audio::Pcm(bytes.into_owned().into())),
            Self::Audio(Audio::Base64(text)) => LiveEvent::Audio(Audio::Base64(text.into_owned().into())),
            Self::InputTranscript(words) => LiveEvent::InputTranscript(words.into_owned()),
            Self::OutputTranscript(words) => LiveEvent::OutputTranscript(words.into_owned()),
            Self::Calls(calls) => LiveEvent::Calls(calls),
            Self::CallsCancelled(ids) => LiveEvent::CallsCancelled(ids),
            Self::SpeechStarted => LiveEvent::SpeechStarted,
            Self::Interrupted { end_follows } => LiveEvent::Interrupted { end_follows },
            Self::HeardAnswer(text) => LiveEvent::HeardAnswer(text),
            Self::ResponseFailed => LiveEvent::ResponseFailed,
            Self::GenerationComplete => LiveEvent::GenerationComplete,
            Self::TurnComplete { more_follows } => LiveEvent::TurnComplete { more_follows },
            Self::GoingAway { left } => LiveEvent::GoingAway { left },
            Self::ResumptionHandle(handle) => LiveEvent::ResumptionHandle(handle),
            Self::Usage(usage) => LiveEvent::Usage(usage),
            Self::Warning(what) => LiveEvent::Warning(what),
        }
    }
}

/// A piece of a transcript.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TranscriptPiece<'a> {
    /// The words.
    pub text: Cow<'a, str>,
    /// How sure they are.
    pub stage: TranscriptStage,
}

impl TranscriptPiece<'_> {
    /// The same, for keeps.
    pub fn into_owned(self) -> TranscriptPiece<'static> {
        TranscriptPiece { text: self.text.into_owned().into(), stage: self.stage }
    }
}

/// How sure a piece of a transcript is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TranscriptStage {
    /// A guess at everything since the last piece, replaced by what follows.
    Interim,
    /// It stands, and more may follow.
    Segment,
    /// It stands, and completes what was said. It may be empty.
    Final,
}

/// What goes to the provider.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub enum LiveInput<'a> {
    /// The user is heard.
    Audio(Audio<'a>),
    /// The microphone is off for now.
    AudioEnded,
    /// Our own ear has heard the user begin to speak: a turn, not a cough. The audio of its beginning was sent before.
    SpeechStarted,
    /// Our own ear has heard the user stop. The audio of it was sent before.
    SpeechEnded,
    /// The user writes something, which asks for an answer.
    Text(&'a str),
    /// The model should know something. Sent while it speaks, it may cut it off, so the sender waits for a pause.
    Note {
        /// What.
        text: &'a str,
        /// Whether it should say something about it.
        asks: bool,
    },
    /// A call takes long, and there is silence. Where code speaks, it says the words; a model is asked for them.
    Filler {
        /// What to say.
        words: &'a str,
        /// A note that asks a model to say it.
        request: &'a str,
    },
    /// What a call came to.
    Result(LiveResult<'a>),
    /// The user wants silence. `heard` is how much of the answer's audio they have heard, if that is known.
    Interrupt {
        /// How much was heard.
        heard: Option<Duration>,
    },
}

/// What a call came to, on its way to the model.
#[derive(Debug, Clone, PartialEq)]
pub struct LiveResult<'a> {
    /// The call's id, as the provider gave it.
    pub id: Option<&'a str>,
    /// The tool.
    pub name: &'a str,
    /// The envelope. The model gets its data or its error.
    pub response: &'a ToolResponse,
    /// Whether it should say nothing about it.
    pub is_silent: bool,
    /// Whether every other call of the message has its result.
    pub is_last: bool,
}

/// Why there is no connection, or no longer one.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{model}: {detail}")]
pub struct LiveError {
    /// What kind of trouble.
    pub kind: LiveErrorKind,
    /// Which model ([`LiveModel::name`]).
    pub model: String,
    /// The WebSocket's close code, if there was one.
    pub code: Option<u16>,
    /// What happened, for the operator. It holds no secret.
    pub detail: String,
}

/// What kind of trouble.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum LiveErrorKind {
    /// The provider does not answer, or the connection was lost. Trying again may help.
    Lost,
    /// Nothing came in time. Trying again may help.
    TimedOut,
    /// The provider has no room for us now. Trying again later may help.
    Busy,
    /// The key is missing or wrong.
    Auth,
    /// The provider does not take what it was sent: a model, an option, or a handle that has expired.
    Refused,
    /// What came cannot be understood.
    Malformed,
}

impl LiveErrorKind {
    /// Whether another attempt may go better.
    pub fn is_retryable(self) -> bool {
        matches!(self, Self::Lost | Self::TimedOut | Self::Busy | Self::Malformed)
    }
}
