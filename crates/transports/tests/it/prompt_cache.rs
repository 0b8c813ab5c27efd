//! What providers can keep of a request: a beginning that stays the same, the marks that Anthropic wants, and how much of
//! it was found again.

use quarterdeck_contracts::{ChatMessage, ChatRequest, SITUATION_HEADING, Usage};
use quarterdeck_transports::{AnthropicConfig, GeminiConfig, OpenAiConfig, anthropic, gemini, openai};
use serde_json::{Value, json};

use crate::fixtures::{call, model, read, request, results, success, text, user};

const PROVIDERS: [&str; 3] = ["anthropic", "gemini", "openai"];

fn body(provider: &str, request: &ChatRequest) -> Value {
    match provider {
        "anthropic" => anthropic::body(&AnthropicConfig::new("k"), "anthropic/m", request),
        "gemini" => gemini::body(&GeminiConfig::new("k"), "gemini/m", request),
        _ => openai::body(&OpenAiConfig::new("k", "m"), "openai/m", request),
    }
}

fn tools() -> Vec<Value> {
    vec![json!({ "name": "tide" }), json!({ "name": "book" })]
}

fn system(situation: &str) -> String {
    format!("You are a harbour master.\n\n## Now\n\nis what you say.{SITUATION_HEADING}{situation}")
}

fn first_turn(provider: &str) -> Vec<ChatMessage> {
    let by = format!("{provider}/m");
    vec![
        user("Is there a berth?"),
        model(&by, vec![text("I look."), call(Some("c1"), "tide", json!({}))]),
        results(vec![success(Some("c1"), "tide", json!({ "m": 1 }))]),
        model(&by, vec![text("Yes.")]),
    ]
}

/// The body as it is sent. Marks are no content: a provider finds again what was kept under another one.
fn sent(mut body: Value) -> String {
    for message in body["messages"].as_array_mut().into_iter().flatten() {
        for block in message["content"].as_array_mut().into_iter().flatten() {
            block.as_object_mut().unwrap().shift_remove("cache_control");
        }
    }
    body.to_string()
}

#[test]
fn the_next_turn_begins_with_the_bytes_of_the_one_before() {
    for provider in PROVIDERS {
        let mut messages = first_turn(provider);
        let before = sent(body(provider, &request(&system("Today."), messages.clone(), tools())));
        messages.push(user("Book it."));
        let after = sent(body(provider, &request(&system("Today."), messages, tools())));
        let last = "Yes.";
        let shared = &before[..before.rfind(last).unwrap() + last.len()];
        assert!(after.starts_with(shared), "{provider}:\n{shared}\n{after}");
    }
}

#[test]
fn conversations_begin_with_the_same_bytes_up_to_the_situation() {
    for provider in PROVIDERS {
        let of = |situation: &str, words: &str| {
            sent(body(provider, &request(&system(situation), vec![user(words)], tools())))
        };
        let (ann, bob) = (of("Today is Monday.", "Hello"), of("Today is Tuesday.", "A berth?"));
        let differs = ann.bytes().zip(bob.bytes()).position(|(a, b)| a != b).unwrap();
        let situation = ann.find("Today is ").unwrap();
        assert!(differs >= situation, "{provider}: {} | {}", &ann[..differs], &bob[differs..]);
        assert!(
            ann[..situation].contains("harbour master") && ann[..situation].contains("\"book\""),
            "{ann}"
        );
    }
}

fn marked(body: &Value, pointer: &str) -> bool {
    body.pointer(pointer).unwrap_or_else(|| panic!("{pointer} in {body:#}")).get("cache_control")
        == Some(&json!({ "type": "ephemeral" }))
}

#[test]
fn anthropic_is_asked_to_keep_tools_shared_instruction_and_conversation() {
    let mut messages = first_turn("anthropic");
    messages.push(user("Book it."));
    let asked = request(&system("Today."), messages, tools());
    let body = body("anthropic", &asked);
    for place in ["/tools/1", "/system/0", "/messages/2/content/0", "/messages/4/content/0"] {
        assert!(marked(&body, place), "{place} in {body:#}");
    }
    assert_eq!(body.to_string().matches("cache_control").count(), 4, "four are allowed: {body:#}");
    let texts: Vec<_> = body["system"].as_array().unwrap().iter().map(|block| &block["text"]).collect();
    assert_eq!(texts[0], "You are a harbour master.\n\n## Now\n\nis what you say.");
    assert_eq!(texts[1], &json!(format!("{SITUATION_HEADING}Today.")));
}

#[test]
fn anthropic_is_sent_plain_texts_where_it_shall_not_keep_them() {
    let config = AnthropicConfig { prompt_cache: false, ..AnthropicConfig::new("k") };
    let asked = request(&system("Today."), vec![user("Hello")], tools());
    let body = anthropic::body(&config, "anthropic/m", &asked);
    assert_eq!(body["system"], *system("Today."));
    assert!(!body.to_string().contains("cache_control"), "{body:#}");
}

#[test]
fn an_instruction_without_a_situation_is_one_block() {
    let body = body("anthropic", &request("You are terse.", vec![user("Hello")], Vec::new()));
    let expected =
        json!([{ "type": "text", "text": "You are terse.", "cache_control": { "type": "ephemeral" } }]);
    assert_eq!(body["system"], expected);
    assert_eq!(body.get("tools"), None);
}

fn usage(provider: &str, stream: &str) -> Usage {
    read(provider, [stream.as_bytes()]).1.unwrap().usage
}

#[test]
fn what_came_from_the_cache_is_counted_for_every_provider() {
    let openai = "data: {\"choices\":[{\"index\":0,\"delta\":{\"content\":\"Hi\"},\"finish_reason\":\"stop\"}]}\n\n\
        data: {\"choices\":[],\"usage\":{\"prompt_tokens\":900,\"completion_tokens\":5,\
        \"prompt_tokens_details\":{\"cached_tokens\":768}}}\n\ndata: [DONE]\n\n";
    let expected = Usage { cached_tokens: 768, ..Usage::new(900, 5) };
    assert_eq!((usage("openai", openai), expected.uncached_tokens()), (expected, 132));
    let gemini = "data: {\"candidates\":[{\"content\":{\"parts\":[{\"text\":\"Hi\"}]},\"finishReason\":\"STOP\"}],\
        \"usageMetadata\":{\"promptTokenCount\":900,\"candidatesTokenCount\":5,\"cachedContentTokenCount\":700}}\n\n";
    assert_eq!(usage("gemini", gemini), Usage { cached_tokens: 700, ..Usage::new(900, 5) });
    let anthropic = "event: message_start\ndata: {\"type\":\"message_start\",\"message\":{\"usage\":{\"input_tokens\":100,\
        \"cache_read_input_tokens\":700,\"cache_creation_input_tokens\":50,\"output_tokens\":1}}}\n\n\
        event: message_delta\ndata: {\"type\":\"message_delta\",\"delta\":{\"stop_reason\":\"end_turn\"},\
        \"usage\":{\"output_tokens\":5}}\n\nevent: message_stop\ndata: {\"type\":\"message_stop\"}\n\n";
    let expected = Usage { cached_tokens: 700, cache_write_tokens: 50, ..Usage::new(850, 5) };
    assert_eq!((usage("anthropic", anthropic), expected.uncached_tokens()), (expected, 150));
}

#[test]
fn a_provider_that_counts_more_as_cached_than_was_sent_does_no_harm() {
    assert_eq!(Usage { cached_tokens: 9, ..Usage::new(3, 1) }.uncached_tokens(), 0);
}
