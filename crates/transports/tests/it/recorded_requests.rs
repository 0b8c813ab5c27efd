//! Requests beside those that the official clients were recorded to send.
//!
//! A recording's own tool results are not envelopes, and its settings are its own: what is compared is everything else,
//! and each difference is made here, where it can be seen. Skipped, with a word, where the recordings are not on the
//! machine.

use std::path::PathBuf;

use quarterdeck_contracts::{ChatMessage, ChatRequest, ModelPart, PartContent, ToolUse};
use quarterdeck_testkit::corpus;
use quarterdeck_transports::anthropic::Thinking;
use quarterdeck_transports::openai::SystemRole;
use quarterdeck_transports::{AnthropicConfig, GeminiConfig, OpenAiConfig, anthropic, gemini, openai};
use serde_json::{Value, json};

use crate::fixtures::{call, failure, model, request, results, success, text, user, with_state};
use crate::recorded_streams::joined;

struct Recorded(PathBuf);

impl Recorded {
    fn in_folder(name: &str) -> Option<Self> {
        corpus(&format!("wire/{name}")).map(Self)
    }

    /// A body, be it alone in its file or with the rest of the request.
    fn body(&self, name: &str) -> Value {
        let bytes = std::fs::read(self.0.join(format!("request-{name}.json"))).unwrap();
        let mut file: Value = serde_json::from_slice(&bytes).unwrap();
        match file.get_mut("body") {
            Some(body) => body.take(),
            None => file,
        }
    }
}

fn tools(body: &Value, pointer: &str) -> Vec<Value> {
    body.pointer(pointer).unwrap().as_array().unwrap().clone()
}

fn off(request: ChatRequest) -> ChatRequest {
    ChatRequest { tool_use: ToolUse::Off, ..request }
}

fn openai_body(request: &ChatRequest) -> Value {
    openai::body(&OpenAiConfig::new("k", "gpt-model"), "openai/gpt-model", request)
}

/// What we leave at the server's default, which is the same.
fn without_defaults(mut body: Value) -> Value {
    let members = body.as_object_mut().unwrap();
    members.remove("parallel_tool_calls");
    if let Some(choice) = members.get_mut("tool_choice").and_then(Value::as_object_mut) {
        choice.remove("disable_parallel_tool_use");
    }
    body
}

#[test]
fn chat_completions_are_asked_as_the_official_client_asks() {
    let Some(recorded) = Recorded::in_folder("openai-chat") else { return };
    let asked = || vec![user("Weather and time in Oslo?")];
    let theirs = recorded.body("stream-with-tools");
    let ours = request("You are terse.", asked(), tools(&theirs, "/tools"));
    assert_eq!(openai_body(&ours), without_defaults(theirs));
    assert_eq!(openai_body(&off(ours)), without_defaults(recorded.body("tool-choice-none")));

    let mut theirs = recorded.body("tool-results");
    let mut messages = asked();
    messages.push(model(
        "openai/gpt-model",
        vec![
            call(Some("call_A"), "get_weather", json!({"city": "Oslo", "unit": null})),
            call(Some("call_B"), "get_time", json!({"tz": "Europe/Oslo"})),
        ],
    ));
    messages.push(results(vec![
        success(Some("call_A"), "get_weather", json!({"temp_c": 7})),
        failure(Some("call_B"), "get_time", "13:05"),
    ]));
    let mut ours = openai_body(&request("You are terse.", messages, tools(&theirs, "/tools")));
    for at in [3, 4] {
        let envelope: Value =
            serde_json::from_str(ours["messages"][at]["content"].as_str().unwrap()).unwrap();
        assert_eq!(envelope["ok"], at == 3);
        for body in [&mut ours, &mut theirs] {
            body["messages"][at]["content"] = "<result>".into();
        }
    }
    assert_eq!(ours, without_defaults(theirs));
}

#[test]
fn a_compatible_server_is_asked_in_the_older_words() {
    let asked = request("You are terse.", vec![user("?")], Vec::new());
    let config =
        OpenAiConfig { include_usage: false, ..OpenAiConfig::compatible("http://localhost:11434/v1", "m") };
    assert_eq!(config.system_role, SystemRole::System);
    assert_eq!(
        openai::body(&config, "openai/m", &asked),
        json!({
            "model": "m",
            "messages": [{ "role": "system", "content": "You are terse." }, { "role": "user", "content": "?" }],
            "stream": true,
        })
    );
}

