//! A conversation as every provider needs it: each call beside its result, under an id and a name that can be sent.

use std::borrow::Cow;
use std::collections::HashSet;

use quarterdeck_contracts::{CallArguments, CallResult, ChatMessage, ModelCall, ModelPart, PartContent};
use serde_json::{Value, json};

use crate::arguments;

/// What a provider accepts as names and ids.
pub(crate) struct ProviderRules {
    pub(crate) max_name_chars: usize,
    pub(crate) max_id_chars: usize,
    /// Whether an id of the model's own is accepted in any form.
    pub(crate) any_own_id: bool,
    /// Punctuation in names beside `_` and `-`.
    pub(crate) punctuation: &'static [char],
}

pub(crate) enum Turn<'a> {
    User(&'a str),
    Model(ModelTurn<'a>),
}

/// A message of a model with the results of its calls.
pub(crate) struct ModelTurn<'a> {
    /// Whether it is of the model that gets the request: only then is the state of its parts useful.
    pub(crate) own: bool,
    /// Whether a message of the user follows.
    pub(crate) answered: bool,
    pub(crate) parts: Vec<Piece<'a>>,
}

pub(crate) struct Piece<'a> {
    pub(crate) content: Content<'a>,
    /// Absent on another model's parts.
    pub(crate) state: Option<&'a Value>,
}

pub(crate) enum Content<'a> {
    Text(&'a str),
    Thought(&'a str),
    Call(SentCall<'a>),
    Opaque,
}

/// A call with its result.
pub(crate) struct SentCall<'a> {
    /// The provider's id where it can be sent, else one that is the same whenever this conversation is sent.
    pub(crate) id: Cow<'a, str>,
    /// The id that the model gave.
    own_id: Option<&'a str>,
    pub(crate) name: Cow<'a, str>,
    own_name: &'a str,
    pub(crate) arguments: &'a CallArguments,
    pub(crate) result: Option<&'a CallResult>,
}

impl ModelTurn<'_> {
    pub(crate) fn calls(&self) -> impl Iterator<Item = &SentCall<'_>> {
        self.parts.iter().filter_map(|piece| match &piece.content {
            Content::Call(call) => Some(call),
            _ => None,
        })
    }
}

impl SentCall<'_> {
    /// For a provider that can do without ids: the one that it gave, byte for byte, and none where it gave none.
    pub(crate) fn provider_id(&self, own: bool) -> Option<&str> {
        if own { self.own_id } else { self.own_id.map(|_| &*self.id) }
    }

    pub(crate) fn arguments(&self) -> Value {
        arguments::as_object(self.arguments)
    }

    pub(crate) fn is_ok(&self) -> bool {
        self.result.is_some_and(|result| result.response.is_ok())
    }

    /// The envelope for the model. Every provider refuses a conversation in which a call stays unanswered, so one whose
    /// result was lost is answered too.
    pub(crate) fn envelope(&self) -> Value {
        match self.result {
            Some(result) => serde_json::to_value(result.response.for_model()).expect("an envelope is JSON"),
            None => json!({
                "ok": false,
                "error": { "message": "Nothing is known about this call: it was not answered." },
            }),
        }
    }
}

/// Arranges a conversation for the named model.
pub(crate) fn turns<'a>(messages: &'a [ChatMessage], model: &str, rules: &ProviderRules) -> Vec<Turn<'a>> {
    let is_user = |message: &ChatMessage| matches!(message, ChatMessage::User { .. });
    let last_user = messages.iter().rposition(is_user).unwrap_or(0);
    let mut turns = Vec::new();
    let mut taken = HashSet::new();
    for (place, message) in messages.iter().enumerate() {
        match message {
            ChatMessage::User { text } => turns.push(Turn::User(text)),
            ChatMessage::Model(message) => {
                let mut results = results_after(&messages[place + 1..]);
                let own = message.by == model;
                let mut parts: Vec<_> = message.parts.iter().map(|part| piece(part, own, rules)).collect();
                assign_ids(&mut parts, place, &mut taken, |id| own && rules.any_own_id || fits(id, rules));
                attach_results(&mut parts, &mut results);
                turns.push(Turn::Model(ModelTurn { own, answered: place < last_user, parts }));
            }
            // Read with the message that they answer.
            ChatMessage::Tools { .. } => {}
        }
    }
    turns
}

