//! The streams that were fed to the official clients, and what those made of them. What we make of a stream is sent
//! back as history and compared there, so that nothing a provider wants again can be lost on the way.
//!
//! Skipped, with a word, where the recordings are not on the machine.

use std::path::Path;

use quarterdeck_contracts::{CallArguments, ChatErrorKind, ChatMessage, Finish, ModelReply, Usage};
use quarterdeck_testkit::corpus;
use quarterdeck_transports::{AnthropicConfig, GeminiConfig, OpenAiConfig, anthropic, gemini, openai};
use serde_json::{Map, Value, json};

use crate::fixtures::{ReadReply, read, request, user};

fn json_file(path: &Path) -> Value {
    serde_json::from_slice(&std::fs::read(path).unwrap()).unwrap()
}

fn stream(folder: &Path, name: &str, provider: &str) -> ReadReply {
    read(provider, [&std::fs::read(folder.join(name)).unwrap()[..]])
}

fn history(reply: &ModelReply) -> quarterdeck_contracts::ChatRequest {
    request("", vec![user("?"), ChatMessage::Model(reply.message.clone())], Vec::new())
}

fn usage(input_tokens: u64, output_tokens: u64) -> Usage {
    Usage::new(input_tokens, output_tokens)
}

/// The assistant's message as it goes back, with arguments as JSON: clients differ in their spaces.
fn openai_message(reply: &ModelReply) -> Value {
    let body = openai::body(&OpenAiConfig::new("k", "m"), "openai/m", &history(reply));
    comparable(body["messages"][1].clone())
}

fn comparable(mut message: Value) -> Value {
    let members = message.as_object_mut().unwrap();
    // The client's own additions; and a refusal is text to us.
    members.remove("parsed");
    let refusal = members.remove("refusal");
    if let Some(refusal) = refusal.filter(|refusal| !refusal.is_null()) {
        members.insert("content".to_owned(), refusal);
    }
    for call in message["tool_calls"].as_array_mut().into_iter().flatten() {
        let function = call["function"].as_object_mut().unwrap();
        function.remove("parsed_arguments");
        let text = function["arguments"].as_str().unwrap();
        function["arguments"] = if text.is_empty() { json!({}) } else { serde_json::from_str(text).unwrap() };
    }
    sorted(message)
}

/// Equal objects may have their members in any order, but a list has one.
fn sorted(value: Value) -> Value {
    match value {
        Value::Object(members) => {
            let mut members: Vec<_> = members.into_iter().map(|(key, value)| (key, sorted(value))).collect();
            members.sort_by(|a, b| a.0.cmp(&b.0));
            Value::Object(members.into_iter().collect::<Map<_, _>>())
        }
        Value::Array(values) => values.into_iter().map(sorted).collect(),
        other => other,
    }
}

#[test]
fn chat_completions_come_to_what_the_official_client_makes_of_them() {
    let Some(folder) = corpus("wire/openai-chat") else { return };
    for name in ["response-text", "response-two-tool-calls"] {
        let reply = stream(&folder, &format!("{name}.sse"), "openai").1.unwrap();
        let theirs = json_file(&folder.join(format!("{name}.sdk-final.json")));
        assert_eq!(openai_message(&reply), comparable(theirs["choices"][0]["message"].clone()), "{name}");
        assert_eq!((reply.finish, reply.usage), (Finish::Stop, usage(82, 34)), "{name}");
    }
    let (events, end) = stream(&folder, "response-error-mid-stream.sse", "openai");
    assert_eq!((events.len(), end.unwrap_err().kind), (1, ChatErrorKind::Overloaded));
}

#[test]
fn variants_of_chat_completions_come_to_the_same_and_a_cut_call_to_a_broken_one() {
    let Some(folder) = corpus("wire/openai-chat") else { return };
    let variants = json_file(&folder.join("stream-variants.json"));
    for (name, variant) in variants.as_object().unwrap() {
        let reply = read("openai", [variant["sse"].as_str().unwrap().as_bytes()]).1.unwrap();
        if name == "length-cut" {
            // The client hands out the half text as if it were whole. We say that the call must not run.
            let arguments: Vec<_> = reply.message.calls().map(|call| call.arguments.clone()).collect();
            assert_eq!(arguments, [CallArguments::Broken("{\"tz".to_owned())]);
            assert_eq!(reply.finish, Finish::Length);
            continue;
        }
        assert_eq!(openai_message(&reply), comparable(variant["sdk"]["message"].clone()), "{name}");
        assert_eq!(reply.finish, Finish::Stop, "{name}");
    }
}

fn anthropic_content(reply: &ModelReply) -> Value {
    let body = anthropic::body(&AnthropicConfig::new("k"), "anthropic/m", &history(reply));
    sorted(body["messages"][1]["content"].clone())
}

