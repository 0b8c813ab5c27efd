//! The history of a conversation, and its position in the scenario.

use std::sync::Arc;

use quarterdeck_contracts::{
    CallResult, ChatMessage, ErrorType, Meta, ModelMessage, ModelPart, Outcome, PartContent, ToolError,
    ToolResponse,
};
use serde_json::Value;

use super::client_frame::ContentTurn;

/// Messages that are remembered, and their bytes, roughly. The present turn always is.
const MAX_MESSAGES: usize = 200;
const MAX_HISTORY_BYTES: usize = 1 << 20;
/// How much of a text is remembered.
const MAX_TEXT_BYTES: usize = 16 << 10;

/// What is kept with a handle.
#[derive(Debug, Clone, Default)]
pub(super) struct Conversation {
    /// The next turn of the scenario.
    pub(super) position: usize,
    /// How often the user has spoken.
    pub(super) speeches: usize,
    messages: Vec<Arc<ChatMessage>>,
    /// How large each of them is.
    sizes: Vec<usize>,
}

impl Conversation {
    pub(super) fn starting_at(position: usize) -> Self {
        Self { position, ..Self::default() }
    }

    pub(super) fn messages(&self) -> Vec<ChatMessage> {
        // Models expect a message of the user first.
        let from_user = self.messages.iter().skip_while(|message| !is_user(message));
        from_user.map(|message| ChatMessage::clone(message)).collect()
    }

    /// Whether the last message needs a reply.
    pub(super) fn needs_reply(&self) -> bool {
        self.messages.last().is_some_and(|message| !matches!(**message, ChatMessage::Model(_)))
    }

    /// Adds a message of the user.
    pub(super) fn add_user(&mut self, text: &str) {
        self.add(&ContentTurn { is_model: false, text: text.to_owned() });
    }

    pub(super) fn add(&mut self, turn: &ContentTurn) {
        let text = turn.text[..turn.text.floor_char_boundary(MAX_TEXT_BYTES)].to_owned();
        if text.is_empty() {
            return;
        }
        self.push(match turn.is_model {
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
        while self.messages.len() > MAX_MESSAGES || self.sizes.iter().sum::<usize>() > MAX_HISTORY_BYTES {
            // A conversation starts with a message of the user, so whole turns are dropped.
            let next = self.messages.iter().skip(1).position(is_user);
            let Some(next) = next else { break };
            self.messages.drain(..=next);
            self.sizes.drain(..=next);
        }
    }

    /// The calls of the last message.
    pub(super) fn unanswered(&self) -> Vec<(Option<String>, String)> {
        match self.messages.last().map(|message| &**message) {
            Some(ChatMessage::Model(message)) => {
                message.calls().map(|call| (call.id.clone(), call.name.clone())).collect()
            }
            _ => Vec::new(),
        }
    }
}

fn is_user(message: &Arc<ChatMessage>) -> bool {
    matches!(**message, ChatMessage::User { .. })
}

/// A function response as the chat model sees it: `output` is the data, `error` the failure; otherwise the whole of it
/// is the data.
pub(super) fn result(id: Option<String>, name: &str, response: Option<&Value>) -> CallResult {
    let outcome = match response {
        None => Outcome::Failure(ToolError::new(ErrorType::Cancelled, "The call was cancelled.")),
        Some(response) => match (response.get("error"), response.get("output")) {
            (Some(error), _) => Outcome::Failure(failure(error)),
            (None, Some(output)) => Outcome::Success(output.clone()),
            (None, None) => Outcome::Success(response.clone()),
        },
    };
    let meta = Meta {
        tool_id: name.into(),
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
    fn history_drops_whole_turns_and_never_the_present_one() {
        let mut conversation = Conversation::default();
        for nth in 0..300 {
            conversation.add_user(&format!("question {nth}"));
            conversation.add(&ContentTurn { is_model: true, text: "answer".into() });
        }
        let messages = conversation.messages();
        assert_eq!(messages.len(), MAX_MESSAGES);
        assert!(matches!(&messages[0], ChatMessage::User { text } if text == "question 200"));

        conversation.add_user("and now something large");
        let large = result(None, "look_up", Some(&Value::String("x".repeat(2 * MAX_HISTORY_BYTES))));
        conversation.push(ChatMessage::Tools { results: vec![large] });
        let messages = conversation.messages();
        assert!(
            matches!(&messages[..], [ChatMessage::User { text }, ChatMessage::Tools { .. }] if text.ends_with("large"))
        );
    }
}
