//! Scripted replies, for tests and measurements.

mod read;

use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use quarterdeck_contracts::{
    ChatError, ChatErrorKind, ChatMessage, ChatRequest, Finish, ModelCall, ModelMessage, ModelPart,
    ModelReply, PartContent, Usage,
};
pub use quarterdeck_json_fields::FieldError as ScriptError;

use crate::model::{DeclaredCharacters, NAME, input_tokens, output_tokens};
use crate::reply_stream::{End, ReplyStep};

/// What to say and call, reply by reply.
///
/// A file is a JSON list of replies, or an object with `replies`, `order` and `atEnd`. A reply has any of
///
/// | field | what it does |
/// | --- | --- |
/// | `delayMs` | waits before anything comes |
/// | `thought` | one or more pieces of thought |
/// | `text` | one piece, or a list of pieces and `{"delayMs": 50}` between them |
/// | `everyMs` | waits before each piece of text |
/// | `repeat` | `{"text": " token", "times": 2000, "everyMs": 20}`: the same piece many times |
/// | `calls` | `{"name", "id"?, "arguments"?}`, or `"broken"` with a text that is no JSON |
/// | `finish` | `"stop"`, `"length"`, `"filtered"`, or a provider's word |
/// | `error` | `"cut"`, or `{"kind": "rate_limited", "detail"?, "retryAfterMs"?}`: the stream ends with it instead |
/// | `usage` | `{"inputTokens", "outputTokens"}` instead of an estimate |
///
/// and happens in that order. Calls are made as they stand there, whatever is declared and whether or not tools are
/// switched off. A call without `id` has none.
///
/// With `"order": "process"` (the default), each request of the process takes the next reply. With
/// `"conversation"`, the reply is the one after as many as the conversation holds already, so that many conversations
/// can run the same script at once. After the last one, a reply says that the script is over; with
/// `"atEnd": "again"` it begins anew.
#[derive(Debug)]
pub struct Script {
    replies: Vec<ScriptedReply>,
    order: Order,
    at_end: AtEnd,
    /// The next one, for [`Order::Process`].
    next: AtomicUsize,
}

/// Which request takes which reply.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Order {
    Process,
    Conversation,
}

/// What happens after the last reply.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum AtEnd {
    Over,
    Again,
}

/// One reply of a script.
#[derive(Debug, Clone, PartialEq)]
struct ScriptedReply {
    steps: Vec<ReplyStep>,
    calls: Vec<ModelCall>,
    finish: Finish,
    error: Option<(ChatErrorKind, String, Option<Duration>)>,
    usage: Option<Usage>,
}

impl Script {
    /// Parses a script.
    ///
    /// # Errors
    ///
    /// The first fault, with its line and field.
    pub fn parse(text: &str) -> Result<Self, ScriptError> {
        read::script(text)
    }

    /// The reply to a request.
    pub(crate) fn play(&self, request: &ChatRequest, declared: &DeclaredCharacters) -> (Vec<ReplyStep>, End) {
        match self.turn(request) {
            Some(reply) => reply.play(request, declared),
            None => {
                let text = "The rehearsal script is over: every reply in it has been given.".to_owned();
                let steps = vec![ReplyStep::Words(text)];
                let over = ScriptedReply {
                    steps,
                    calls: Vec::new(),
                    finish: Finish::Stop,
                    error: None,
                    usage: None,
                };
                over.play(request, declared)
            }
        }
    }

    fn turn(&self, request: &ChatRequest) -> Option<&ScriptedReply> {
        let nth = match self.order {
            // Stays at its largest instead of beginning anew.
            Order::Process => {
                let step = |nth: usize| Some(nth.saturating_add(1));
                self.next.fetch_update(Ordering::Relaxed, Ordering::Relaxed, step).unwrap_or(usize::MAX)
            }
            Order::Conversation => {
                request.messages.iter().filter(|message| matches!(message, ChatMessage::Model(_))).count()
            }
        };
        match self.at_end {
            AtEnd::Over => self.replies.get(nth),
            AtEnd::Again => self.replies.get(nth.checked_rem(self.replies.len())?),
        }
    }
}

impl ScriptedReply {
    fn play(&self, request: &ChatRequest, declared: &DeclaredCharacters) -> (Vec<ReplyStep>, End) {
        if let Some((kind, detail, retry_after)) = &self.error {
            let error = ChatError {
                kind: *kind,
                model: NAME.to_owned(),
                detail: detail.clone(),
                retry_after: *retry_after,
                context: None,
            };
            return (self.steps.clone(), End::Failed(error));
        }
        let mut thought = String::new();
        let mut text = String::new();
        for step in &self.steps {
            match step {
                ReplyStep::Thought(piece) => thought.push_str(piece),
                ReplyStep::Text(piece) | ReplyStep::Words(piece) => text.push_str(piece),
                ReplyStep::Repeat { text: piece, times, .. } => {
                    text.extend(std::iter::repeat_n(piece.as_str(), usize::try_from(*times).unwrap_or(0)));
                }
                ReplyStep::Wait(_) => {}
            }
        }
        let thought = (!thought.is_empty()).then_some(PartContent::Thought(thought));
        let text = (!text.is_empty()).then_some(PartContent::Text(text));
        let calls = self.calls.iter().cloned().map(PartContent::Call);
        let parts = thought.into_iter().chain(text).chain(calls).map(ModelPart::new).collect();
        let message = ModelMessage { by: NAME.to_owned(), parts };
        let usage = self
            .usage
            .unwrap_or_else(|| Usage::new(input_tokens(request, declared), output_tokens(&message)));
        (self.steps.clone(), End::Done(ModelReply { message, finish: self.finish.clone(), usage }))
    }
}
