//! A message of the model, its calls and what they came to.

use std::sync::Arc;

use quarterdeck_contracts::{
    CallResult, ErrorType, LiveResult, Meta, ModelMessage, ModelPart, Outcome, PartContent,
    RESPONSE_SCHEMA_VERSION, ToolError, ToolResponse, estimate_tokens,
};

/// One message of the model, with the results of its calls.
#[derive(Debug)]
pub(super) struct Reply {
    pub(super) number: u64,
    pub(super) message: ModelMessage,
    pub(super) calls: Vec<OpenCall>,
    /// The conversation goes on without waiting for results that are missing.
    pub(super) is_detached: bool,
    /// A result that was delivered is to be spoken about.
    pub(super) needs_words: bool,
}

#[derive(Debug)]
pub(super) struct OpenCall {
    /// The id that the agent knows.
    pub(super) id: String,
    /// The id and the name that the model gave.
    pub(super) own_id: Option<String>,
    pub(super) name: String,
    pub(super) result: Option<Arc<ToolResponse>>,
}

impl Reply {
    /// About how many tokens it has, with the results of its calls.
    pub(super) fn tokens(&self) -> usize {
        let results: usize =
            self.calls.iter().filter_map(|call| call.result.as_deref()).map(result_bytes).sum();
        let calls: usize = self.message.calls().map(|call| format!("{:?}", call.arguments).len()).sum();
        estimate_tokens(self.message.text().len() + calls + results)
    }

    pub(super) fn has_open_calls(&self) -> bool {
        self.calls.iter().any(|call| call.result.is_none())
    }

    pub(super) fn results(&self) -> Vec<CallResult> {
        let result = |call: &OpenCall| CallResult {
            id: call.own_id.clone(),
            name: call.name.clone(),
            response: call.result.clone().unwrap_or_else(|| Arc::new(missing_result(&call.name))),
        };
        self.calls.iter().map(result).collect()
    }

    /// What was not heard goes.
    pub(super) fn cut(&mut self, heard: &str) {
        if heard.trim() != self.message.text().trim() {
            replace_text(&mut self.message, heard);
        }
    }
}

/// Gives a message another text. State that belonged to the old one goes with it; what the calls need stays.
pub(crate) fn replace_text(message: &mut ModelMessage, text: &str) {
    let is_call = |part: &ModelPart| matches!(part.content, PartContent::Call(_));
    let has_calls = message.parts.iter().any(is_call);
    message.parts.retain(|part| has_calls && !matches!(part.content, PartContent::Text(_)));
    if !text.trim().is_empty() {
        let place = message.parts.iter().position(is_call).unwrap_or(message.parts.len());
        message.parts.insert(place, text_part(text));
    }
}

impl OpenCall {
    pub(super) fn answers(&self, result: &LiveResult<'_>) -> bool {
        match result.id {
            Some(id) => self.id == id,
            None => self.name == result.name && self.result.is_none(),
        }
    }
}

/// What the model is told of a call whose result it does not have.
fn missing_result(name: &str) -> ToolResponse {
    let message =
        "There is no result yet: the user has gone on. It may still be running or have been cancelled.";
    failure(name, ErrorType::Cancelled, message)
}

pub(super) fn failure(name: &str, kind: ErrorType, message: &str) -> ToolResponse {
    let meta = Meta {
        tool_id: name.into(),
        tool_version: "".into(),
        registry_version: "".into(),
        response_schema_version: RESPONSE_SCHEMA_VERSION.into(),
        duration: 0,
        timestamp: String::new(),
        retry_count: None,
        parent_call_id: None,
        background_task_id: None,
        idempotent_cache_hit: None,
        original_turn: None,
    };
    let outcome = Outcome::Failure(ToolError::new(kind, message));
    ToolResponse { outcome, intents: Vec::new(), meta }
}

pub(super) fn text_part(text: &str) -> ModelPart {
    ModelPart::new(PartContent::Text(text.to_owned()))
}

pub(super) fn is_empty_text(part: &ModelPart) -> bool {
    matches!(&part.content, PartContent::Text(text) if text.trim().is_empty())
}

fn result_bytes(response: &ToolResponse) -> usize {
    match &response.outcome {
        Outcome::Success(data) => data.to_string().len(),
        Outcome::Failure(error) => error.message.len() + 100,
    }
}
