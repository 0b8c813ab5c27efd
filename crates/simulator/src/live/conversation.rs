//! What a conversation has come to: what the model remembers, and how far the scenario has been played.

use std::sync::Arc;

use quarterdeck_contracts::{
    CallResult, ChatMessage, ErrorType, Meta, ModelMessage, ModelPart, Outcome, PartContent, ToolError,
    ToolResponse,
};
use serde_json::Value;

use super::client_frame::Said;

/// How many messages are remembered, and how many bytes of them, roughly. The present turn always is.
const MOST_MESSAGES: usize = 200;
const MOST_BYTES: usize = 1 << 20;
/// How much of a text is remembered, in bytes.
const MOST_TEXT: usize = 16 << 10;

/// What is kept with a handle.
#[derive(Debug, Clone, Default)]
pub(super) struct Conversation {
    /// The next turn of the scenario.
    pub(super) position: usize,
    /// How often the person has spoken.
    pub(super) speeches: usize,
    messages: Vec<Arc<ChatMessage>>,
    /// How large each of them is.
    sizes: Vec<usize>,
}

impl Conversation {
    pub(super) fn begun_at(position: usize) -> Self {
        Self { position, ..Self::default() }
    }

    pub(super) fn messages(&self) -> Vec<ChatMessage> {
        // What is sent to a model begins with a person's message.
        let from_person = self.messages.iter().skip_while(|message| !is_person(message));
        from_person.map(|message| ChatMessage::clone(message)).collect()
    }

    /// Whether something waits for an answer.
    pub(super) fn asks(&self) -> bool {
        self.messages.last().is_some_and(|message| !matches!(**message, ChatMessage::Model(_)))
    }

    /// The person has said something.
    pub(super) fn say(&mut self, text: &str) {
        self.add(&Said { is_model: false, text: text.to_owned() });
    }

    /// Somebody has said something.
    pub(super) fn add(&mut self, said: &Said) {
        let text = said.text[..said.text.floor_char_boundary(MOST_TEXT)].to_owned();
        if text.is_empty() {
            return;
        }
        self.push(match said.is_model {
            true => ChatMessage::Model(ModelMessage {
                by: "history".into(),
                parts: vec![ModelPart::new(PartContent::Text(text))],
            }),
            false => ChatMessage::User { text },
        });
    }

    pub(super) fn push(&mut self, message: ChatMessage) {
        self.sizes.push(serde_json::to_string(&message).map_or(0, |text| text.len()));
        self.messages.push(Arc::new(message));
        while self.messages.len() > MOST_MESSAGES || self.sizes.iter().sum::<usize>() > MOST_BYTES {
            // A conversation begins with a person's message, so whole turns are forgotten.
            let next = self.messages.iter().skip(1).position(is_person);
            let Some(next) = next else { break };
            self.messages.drain(..=next);
            self.sizes.drain(..=next);
        }
    }

    /// The calls of the last message, if nothing has been said about them.
    pub(super) fn unanswered(&self) -> Vec<(Option<String>, String)> {
        match self.messages.last().map(|message| &**message) {
            Some(ChatMessage::Model(message)) => {
                message.calls().map(|call| (call.id.clone(), call.name.clone())).collect()
            }
            _ => Vec::new(),
        }
    }
}

fn is_person(message: &Arc<ChatMessage>) -> bool {
    matches!(**message, ChatMessage::User { .. })
}

/// An answer as the chat model sees it: `output` is what came of it, `error` why nothing did; otherwise the whole of it
/// is what came of it.
pub(super) fn result(id: Option<String>, name: &str, response: Option<&Value>) -> CallResult {
    let outcome = match response {
        None => Outcome::Failure(ToolError::new(ErrorType::Cancelled, "The call was taken back.")),
        Some(response) => match (response.get("error"), response.get("output")) {
            (Some(error), _) => Outcome::Failure(failure(error)),
            (None, Some(output)) => Outcome::Success(output.clone()),
            (None, None) => Outcome::Success(response.clone()),
        },
    };
    let meta = Meta {
        tool_id: name.to_owned(),
        tool_version: "0.0.0".into(),
        registry_version: "simulated".into(),
        response_schema_version: "1.0".into(),
        duration: 0,
        timestamp: "1970-01-01T00:00:00Z".into(),
        retry_count: None,
        parent_call_id: None,
        background_task_id: None,
        idempotent_cache_hit: None,
        original_turn: None,
    };
    let response = Arc::new(ToolResponse { outcome, intents: Vec::new(), meta });
    CallResult { id, name: name.to_owned(), response }
}

fn failure(error: &Value) -> ToolError {
    serde_json::from_value(error.clone()).unwrap_or_else(|_| {
        let message = error.as_str().map_or_else(|| error.to_string(), str::to_owned);
        ToolError::new(ErrorType::Permanent, message)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn whole_turns_are_forgotten_and_never_the_present_one() {
        let mut conversation = Conversation::default();
        for nth in 0..300 {
            conversation.say(&format!("question {nth}"));
            conversation.add(&Said { is_model: true, text: "answer".into() });
        }
        let messages = conversation.messages();
        assert_eq!(messages.len(), MOST_MESSAGES);
        assert!(matches!(&messages[0], ChatMessage::User { text } if text == "question 200"));

        conversation.say("and now something large");
        let large = result(None, "look_up", Some(&Value::String("x".repeat(2 * MOST_BYTES))));
        conversation.push(ChatMessage::Tools { results: vec![large] });
        let messages = conversation.messages();
        assert!(
            matches!(&messages[..], [ChatMessage::User { text }, ChatMessage::Tools { .. }] if text.ends_with("large"))
        );
    }
}
