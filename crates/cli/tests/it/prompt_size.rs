//! What the shipped tools cost a model in every request, by our own estimate of four characters to a token. For prompts
//! like these it is within two per cent of the o200k tokenizer.

use quarterdeck_contracts::estimate_tokens;
use serde_json::{Value, json};

use crate::provider::scripted_provider;
use crate::serve::{Server, command};

fn call(id: &str, name: &str, arguments: &Value) -> Value {
    let function = json!({ "name": name, "arguments": arguments.to_string() });
    json!({ "tool_calls": [{ "index": 0, "id": id, "type": "function", "function": function }] })
}

/// The texts of a request: what its messages say and what it declares, without the JSON around the messages.
fn input_tokens(body: &str) -> usize {
    let body: Value = serde_json::from_str(body).unwrap();
    let messages = body["messages"].as_array().unwrap().iter();
    let said = messages.map(|message| {
        let content = message["content"].as_str().map_or(0, |text| text.chars().count());
        content + message.get("tool_calls").map_or(0, |calls| calls.to_string().len())
    });
    estimate_tokens(said.sum::<usize>() + body["tools"].to_string().len())
}

#[test]
fn a_question_with_a_search_and_a_fetch_costs_at_most_twenty_thousand_input_tokens() {
    let provider = scripted_provider(vec![
        call("call_0123456789_1", "kb_search", &json!({ "query": "What is Framheim?" })),
        call("call_0123456789_2", "kb_get", &json!({ "id": "doc:framheim" })),
        json!({ "content": "The base of the South Pole expedition. [doc:framheim]" }),
    ]);
    let data = tempfile::tempdir().unwrap();
    let mut command = command(data.path(), "127.0.0.1:0");
    command
        .env("OPENAI_BASE_URL", format!("http://{}/v1", provider.address))
        .env("QUARTERDECK_TEXT__MODEL", "model");
    let server = Server::begin(&mut command);
    let (status, _, answer) = server.ask("POST", "/api/chat", "", r#"{ "message": "What is Framheim?" }"#);
    assert!(status == 200 && answer.contains("stood on the ice shelf"), "the record was fetched: {answer}");

    let requests: Vec<String> = (0..3).map(|_| provider.bodies.recv().unwrap()).collect();
    let tokens: Vec<usize> = requests.iter().map(|body| input_tokens(body)).collect();
    assert!(tokens.iter().sum::<usize>() <= 20_000, "{tokens:?}");
    let (_, metrics) = server.get("/metrics");
    let context = &serde_json::from_str::<Value>(&metrics).unwrap()["context"];
    assert!(context["systemPromptTokens"].as_u64().unwrap() <= 4_500, "{context}");
    assert!(context["toolDeclTokens"].as_u64().unwrap() <= 3_500, "{context}");
    assert!(requests[0].contains("<tool id=\\\"kb_search\\\" category"), "the guides are there in full");
    assert!(!requests[0].contains("describe_tool"), "none is left out");
}
