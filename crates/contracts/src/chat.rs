//! A streaming chat model with tools, as the agents see every provider.
//!
//! Messages are neutral: what the user said, what the model answered, what its calls came to. What a provider wants
//! back byte for byte (thought signatures, thinking blocks, unknown members of a call) travels beside the part that it
//! came with, and only ever to the model that made it.

use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use futures_core::Stream;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::telemetry::TraceContext;
use crate::{Provider, ToolResponse};

/// Calls that one message of a model may carry at the most, whatever is configured: what a transport reads.
pub const MAX_CALLS_PER_MESSAGE: usize = 1_024;

/// A chat model.
///
/// An implementation asks its provider once per [`ChatModel::ask`] and streams what comes. It may try again as long as
/// nothing has been handed on, never afterwards: text that was sent is not sent twice. Dropping the stream aborts the
/// request. It runs no tool, and keeps nothing between two requests but what it has found its server to refuse.
pub trait ChatModel: Send + Sync {
    /// In which form it wants tools to be declared.
    fn declarations(&self) -> Provider;

    /// Declares a function that is not in the artifact, in the same form.
    fn declare(&self, name: &str, description: &str, parameters: &Value) -> Value {
        json!({ "name": name, "description": description, "parameters": parameters })
    }

    /// Provider and model, `gemini/gemini-3.8-flash`: for display and logs, and to match opaque state to its model.
    fn name(&self) -> &str;

    /// How many tokens a request and its answer may have together.
    fn window(&self) -> usize;

    /// Whether it is built in and no language model, which users are told.
    fn is_rehearsal(&self) -> bool {
        false
    }

    /// Whether it runs on this machine and may have to be loaded first, which takes minutes. Users are told when it does.
    fn may_be_loading(&self) -> bool {
        false
    }

    /// Asks for one reply. The stream ends after [`ChatEvent::Done`] or an error.
    fn ask(&self, request: ChatRequest) -> ChatStream;
}

/// A reply as it comes.
pub type ChatStream = Pin<Box<dyn Stream<Item = Result<ChatEvent, ChatError>> + Send>>;

/// What a model is asked.
#[derive(Debug, Clone, PartialEq)]
pub struct ChatRequest {
    /// Who it is and what it should do.
    pub system: Arc<str>,
    /// The conversation, the oldest first. It begins with a user's message and ends with one or with results.
    pub messages: Vec<ChatMessage>,
    /// The tools, in the form that [`ChatModel::declarations`] asks for.
    pub tools: Arc<[Value]>,
    /// Whether it may call them.
    pub tool_use: ToolUse,
    /// The span of the request, for providers that take it.
    pub span: Option<TraceContext>,
}

/// How the end of an instruction begins that differs between conversations: the date, the user's time zone and
/// language. All that stands before it is the same in every conversation with the same tools, byte for byte, so that a
/// provider reads it once.
pub const SITUATION_HEADING: &str = "\n\n## Now\n\n";

impl ChatRequest {
    /// The instruction as the part that conversations share, and the part of this one.
    pub fn split_system(&self) -> (&str, &str) {
        // The last one: the operator's own text may have such a heading too.
        self.system.split_at(self.system.rfind(SITUATION_HEADING).unwrap_or(self.system.len()))
    }
}

/// Whether a model may call tools in this reply.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ToolUse {
    /// As it sees fit.
    Allowed,
    /// They stay declared, since the conversation mentions them, but it must answer in words.
    Off,
}

/// One message of a conversation.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "from", rename_all = "snake_case")]
pub enum ChatMessage {
    /// What the user said, or what they should be taken to know. It is stored as `person`.
    #[serde(rename = "person")]
    User {
        /// The words.
        text: String,
    },
    /// What the model answered.
    Model(ModelMessage),
    /// What the calls of the message before came to: every one of them, in their order.
    Tools {
        /// The results.
        results: Vec<CallResult>,
    },
}

/// A model's message.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct ModelMessage {
    /// Which model made it ([`ChatModel::name`]). Another one gets the words and the calls, but not the state.
    pub by: String,
    /// What it is made of, in the order in which it came.
    pub parts: Vec<ModelPart>,
}

impl ModelMessage {
    /// The calls that it makes.
    pub fn calls(&self) -> impl Iterator<Item = &ModelCall> {
        self.parts.iter().filter_map(|part| match &part.content {
            PartContent::Call(call) => Some(call),
            _ => None,
        })
    }

    /// What it says to the user.
    pub fn text(&self) -> String {
        let texts = self.parts.iter().filter_map(|part| match &part.content {
            PartContent::Text(text) => Some(text.as_str()),
            _ => None,
        });
        texts.collect()
    }
}

/// One part of a model's message.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ModelPart {
    /// The provider-neutral content.
    pub content: PartContent,
    /// What only the model that made it understands, to be sent back as it came.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub state: Option<Value>,
}

impl ModelPart {
    /// A part without state.
    pub fn new(content: PartContent) -> Self {
        Self { content, state: None }
    }
}

/// What a part of a model's message is.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "type", content = "value", rename_all = "snake_case")]
pub enum PartContent {
    /// Text for the user. May be empty when it carries state.
    Text(String),
    /// A summary of what it thought, not meant for the user.
    Thought(String),
    /// A call.
    Call(ModelCall),
    /// Nothing but state.
    Opaque,
}

/// A call that a model makes.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ModelCall {
    /// The provider's id. The agent gives one to a call that came without.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub id: Option<String>,
    /// The tool's name, as the model wrote it.
    pub name: String,
    /// The arguments.
    pub arguments: CallArguments,
}

