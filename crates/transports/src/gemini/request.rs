//! Writes Gemini's requests.

use quarterdeck_contracts::{ChatRequest, ToolUse};
use serde_json::{Map, Value, json};

use super::GeminiConfig;
use crate::conversation::{Content, ModelTurn, Piece, ProviderRules, SentCall, Turn, turns};

const RULES: ProviderRules = ProviderRules {
    max_name_chars: 128,
    any_own_id: true,
    max_id_chars: usize::MAX,
    punctuation: &['.', ':'],
};

/// Stands in for the signature of a call that another model made in this very turn: Gemini refuses a call of the
/// present turn without one, and there is no true one. A true one is never replaced.
const NO_SIGNATURE: &str = "skip_thought_signature_validator";

/// The body of a request. `name` is that of the model ([`quarterdeck_contracts::ChatModel::name`]).
pub fn body(config: &GeminiConfig, name: &str, request: &ChatRequest) -> Value {
    let mut contents = Contents::default();
    for turn in turns(&request.messages, name, &RULES) {
        match turn {
            Turn::User(text) => contents.add("user", vec![json!({ "text": text })]),
            Turn::Model(turn) => {
                contents.add("model", model_parts(&turn));
                contents.add("user", turn.calls().map(|call| function_response(call, turn.own)).collect());
            }
        }
    }
    let mut body = json!({});
    // What changes least comes first: the provider keeps what requests have in common at their beginning.
    if !request.tools.is_empty() {
        body["tools"] = json!([{ "functionDeclarations": *request.tools }]);
    }
    if !request.system.is_empty() {
        body["systemInstruction"] = json!({ "parts": [{ "text": *request.system }], "role": "user" });
    }
    body["contents"] = contents.0.into();
    if !request.tools.is_empty() {
        let mode = match request.tool_use {
            ToolUse::Allowed => "AUTO",
            ToolUse::Off => "NONE",
        };
        body["toolConfig"] = json!({ "functionCallingConfig": { "mode": mode } });
    }
    let generation = generation_config(config);
    if !generation.is_empty() {
        body["generationConfig"] = Value::Object(generation);
    }
    body
}

/// Contents by role; neighbours of the same role become one, with the order of their parts kept.
#[derive(Default)]
struct Contents(Vec<Value>);

impl Contents {
    fn add(&mut self, role: &str, parts: Vec<Value>) {
        if parts.is_empty() {
            return;
        }
        if let Some(last) = self.0.last_mut().filter(|last| last["role"] == role)
            && let Some(present) = last["parts"].as_array_mut()
        {
            present.extend(parts);
            return;
        }
        self.0.push(json!({ "role": role, "parts": parts }));
    }
}

fn model_parts(turn: &ModelTurn<'_>) -> Vec<Value> {
    let mut needs_signature = !turn.own && !turn.answered;
    let mut parts = Vec::new();
    for piece in &turn.parts {
        let Some(mut part) = model_part(piece, turn.own) else { continue };
        if needs_signature && matches!(piece.content, Content::Call(_)) {
            // Of calls that were made together, only the first has one.
            needs_signature = false;
            part["thoughtSignature"] = NO_SIGNATURE.into();
        }
        parts.push(part);
    }
    parts
}

/// A part as it arrived: our content, put back among the members that only Gemini knows.
fn model_part(piece: &Piece<'_>, own: bool) -> Option<Value> {
    let mut part = match piece.state {
        Some(Value::Object(state)) => state.clone(),
        _ => Map::new(),
    };
    match &piece.content {
        Content::Text("") if part.is_empty() => return None,
        Content::Text(text) => {
            part.insert("text".to_owned(), (*text).into());
        }
        Content::Thought(text) if own => {
            part.insert("text".to_owned(), (*text).into());
            part.insert("thought".to_owned(), true.into());
        }
        // A summary of what another model thought would be taken for what this one thought.
        Content::Thought(_) => return None,
        Content::Call(call) => {
            let mut function_call = match part.remove("functionCall") {
                Some(Value::Object(unknown)) => unknown,
                _ => Map::new(),
            };
            if let Some(id) = call.provider_id(own) {
                function_call.insert("id".to_owned(), id.into());
            }
            function_call.insert("name".to_owned(), (*call.name).into());
            function_call.insert("args".to_owned(), call.arguments());
            part.insert("functionCall".to_owned(), function_call.into());
        }
        Content::Opaque if part.is_empty() => return None,
        Content::Opaque => {}
    }
    Some(part.into())
}

fn function_response(call: &SentCall<'_>, own: bool) -> Value {
    let mut response = json!({ "name": *call.name, "response": call.envelope() });
    if let Some(id) = call.provider_id(own) {
        response["id"] = id.into();
    }
    json!({ "functionResponse": response })
}

fn generation_config(config: &GeminiConfig) -> Map<String, Value> {
    let mut generation = Map::new();
    if let Some(temperature) = config.temperature {
        generation.insert("temperature".to_owned(), temperature.into());
    }
    if let Some(most) = config.max_output_tokens {
        generation.insert("maxOutputTokens".to_owned(), most.into());
    }
    let mut thinking = Map::new();
    if let Some(level) = &config.thinking_level {
        thinking.insert("thinkingLevel".to_owned(), level.as_str().into());
    }
    if config.include_thoughts {
        thinking.insert("includeThoughts".to_owned(), true.into());
    }
    if !thinking.is_empty() {
        generation.insert("thinkingConfig".to_owned(), thinking.into());
    }
    generation
}
