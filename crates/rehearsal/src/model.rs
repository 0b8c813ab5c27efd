//! The chat model.

use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::time::Duration;

use quarterdeck_contracts::{
    CallArguments, ChatMessage, ChatModel, ChatRequest, ChatStream, Finish, ModelCall, ModelMessage,
    ModelPart, ModelReply, PartContent, Provider, Usage, estimate_tokens,
};
use serde_json::Value;

use crate::context::Context;
use crate::reply::Reply;
use crate::reply_stream::{End, ReplyStep, ReplyStream};
use crate::{Script, decide, reply};

/// [`ChatModel::name`].
pub(crate) const NAME: &str = "rehearsal/built-in";
/// As large as a usual model's, so that a conversation is cut where it would be with one.
const WINDOW: usize = 128_000;

/// The built-in chat model: deterministic and offline.
///
/// It sees what any model sees and decides by rules: the same request always gives the same events. It keeps nothing
/// between two requests, unless a [`Script`] says what comes next. Tokens are estimated as characters ÷ 4, rounded up.
#[derive(Debug)]
pub struct Rehearsal {
    script: Option<Script>,
    pace: Duration,
    declared: DeclaredCharacters,
}

impl Rehearsal {
    /// A model that answers from the tools it is given, as fast as it is read.
    pub fn new() -> Self {
        Self { script: None, pace: Duration::ZERO, declared: DeclaredCharacters::default() }
    }

    /// A model that gives the replies of a script and nothing else.
    pub fn scripted(script: Script) -> Self {
        Self { script: Some(script), ..Self::new() }
    }

    /// Pauses before every word, for demonstrations. Needs a tokio runtime with time.
    pub fn with_pace(mut self, pause: Duration) -> Self {
        self.pace = pause;
        self
    }
}

impl Default for Rehearsal {
    fn default() -> Self {
        Self::new()
    }
}

impl ChatModel for Rehearsal {
    fn declarations(&self) -> Provider {
        Provider::Openai
    }

    fn name(&self) -> &str {
        NAME
    }

    fn window(&self) -> usize {
        WINDOW
    }

    fn is_rehearsal(&self) -> bool {
        true
    }

    fn ask(&self, request: ChatRequest) -> ChatStream {
        if let Some(script) = &self.script {
            let (steps, end) = script.play(&request, &self.declared);
            return Box::pin(ReplyStream::new(steps, self.pace, end));
        }
        let reply = decide::reply(&Context::read(&request));
        let ids = reply::call_ids(&request, &reply.calls);
        let steps = vec![ReplyStep::Words(reply.text.clone())];
        let message = message(reply, ids);
        let usage = Usage::new(input_tokens(&request, &self.declared), output_tokens(&message));
        let end = End::Done(ModelReply { message, finish: Finish::Stop, usage });
        Box::pin(ReplyStream::new(steps, self.pace, end))
    }
}

fn message(reply: Reply, ids: Vec<String>) -> ModelMessage {
    let text = (!reply.text.is_empty()).then_some(PartContent::Text(reply.text));
    let calls = reply.calls.into_iter().zip(ids).map(|((name, arguments), id)| {
        PartContent::Call(ModelCall { id: Some(id), name, arguments: CallArguments::Json(arguments) })
    });
    ModelMessage { by: NAME.to_owned(), parts: text.into_iter().chain(calls).map(ModelPart::new).collect() }
}

/// How long the last declarations are. Nearly every request has the same ones, and to write them out to be counted would take
/// longer than everything else about a scripted reply.
#[derive(Debug, Default)]
pub(crate) struct DeclaredCharacters {
    last: Mutex<Option<(Weak<[Value]>, usize)>>,
}

impl DeclaredCharacters {
    fn of(&self, tools: &Arc<[Value]>) -> usize {
        let mut last = self.last.lock().unwrap_or_else(PoisonError::into_inner);
        let is_same = |known: &Weak<[Value]>| known.upgrade().is_some_and(|known| Arc::ptr_eq(&known, tools));
        if let Some((_, count)) = last.as_ref().filter(|(known, _)| is_same(known)) {
            return *count;
        }
        let count = tools.iter().map(|tool| characters(&tool.to_string())).sum();
        *last = Some((Arc::downgrade(tools), count));
        count
    }
}

pub(crate) fn input_tokens(request: &ChatRequest, declared: &DeclaredCharacters) -> u64 {
    let messages: usize = request.messages.iter().map(message_characters).sum();
    estimate_tokens(characters(&request.system) + declared.of(&request.tools) + messages) as u64
}

fn message_characters(message: &ChatMessage) -> usize {
    match message {
        ChatMessage::User { text } => characters(text),
        ChatMessage::Model(message) => model_characters(message),
        ChatMessage::Tools { results } => {
            let written =
                results.iter().map(|result| serde_json::to_string(&*result.response).unwrap_or_default());
            written.map(|envelope| characters(&envelope)).sum()
        }
    }
}

pub(crate) fn output_tokens(message: &ModelMessage) -> u64 {
    estimate_tokens(model_characters(message)) as u64
}

fn model_characters(message: &ModelMessage) -> usize {
    let part = |part: &ModelPart| match &part.content {
        PartContent::Text(text) | PartContent::Thought(text) => characters(text),
        PartContent::Call(call) => {
            characters(&call.name)
                + match &call.arguments {
                    CallArguments::Json(arguments) => characters(&arguments.to_string()),
                    CallArguments::Broken(text) => characters(text),
                }
        }
        PartContent::Opaque => 0,
    };
    message.parts.iter().map(part).sum()
}

fn characters(text: &str) -> usize {
    text.chars().count()
}