#[test]
fn messages_come_to_what_the_official_client_makes_of_them() {
    let Some(folder) = corpus("wire/anthropic-messages") else { return };
    for (name, tokens) in [
        ("response-text", usage(200, 5)),
        ("response-thinking-then-tool", usage(120, 60)),
        ("response-two-tool-uses", usage(120, 60)),
    ] {
        let reply = stream(&folder, &format!("{name}.sse"), "anthropic").1.unwrap();
        let theirs = json_file(&folder.join(format!("{name}.sdk-final.json")));
        assert_eq!(anthropic_content(&reply), sorted(theirs["content"].clone()), "{name}");
        assert_eq!((reply.finish, reply.usage), (Finish::Stop, tokens), "{name}");
    }
    let (events, end) = stream(&folder, "response-error-mid-stream.sse", "anthropic");
    assert_eq!((events.len(), end.unwrap_err().kind), (1, ChatErrorKind::Overloaded));
}

#[test]
fn variants_of_messages_come_to_the_same_and_broken_arguments_are_never_taken_for_none() {
    let Some(folder) = corpus("wire/anthropic-messages") else { return };
    let variants = json_file(&folder.join("stream-variants.json"));
    for (name, variant) in variants.as_object().unwrap() {
        let end = read("anthropic", [variant["sse"].as_str().unwrap().as_bytes()]).1;
        // The client makes `{}` of arguments that it cannot read, and the call would be executed.
        let broken = match name.as_str() {
            "bad-json-args" => Some("{\"city\": Oslo}"),
            "max-tokens-cuts-args" => Some("{\"city\": \"Os"),
            "no-message-stop" => {
                assert_eq!(end.unwrap_err().kind, ChatErrorKind::Cut);
                continue;
            }
            _ => None,
        };
        let reply = end.unwrap();
        match broken {
            Some(text) => {
                let arguments: Vec<_> = reply.message.calls().map(|call| call.arguments.clone()).collect();
                assert_eq!(arguments, [CallArguments::Broken(text.to_owned())], "{name}");
            }
            None => {
                assert_eq!(anthropic_content(&reply), sorted(variant["sdk"]["content"].clone()), "{name}")
            }
        }
        let is_cut = variant["sdk"]["stop_reason"] == "max_tokens";
        assert_eq!(reply.finish, if is_cut { Finish::Length } else { Finish::Stop }, "{name}");
    }
}

fn gemini_parts(reply: &ModelReply) -> Value {
    let body = gemini::body(&GeminiConfig::new("k"), "gemini/m", &history(reply));
    sorted(body["contents"][1]["parts"].clone())
}

/// The parts of all chunks, with plain text joined as we join it: a part with a signature stays on its own.
pub(crate) fn joined(parts: impl IntoIterator<Item = Value>) -> Value {
    let plain = |part: &Value| {
        part.as_object().is_some_and(|part| part.keys().all(|key| key == "text" || key == "thought"))
    };
    let mut all: Vec<Value> = Vec::new();
    for part in parts {
        if plain(&part)
            && let Some(last) =
                all.last_mut().filter(|last| plain(last) && last["thought"] == part["thought"])
        {
            last["text"] =
                format!("{}{}", last["text"].as_str().unwrap(), part["text"].as_str().unwrap()).into();
        } else if part != json!({ "text": "" }) {
            all.push(part);
        }
    }
    sorted(all.into())
}

#[test]
fn gemini_streams_come_to_what_the_official_client_makes_of_them() {
    let Some(folder) = corpus("wire/gemini-rest") else { return };
    for (name, tokens) in
        [("response-parallel-calls", usage(90, 70)), ("response-text-final-signature", usage(200, 12))]
    {
        let reply = stream(&folder, &format!("{name}.sse"), "gemini").1.unwrap();
        let chunks = json_file(&folder.join(format!("{name}.sdk-chunks.json")));
        let chunks = chunks.as_array().unwrap().iter();
        let parts =
            chunks.flat_map(|chunk| chunk["candidates"][0]["content"]["parts"].as_array().unwrap().clone());
        assert_eq!(gemini_parts(&reply), joined(parts), "{name}");
        assert_eq!((reply.finish, reply.usage), (Finish::Stop, tokens), "{name}");
    }
}

#[test]
fn gemini_reports_reasons_that_the_official_client_hides() {
    let Some(folder) = corpus("wire/gemini-rest") else { return };
    let (events, end) = stream(&folder, "response-error-mid-stream.sse", "gemini");
    assert_eq!((events.len(), end.unwrap_err().kind), (1, ChatErrorKind::Overloaded));
    let blocked = stream(&folder, "response-prompt-blocked.sse", "gemini").1.unwrap_err();
    assert_eq!(blocked.kind, ChatErrorKind::Refused);
    let malformed = stream(&folder, "response-malformed-call.sse", "gemini").1.unwrap();
    let explained = "MALFORMED_FUNCTION_CALL: Malformed function call: get_weather(";
    assert_eq!(malformed.finish, Finish::Other(explained.to_owned()));
    // The client would ask for the rest; we say that the answer is as long as it gets.
    let turn_taking = json_file(&folder.join("continuation-exchange.json"));
    let first = read("gemini", [turn_taking["response_1_sse"].as_str().unwrap().as_bytes()]).1.unwrap();
    assert_eq!((first.message.text(), first.finish), ("part one still one ".to_owned(), Finish::Length));
}