/// The arguments of a call.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "are", content = "value", rename_all = "snake_case")]
pub enum CallArguments {
    /// JSON, as it was parsed. Absent ones are `{}`.
    Json(Value),
    /// A text that is no JSON, or was cut. The call must not run.
    Broken(String),
}

/// What one call came to.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct CallResult {
    /// The id of the call, if it had one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub id: Option<String>,
    /// The tool's name, as the model wrote it.
    pub name: String,
    /// The envelope.
    pub response: Arc<ToolResponse>,
}

/// A piece of a reply.
#[derive(Debug, Clone, PartialEq)]
pub enum ChatEvent {
    /// More text for the user. Never empty.
    Text(String),
    /// More of what it thinks.
    Thought(String),
    /// The reply is complete.
    Done(ModelReply),
}

/// A complete reply.
#[derive(Debug, Clone, PartialEq)]
pub struct ModelReply {
    /// The message, for the history.
    pub message: ModelMessage,
    /// Why it ends here.
    pub finish: Finish,
    /// What it took.
    pub usage: Usage,
}

/// Why a reply ends.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Finish {
    /// It has said what it had to say, or waits for its calls.
    Stop,
    /// It was cut at the largest length; a last call that was cut is broken.
    Length,
    /// The provider held it back.
    Filtered,
    /// Something else, in the provider's word, with its explanation if it gave one.
    Other(String),
}

/// Tokens, as the provider counts them.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Usage {
    /// What was sent, cached or not.
    pub input_tokens: u64,
    /// What came back, thoughts included.
    pub output_tokens: u64,
    /// How much of the input the provider had in its cache, which costs a fraction.
    #[serde(default)]
    pub cached_tokens: u64,
    /// How much of the input it has put into its cache, where it charges for that.
    #[serde(default)]
    pub cache_write_tokens: u64,
}

impl Usage {
    /// Without a cache.
    pub const fn new(input_tokens: u64, output_tokens: u64) -> Self {
        Self { input_tokens, output_tokens, cached_tokens: 0, cache_write_tokens: 0 }
    }

    /// How much of the input was read anew. A provider that counts more as cached than was sent is not believed.
    pub const fn uncached_tokens(self) -> u64 {
        self.input_tokens.saturating_sub(self.cached_tokens)
    }
}

impl std::ops::AddAssign for Usage {
    fn add_assign(&mut self, other: Self) {
        self.input_tokens = self.input_tokens.saturating_add(other.input_tokens);
        self.output_tokens = self.output_tokens.saturating_add(other.output_tokens);
        self.cached_tokens = self.cached_tokens.saturating_add(other.cached_tokens);
        self.cache_write_tokens = self.cache_write_tokens.saturating_add(other.cache_write_tokens);
    }
}

/// Why there is no reply, or no more of it. The text is for the operator; what a user is told follows from the kind.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{model}: {detail}")]
pub struct ChatError {
    /// What kind of failure it was.
    pub kind: ChatErrorKind,
    /// [`ChatModel::name`].
    pub model: String,
    /// What the provider said, or what went wrong on the way. Holds no key.
    pub detail: String,
    /// When the provider wants to be asked again.
    pub retry_after: Option<Duration>,
    /// How much the model takes and how much it was sent, where the provider says so ([`ChatErrorKind::TooLong`]).
    pub context: Option<ContextOverflow>,
}

/// A request that does not fit a model, in tokens.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ContextOverflow {
    /// What the model takes.
    pub limit: u64,
    /// What it was sent, if it was counted.
    pub sent: Option<u64>,
}

/// What kind of failure it was.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ChatErrorKind {
    /// The address does not answer.
    Unreachable,
    /// The key is missing or wrong.
    Unauthorised,
    /// Too many requests, or the quota is spent.
    RateLimited,
    /// The provider has trouble of its own.
    Overloaded,
    /// The provider does not accept the request: most likely our mistake, or a wrong setting.
    Rejected,
    /// The conversation does not fit the model.
    TooLong,
    /// The provider will not answer this.
    Refused,
    /// The answer stopped in the middle.
    Cut,
    /// What came is not what the protocol says.
    Garbled,
    /// Nothing came for too long.
    Silent,
}

impl ChatErrorKind {
    /// The name on the wire.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Unreachable => "unreachable",
            Self::Unauthorised => "unauthorised",
            Self::RateLimited => "rate_limited",
            Self::Overloaded => "overloaded",
            Self::Rejected => "rejected",
            Self::TooLong => "too_long",
            Self::Refused => "refused",
            Self::Cut => "cut",
            Self::Garbled => "garbled",
            Self::Silent => "silent",
        }
    }

    /// Whether the model fails whatever it is asked, as far as can be seen. The others are about the conversation.
    pub const fn is_model_trouble(self) -> bool {
        !matches!(self, Self::TooLong | Self::Refused)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kinds_of_errors_have_one_name() {
        for name in [
            "unreachable",
            "unauthorised",
            "rate_limited",
            "overloaded",
            "rejected",
            "too_long",
            "refused",
            "cut",
            "garbled",
            "silent",
        ] {
            let kind: ChatErrorKind = serde_json::from_value(name.into()).unwrap();
            assert_eq!(kind.as_str(), name);
        }
    }

    #[test]
    fn usage_that_was_stored_before_caches_were_counted_is_read() {
        let usage: Usage = serde_json::from_value(json!({ "inputTokens": 3, "outputTokens": 2 })).unwrap();
        assert_eq!(usage, Usage::new(3, 2));
    }
}
