//! What servers say when they refuse a schema, and what is left out then.

use serde_json::json;

use super::*;

fn tools() -> Vec<Value> {
    let tool = |name: &str, property: Value| {
        let parameters = json!({ "type": "object", "properties": { "pattern": property } });
        json!({ "type": "function", "function": { "name": name, "parameters": parameters } })
    };
    vec![
        tool("tide", json!({ "type": "string", "pattern": "^person:" })),
        tool("mark_buoy", json!({ "type": "string", "format": "uri", "maxLength": 9 })),
    ]
}

fn rejected(detail: &str) -> ChatError {
    ChatError {
        kind: ChatErrorKind::Rejected,
        model: "m".into(),
        detail: detail.into(),
        retry_after: None,
        context: None,
    }
}

fn keyword(keyword: &'static str, tool: Option<&str>) -> Removal {
    Removal::Keyword { keyword, tool: tool.map(str::to_owned) }
}

/// The bodies in `tests/golden/openai/refused` are what llama.cpp's server answered to schemas of ours.
#[test]
fn what_a_server_names_is_left_out() {
    let llama = |body: &str| {
        let body: Value = serde_json::from_str(body).unwrap();
        body["error"]["message"].as_str().unwrap().to_owned()
    };
    let pattern = llama(include_str!("../../../tests/golden/openai/refused/llama-pattern.json"));
    let unrecognised = llama(include_str!("../../../tests/golden/openai/refused/llama-unrecognised.json"));
    for (words, expected) in [
        (pattern.as_str(), vec![keyword("pattern", None)]),
        (
            unrecognised.as_str(),
            vec![keyword("pattern", None), keyword("format", None), keyword("maxLength", None)],
        ),
        ("Grammar error: Unknown format: uri", vec![keyword("format", None)]),
        (
            "Failed to initialize samplers: failed to parse grammar",
            vec![keyword("pattern", None), keyword("format", None), keyword("maxLength", None)],
        ),
        (
            "Invalid schema for function 'mark_buoy': 'maxLength' is not permitted",
            vec![keyword("maxLength", Some("mark_buoy"))],
        ),
        (
            "Invalid schema for function 'tide': array schema missing items",
            vec![Removal::Tool("tide".into())],
        ),
        ("tools[1].function.parameters: no", vec![Removal::Tool("mark_buoy".into())]),
        (
            "json: cannot unmarshal bool into Go struct field .tools.1.function",
            vec![Removal::Tool("mark_buoy".into())],
        ),
    ] {
        assert_eq!(Learnt::default().learn(&rejected(words), &tools()), expected, "{words}");
    }
}

#[test]
fn a_refusal_for_another_reason_teaches_nothing() {
    let learnt = Learnt::default();
    for words in ["model not found", "the schema says uniqueItems", "tools[9].function", ""] {
        let words = words.replace("the schema says uniqueItems", "unknown parameter stream_options");
        assert_eq!(learnt.learn(&rejected(&words), &tools()), [], "{words}");
    }
    let limited = ChatError { kind: ChatErrorKind::RateLimited, ..rejected("pattern in a schema") };
    assert_eq!(learnt.learn(&limited, &tools()), []);
    assert_eq!(learnt.apply(&tools()), tools());
}

#[test]
fn a_model_that_takes_tools_only_without_thinking_is_not_asked_to_think() {
    let words = "Function tools with reasoning_effort are not supported for m in /v1/chat/completions. To use function \
                 tools, use /v1/responses or set reasoning_effort to 'none'.";
    let learnt = Learnt::default();
    assert_eq!(learnt.learn(&rejected(words), &tools()), [Removal::Reasoning]);
    assert!(learnt.has(&Removal::Reasoning) && learnt.apply(&tools()) == tools());
    assert_eq!(learnt.learn(&rejected(words), &tools()), [], "the second time it was something else");
}

#[test]
fn the_log_can_name_the_tools_that_change() {
    assert_eq!(keyword("pattern", None).tools(&tools()), ["tide"]);
    assert_eq!(keyword("maxLength", Some("mark_buoy")).tools(&tools()), ["mark_buoy"]);
    assert_eq!(Removal::Tool("tide".into()).tools(&tools()), ["tide"]);
}

#[test]
fn a_property_that_is_named_like_a_keyword_stays() {
    let learnt = Learnt::default();
    assert_eq!(learnt.learn(&rejected("Pattern must start with '^'"), &tools()).len(), 1);
    let left = learnt.apply(&tools());
    assert_eq!(left[0]["function"]["parameters"]["properties"], json!({ "pattern": { "type": "string" } }));
    assert_eq!(left[1], tools()[1]);
    // The same words again name nothing that is still there.
    assert_eq!(learnt.learn(&rejected("Pattern must start with '^'"), &tools()), []);
}
