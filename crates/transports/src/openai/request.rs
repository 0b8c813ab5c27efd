//! Writes requests of chat completions.

use quarterdeck_contracts::{ChatRequest, ToolUse};
use serde_json::{Map, Value, json};

use super::{OpenAiConfig, OutputLimit, SystemRole};
use crate::conversation::{Content, ModelTurn, Piece, ProviderRules, SentCall, Turn, turns};

const RULES: ProviderRules =
    ProviderRules { max_name_chars: 64, any_own_id: true, max_id_chars: 40, punctuation: &[] };

/// The body of a request. `name` is that of the model ([`quarterdeck_contracts::ChatModel::name`]).
pub fn body(config: &OpenAiConfig, name: &str, request: &ChatRequest) -> Value {
    let mut messages = Vec::new();
    if !request.system.is_empty() {
        let role = match config.system_role {
            SystemRole::Developer => "developer",
            SystemRole::System => "system",
        };
        messages.push(json!({ "role": role, "content": *request.system }));
    }
    for turn in turns(&request.messages, name, &RULES) {
        match turn {
            Turn::User(text) => add_user(&mut messages, text),
            Turn::Model(turn) => add_model(&mut messages, &turn),
        }
    }
    let mut body = json!({ "model": config.model });
    // What changes least comes first: the provider keeps what requests have in common at their beginning.
    if !request.tools.is_empty() {
        body["tools"] = json!(*request.tools);
    }
    body["messages"] = messages.into();
    if !request.tools.is_empty() {
        body["tool_choice"] = match request.tool_use {
            ToolUse::Allowed => "auto".into(),
            ToolUse::Off => "none".into(),
        };
    }
    match config.output_limit {
        OutputLimit::MaxCompletionTokens(most) => body["max_completion_tokens"] = most.into(),
        OutputLimit::MaxTokens(most) => body["max_tokens"] = most.into(),
        OutputLimit::Unsaid => {}
    }
    body["stream"] = true.into();
    if config.include_usage {
        body["stream_options"] = json!({ "include_usage": true });
    }
    for (member, value) in &config.extra {
        body[member] = value.clone();
    }
    body
}

/// Joins consecutive messages of the user: the chat templates of many models require alternating roles.
fn add_user(messages: &mut Vec<Value>, text: &str) {
    if let Some(last) = messages.last_mut().filter(|last| last["role"] == "user")
        && let Value::String(content) = &mut last["content"]
    {
        content.push_str("\n\n");
        content.push_str(text);
        return;
    }
    messages.push(json!({ "role": "user", "content": text }));
}

fn add_model(messages: &mut Vec<Value>, turn: &ModelTurn<'_>) {
    let mut message = Map::new();
    let (mut text, mut calls) = (String::new(), Vec::new());
    for piece in &turn.parts {
        match &piece.content {
            Content::Text(more) => text.push_str(more),
            Content::Call(call) => calls.push(tool_call(piece, call)),
            // Thoughts are not taken back, and some servers refuse them.
            Content::Thought(_) => {}
            Content::Opaque => {
                let state = piece.state.and_then(Value::as_object);
                message.extend(state.into_iter().flatten().map(|(key, value)| (key.clone(), value.clone())));
            }
        }
    }
    if text.is_empty() && calls.is_empty() {
        return;
    }
    message.insert("role".to_owned(), "assistant".into());
    let content = if text.is_empty() { Value::Null } else { text.into() };
    message.insert("content".to_owned(), content);
    if !calls.is_empty() {
        message.insert("tool_calls".to_owned(), calls.into());
    }
    messages.push(message.into());
    messages.extend(turn.calls().map(
        |call| json!({ "role": "tool", "tool_call_id": *call.id, "content": call.envelope().to_string() }),
    ));
}

/// A call with the members that came with it, such as a signature of Gemini's.
fn tool_call(piece: &Piece<'_>, call: &SentCall<'_>) -> Value {
    let mut members = match piece.state {
        Some(Value::Object(state)) => state.clone(),
        _ => Map::new(),
    };
    members.insert("id".to_owned(), (*call.id).into());
    members.insert("type".to_owned(), "function".into());
    let function = json!({ "name": *call.name, "arguments": call.arguments().to_string() });
    members.insert("function".to_owned(), function);
    members.into()
}