#[test]
fn messages_are_asked_as_the_official_client_asks() {
    let Some(recorded) = Recorded::in_folder("anthropic-messages") else { return };
    let config = AnthropicConfig {
        model: "claude-model".to_owned(),
        max_output_tokens: 1024,
        // The recorded client was not asked to.
        prompt_cache: false,
        ..AnthropicConfig::new("k")
    };
    let body = |request: &ChatRequest| {
        one_text_as_string(anthropic::body(&config, "anthropic/claude-model", request))
    };
    let asked = || vec![user("Weather in Oslo, then ping.")];
    let theirs = recorded.body("stream-with-tools");
    let ours = request("You are terse.", asked(), tools(&theirs, "/tools"));
    assert_eq!(body(&ours), without_defaults(theirs));
    let thinking = AnthropicConfig { thinking: Thinking::Adaptive, ..config.clone() };
    assert_eq!(
        one_text_as_string(anthropic::body(&thinking, "anthropic/claude-model", &ours)),
        without_defaults(recorded.body("thinking"))
    );
    assert_eq!(body(&off(ours)), recorded.body("tool-choice-none"));

    let mut theirs = recorded.body("tool-results");
    let mut messages = asked();
    messages.push(model(
        "anthropic/claude-model",
        vec![
            text("Checking both."),
            call(Some("toolu_01A"), "get_weather", json!({"city": "Oslo", "unit": "c"})),
            call(Some("toolu_01B"), "ping", json!({})),
        ],
    ));
    messages.push(results(vec![
        success(Some("toolu_01A"), "get_weather", json!({"temp_c": 7})),
        failure(Some("toolu_01B"), "ping", "upstream timeout"),
    ]));
    let mut ours = body(&request("You are terse.", messages, tools(&theirs, "/tools")));
    for at in [0, 1] {
        for body in [&mut ours, &mut theirs] {
            body["messages"][2]["content"][at]["content"] = "<result>".into();
        }
    }
    assert_eq!(ours, without_defaults(theirs));
}

/// A single text block is the same as a string, which the client's user wrote.
fn one_text_as_string(mut body: Value) -> Value {
    for message in body["messages"].as_array_mut().unwrap() {
        let text = match message["content"].as_array().map(Vec::as_slice) {
            Some([block]) if block["type"] == "text" => block["text"].clone(),
            _ => continue,
        };
        message["content"] = text;
    }
    body
}

#[test]
fn gemini_is_asked_as_the_official_client_asks() {
    let Some(recorded) = Recorded::in_folder("gemini-rest") else { return };
    let config = GeminiConfig {
        temperature: Some(0.2),
        max_output_tokens: Some(1024),
        thinking_level: Some("LOW".to_owned()),
        include_thoughts: true,
        ..GeminiConfig::new("k")
    };
    let body = |request: &ChatRequest| gemini::body(&config, "gemini/gemini-model", request);
    let declared = |body: &Value| tools(body, "/tools/0/functionDeclarations");
    let asked = user("Weather in Oslo and Rome?");

    let mut theirs = recorded.body("stream-with-tools");
    // The client was told to force a call, which we never do.
    theirs["toolConfig"] = json!({ "functionCallingConfig": { "mode": "AUTO" } });
    assert_eq!(body(&request("You are terse.", vec![asked.clone()], declared(&theirs))), theirs);

    let calls = || {
        let oslo = call(Some("fc_1"), "get_weather", json!({"city": "Oslo"}));
        let rome = call(Some("fc_2"), "get_weather", json!({"city": "Rome", "unit": "c"}));
        vec![with_state(oslo, json!({"thoughtSignature": "RU1QVFktU0lHTkFUVVJFLUE="})), rome]
    };
    let answered = || {
        results(vec![
            success(Some("fc_1"), "get_weather", json!({"temp_c": 7})),
            failure(Some("fc_2"), "get_weather", "upstream timeout"),
        ])
    };
    let by = "gemini/gemini-model";
    let mut theirs = recorded.body("function-responses");
    let mut ours = body(&request(
        "You are terse.",
        vec![asked.clone(), model(by, calls()), answered()],
        declared(&theirs),
    ));
    hide_responses(&mut ours, 2);
    hide_responses(&mut theirs, 2);
    assert_eq!(ours, theirs);

    // The client keeps a content for each chunk that came. Ours are one, with the order of their parts kept.
    let mut theirs = recorded.body("chat-second-turn");
    theirs["toolConfig"] = json!({ "functionCallingConfig": { "mode": "AUTO" } });
    let contents = theirs["contents"].as_array_mut().unwrap();
    let chunks: Vec<Value> = contents.splice(1..4, [Value::Null]).collect();
    let parts = joined(chunks.iter().flat_map(|content| content["parts"].as_array().unwrap().clone()));
    contents[1] = json!({ "role": "model", "parts": parts });
    let thought = ModelPart::new(PartContent::Thought("**Planning** two lookups".to_owned()));
    let said = ChatMessage::clone(&model(by, [vec![thought], calls()].concat()));
    let mut ours = body(&request("You are terse.", vec![asked, said, answered()], declared(&theirs)));
    hide_responses(&mut ours, 2);
    hide_responses(&mut theirs, 2);
    assert_eq!(ours, theirs);
}

fn hide_responses(body: &mut Value, at: usize) {
    for part in body["contents"][at]["parts"].as_array_mut().unwrap() {
        assert!(part["functionResponse"]["response"].is_object());
        part["functionResponse"]["response"] = json!({});
    }
}
