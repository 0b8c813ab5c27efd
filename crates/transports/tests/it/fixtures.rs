//! What the tests of this crate share: streams read without a network, and conversations.

use std::collections::VecDeque;
use std::sync::Arc;

use quarterdeck_contracts::{
    CallArguments, CallResult, ChatEvent, ChatMessage, ChatRequest, ErrorType, HandlerAnswer, Meta,
    ModelCall, ModelMessage, ModelPart, ModelReply, PartContent, ToolError, ToolResponse, ToolUse,
};
use quarterdeck_transports::anthropic::AnthropicReply;
use quarterdeck_transports::gemini::GeminiReply;
use quarterdeck_transports::openai::OpenAiReply;
use quarterdeck_transports::{Accumulator, Fault, Progress, Reader};
use serde_json::{Value, json};

/// Everything that was handed on, and how it ended.
pub(crate) type ReadReply = (Vec<ChatEvent>, Result<ModelReply, Fault>);

/// Reads a stream of one of the three, which all call themselves by the provider's name and `m`.
pub(crate) fn read<'a>(provider: &str, chunks: impl IntoIterator<Item = &'a [u8]>) -> ReadReply {
    match provider {
        "gemini" => read_by(GeminiReply::new("gemini/m"), chunks),
        "openai" => read_by(OpenAiReply::new("openai/m"), chunks),
        "anthropic" => read_by(AnthropicReply::new("anthropic/m"), chunks),
        other => panic!("no provider {other}"),
    }
}

fn read_by<'a>(accumulator: impl Accumulator, chunks: impl IntoIterator<Item = &'a [u8]>) -> ReadReply {
    let (mut reader, mut out) = (Reader::new(accumulator, 4 << 20), VecDeque::new());
    for chunk in chunks {
        match reader.feed(chunk, &mut out) {
            Ok(Progress::Ended) => return (out.into(), reader.finish()),
            Ok(_) => {}
            Err(fault) => return (out.into(), Err(fault)),
        }
    }
    match reader.end(&mut out) {
        Ok(()) => (out.into(), reader.finish()),
        Err(fault) => (out.into(), Err(fault)),
    }
}

pub(crate) fn user(text: &str) -> ChatMessage {
    ChatMessage::User { text: text.to_owned() }
}

pub(crate) fn model(by: &str, parts: Vec<ModelPart>) -> ChatMessage {
    ChatMessage::Model(ModelMessage { by: by.to_owned(), parts })
}

pub(crate) fn text(text: &str) -> ModelPart {
    ModelPart::new(PartContent::Text(text.to_owned()))
}

pub(crate) fn call(id: Option<&str>, name: &str, arguments: Value) -> ModelPart {
    call_with(id, name, CallArguments::Json(arguments))
}

pub(crate) fn call_with(id: Option<&str>, name: &str, arguments: CallArguments) -> ModelPart {
    let id = id.map(str::to_owned);
    ModelPart::new(PartContent::Call(ModelCall { id, name: name.to_owned(), arguments }))
}

pub(crate) fn with_state(part: ModelPart, state: Value) -> ModelPart {
    ModelPart { state: Some(state), ..part }
}

pub(crate) fn results(results: Vec<CallResult>) -> ChatMessage {
    ChatMessage::Tools { results }
}

pub(crate) fn success(id: Option<&str>, name: &str, data: Value) -> CallResult {
    result(id, name, HandlerAnswer::success(data))
}

pub(crate) fn failure(id: Option<&str>, name: &str, message: &str) -> CallResult {
    result(id, name, HandlerAnswer::failure(ToolError::new(ErrorType::Internal, message)))
}

fn result(id: Option<&str>, name: &str, answer: HandlerAnswer) -> CallResult {
    CallResult {
        id: id.map(str::to_owned),
        name: name.to_owned(),
        response: Arc::new(answer.stamp(meta(name))),
    }
}

fn meta(name: &str) -> Meta {
    let meta = json!({
        "toolId": name, "toolVersion": "1.0.0", "registryVersion": "r1", "responseSchemaVersion": "1",
        "duration": 3, "timestamp": "2026-11-15T09:00:00Z",
    });
    serde_json::from_value::<ToolResponse>(json!({ "ok": true, "data": null, "meta": meta })).unwrap().meta
}

pub(crate) fn request(system: &str, messages: Vec<ChatMessage>, tools: Vec<Value>) -> ChatRequest {
    ChatRequest {
        system: system.into(),
        messages,
        tools: tools.into(),
        tool_use: ToolUse::Allowed,
        span: None,
    }
}
