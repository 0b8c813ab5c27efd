//! One conversation, with all that can be odd about it, as each provider is sent it.

use expect_test::{ExpectFile, expect_file};
use quarterdeck_contracts::{CallArguments, ChatMessage, ChatRequest, ModelPart, PartContent};
use quarterdeck_transports::{AnthropicConfig, GeminiConfig, OpenAiConfig, anthropic, gemini, openai};
use serde_json::{Value, json};

use crate::fixtures::{call, call_with, failure, model, request, results, success, text, user, with_state};

/// Two questions in a row, another model's words with its state, calls without ids, with the same id twice, with
/// broken arguments and made-up names, an answer that was lost, an empty message.
fn conversation(own: &str, signed: Value) -> ChatRequest {
    let thought = ModelPart::new(PartContent::Thought("They want a berth.".to_owned()));
    let opaque = ModelPart {
        content: PartContent::Opaque,
        state: Some(json!({"type": "redacted_thinking", "data": "x"})),
    };
    let messages = vec![
        user("Good morning."),
        user("Is there a berth in Bergen?"),
        model(
            "other/model",
            vec![
                with_state(thought, json!({"signature": "theirs"})),
                opaque,
                with_state(text("I will look."), json!({"thoughtSignature": "theirs"})),
                with_state(
                    call(None, "find_berth", json!({"port": "Bergen"})),
                    json!({"extra_content": "theirs"}),
                ),
                call(Some("same"), "tide", json!({})),
                call(Some("same"), "tide", json!({"at": "noon"})),
            ],
        ),
        results(vec![
            success(None, "find_berth", json!({"berth": 4})),
            success(Some("same"), "tide", json!({"m": 1.2})),
            failure(Some("same"), "tide", "no such hour"),
        ]),
        model(own, vec![text("Berth 4 is free.")]),
        user("Book it, and tell the pilot."),
        model(own, vec![]),
        model(
            own,
            vec![
                with_state(call(Some("b-1"), "book", json!({"berth": 4})), signed),
                call_with(
                    Some("b-2"),
                    "functions.tell pilot",
                    CallArguments::Broken("{\"who\": pi".to_owned()),
                ),
                call(Some("b:3 é"), "book", json!([4])),
            ],
        ),
        results(vec![
            failure(Some("b-2"), "functions.tell pilot", "the arguments are no JSON"),
            success(Some("b-1"), "book", Value::Null),
        ]),
    ];
    request("You are a harbour master.", messages, vec![json!({ "name": "book" })])
}

fn check(body: Value, expected: ExpectFile) {
    expected.assert_eq(&format!("{}\n", serde_json::to_string_pretty(&body).unwrap()));
}

#[test]
fn gemini_is_sent_an_odd_conversation_in_a_form_that_it_accepts() {
    let request = conversation("gemini/m", json!({"thoughtSignature": "ours"}));
    let body = gemini::body(&GeminiConfig::new("k"), "gemini/m", &request);
    check(body, expect_file!["../golden/gemini/request.json"]);
}

#[test]
fn a_chat_completions_server_is_sent_an_odd_conversation_in_a_form_that_it_accepts() {
    let request =
        conversation("openai/m", json!({"extra_content": {"google": {"thought_signature": "ours"}}}));
    let body = openai::body(&OpenAiConfig::new("k", "m"), "openai/m", &request);
    check(body, expect_file!["../golden/openai/request.json"]);
}

#[test]
fn anthropic_is_sent_an_odd_conversation_in_a_form_that_it_accepts() {
    let request = conversation("anthropic/m", json!({"caller": {"type": "direct"}}));
    let body = anthropic::body(&AnthropicConfig::new("k"), "anthropic/m", &request);
    check(body, expect_file!["../golden/anthropic/request.json"]);
}

/// Gemini refuses an unsigned call of the present turn; of earlier turns it does not care.
#[test]
fn a_call_that_another_model_made_in_this_turn_carries_gemini_s_stand_in() {
    let foreign = || {
        let calls = vec![call(Some("a"), "tide", json!({})), call(Some("b"), "tide", json!({}))];
        vec![
            model("openai/m", calls),
            results(vec![success(Some("a"), "tide", json!(1)), success(Some("b"), "tide", json!(2))]),
        ]
    };
    let signatures = |messages: Vec<ChatMessage>| -> Vec<Value> {
        let body = gemini::body(&GeminiConfig::new("k"), "gemini/m", &request("", messages, Vec::new()));
        let parts = body["contents"][1]["parts"].as_array().unwrap().clone();
        parts.into_iter().map(|part| part["thoughtSignature"].clone()).collect()
    };
    let present = [vec![user("?")], foreign()].concat();
    assert_eq!(signatures(present.clone()), [json!("skip_thought_signature_validator"), Value::Null]);
    assert_eq!(signatures([present, vec![user("And?")]].concat()), [Value::Null, Value::Null]);
}

#[test]
fn a_confirmation_token_never_reaches_a_model() {
    let mut refused = failure(Some("a"), "book", "ask first");
    let mut response = (*refused.response).clone();
    let quarterdeck_contracts::Outcome::Failure(error) = &mut response.outcome else { panic!("it failed") };
    let asked =
        json!({"token": "tok-secret-1", "expires": 1, "tool": "book", "args": {}, "preview": "Book?"});
    error.confirmation_request = serde_json::from_value(asked).ok();
    assert!(error.confirmation_request.is_some());
    refused.response = response.into();
    let messages =
        vec![user("?"), model("x", vec![call(Some("a"), "book", json!({}))]), results(vec![refused])];
    let request = request("", messages, Vec::new());
    for body in [
        gemini::body(&GeminiConfig::new("k"), "gemini/m", &request),
        openai::body(&OpenAiConfig::new("k", "m"), "openai/m", &request),
        anthropic::body(&AnthropicConfig::new("k"), "anthropic/m", &request),
    ] {
        assert!(!body.to_string().contains("tok-secret-1") && body.to_string().contains("ask first"));
    }
}
