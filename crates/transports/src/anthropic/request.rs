//! Writes Anthropic's requests.
//!
//! Never `temperature`, `top_p` or `top_k`: the present version refuses a request that has them, even at their
//! default values.

use quarterdeck_contracts::{ChatRequest, ToolUse};
use serde_json::{Map, Value, json};

use super::{AnthropicConfig, Thinking, cache};
use crate::conversation::{Content, ModelTurn, Piece, ProviderRules, SentCall, Turn, turns};

const RULES: ProviderRules =
    ProviderRules { max_name_chars: 64, any_own_id: false, max_id_chars: 256, punctuation: &[] };

/// The body of a request. `name` is that of the model ([`quarterdeck_contracts::ChatModel::name`]).
pub fn body(config: &AnthropicConfig, name: &str, request: &ChatRequest) -> Value {
    let mut messages = Messages::default();
    for turn in turns(&request.messages, name, &RULES) {
        match turn {
            // An empty block is refused.
            Turn::User(text) if text.trim().is_empty() => {}
            Turn::User(text) => messages.add("user", vec![text_block(text)]),
            Turn::Model(turn) => {
                messages.add("assistant", assistant_blocks(&turn));
                // Before any text of the user's, as they must be.
                messages.add("user", turn.calls().map(tool_result).collect());
            }
        }
    }
    let mut body = json!({ "model": config.model, "max_tokens": config.max_output_tokens });
    // What changes least comes first.
    if !request.tools.is_empty() {
        body["tools"] = match config.prompt_cache {
            true => cache::marked_tools(request),
            false => json!(*request.tools),
        };
    }
    if !request.system.is_empty() {
        body["system"] = match config.prompt_cache {
            true => cache::marked_system(request),
            false => (*request.system).into(),
        };
    }
    if config.prompt_cache {
        cache::mark_messages(&mut messages.0);
    }
    body["messages"] = messages.0.into();
    if !request.tools.is_empty() {
        body["tool_choice"] = match request.tool_use {
            ToolUse::Allowed => json!({ "type": "auto" }),
            ToolUse::Off => json!({ "type": "none" }),
        };
    }
    match config.thinking {
        Thinking::Unsaid => {}
        Thinking::Adaptive => body["thinking"] = json!({ "type": "adaptive" }),
        Thinking::Budget(most) => body["thinking"] = json!({ "type": "enabled", "budget_tokens": most }),
        Thinking::Off => body["thinking"] = json!({ "type": "disabled" }),
    }
    if let Some(effort) = &config.effort {
        body["output_config"] = json!({ "effort": effort });
    }
    body["stream"] = true.into();
    body
}

/// Messages by role; neighbours of the same role become one.
#[derive(Default)]
struct Messages(Vec<Value>);

impl Messages {
    fn add(&mut self, role: &str, blocks: Vec<Value>) {
        if blocks.is_empty() {
            return;
        }
        if let Some(last) = self.0.last_mut().filter(|last| last["role"] == role)
            && let Some(present) = last["content"].as_array_mut()
        {
            present.extend(blocks);
            return;
        }
        self.0.push(json!({ "role": role, "content": blocks }));
    }
}

fn text_block(text: &str) -> Value {
    json!({ "type": "text", "text": text })
}

fn assistant_blocks(turn: &ModelTurn<'_>) -> Vec<Value> {
    turn.parts.iter().filter_map(assistant_block).collect()
}

/// A block as it arrived: our content, put back among the members that only Anthropic knows.
fn assistant_block(piece: &Piece<'_>) -> Option<Value> {
    let mut block = match piece.state {
        Some(Value::Object(state)) => state.clone(),
        _ => Map::new(),
    };
    match &piece.content {
        Content::Text(text) if text.trim().is_empty() => return None,
        Content::Text(text) => {
            block.insert("type".to_owned(), "text".into());
            block.insert("text".to_owned(), (*text).into());
        }
        Content::Thought(text) => {
            // Without its signature a thought is refused: another model's has none, nor has one that was cut.
            block.get("signature").and_then(Value::as_str).filter(|signature| !signature.is_empty())?;
            block.insert("type".to_owned(), "thinking".into());
            block.insert("thinking".to_owned(), (*text).into());
        }
        Content::Call(call) => {
            block.insert("type".to_owned(), "tool_use".into());
            block.insert("id".to_owned(), (*call.id).into());
            block.insert("name".to_owned(), (*call.name).into());
            block.insert("input".to_owned(), call.arguments());
        }
        Content::Opaque if block.is_empty() => return None,
        Content::Opaque => {}
    }
    Some(block.into())
}

fn tool_result(call: &SentCall<'_>) -> Value {
    let mut result = json!({
        "type": "tool_result",
        "tool_use_id": *call.id,
        "content": call.envelope().to_string(),
    });
    if !call.is_ok() {
        result["is_error"] = true.into();
    }
    result
}