fn results_after(messages: &[ChatMessage]) -> Vec<&CallResult> {
    let results = messages.iter().map_while(|message| match message {
        ChatMessage::Tools { results } => Some(results),
        _ => None,
    });
    results.flatten().collect()
}

fn piece<'a>(part: &'a ModelPart, own: bool, rules: &ProviderRules) -> Piece<'a> {
    let content = match &part.content {
        PartContent::Text(text) => Content::Text(text),
        PartContent::Thought(text) => Content::Thought(text),
        PartContent::Call(call) => Content::Call(sent_call(call, rules)),
        PartContent::Opaque => Content::Opaque,
    };
    Piece { content, state: part.state.as_ref().filter(|_| own) }
}

fn sent_call<'a>(call: &'a ModelCall, rules: &ProviderRules) -> SentCall<'a> {
    SentCall {
        id: Cow::Borrowed(""),
        own_id: call.id.as_deref(),
        name: sent_name(&call.name, rules),
        own_name: &call.name,
        arguments: &call.arguments,
        result: None,
    }
}

/// A name that a model made up may have characters that its own provider does not take back.
fn sent_name<'a>(name: &'a str, rules: &ProviderRules) -> Cow<'a, str> {
    let is_fine =
        |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-') || rules.punctuation.contains(&c);
    if !name.is_empty() && name.len() <= rules.max_name_chars && name.chars().all(is_fine) {
        return Cow::Borrowed(name);
    }
    let fitting = name.chars().map(|c| if is_fine(c) { c } else { '_' }).take(rules.max_name_chars);
    match fitting.collect::<String>() {
        fitting if fitting.is_empty() => Cow::Borrowed("_"),
        fitting => Cow::Owned(fitting),
    }
}

/// Ids that can be sent and are unique stay; the others are replaced by the position of their call. Some servers repeat
/// ids in every reply, and others refuse an id that occurs twice.
fn assign_ids(
    parts: &mut [Piece<'_>],
    place: usize,
    taken: &mut HashSet<String>,
    can_be_sent: impl Fn(&str) -> bool,
) {
    for (index, piece) in parts.iter_mut().enumerate() {
        let Content::Call(call) = &mut piece.content else { continue };
        let own_id = call.own_id.filter(|id| !id.is_empty() && can_be_sent(id) && !taken.contains(*id));
        call.id = own_id.map_or_else(|| Cow::Owned(generate_id(place, index, taken)), Cow::Borrowed);
        taken.insert(call.id.clone().into_owned());
    }
}

fn generate_id(place: usize, index: usize, taken: &HashSet<String>) -> String {
    let mut id = format!("call_{place}_{index}");
    while taken.contains(&id) {
        id.push('_');
    }
    id
}

fn fits(id: &str, rules: &ProviderRules) -> bool {
    id.len() <= rules.max_id_chars && id.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '_' | '-'))
}

/// By id, and where there is none by name, in order.
fn attach_results<'a>(parts: &mut [Piece<'a>], results: &mut Vec<&'a CallResult>) {
    let mut give = |matches: &dyn Fn(&SentCall<'a>, &CallResult) -> bool| {
        for piece in parts.iter_mut() {
            let Content::Call(call) = &mut piece.content else { continue };
            if call.result.is_none()
                && let Some(found) = results.iter().position(|result| matches(call, result))
            {
                call.result = Some(results.remove(found));
            }
        }
    };
    give(&|call, result| call.own_id.is_some() && call.own_id == result.id.as_deref());
    give(&|call, result| (call.own_id.is_none() || result.id.is_none()) && call.own_name == result.name);
}
