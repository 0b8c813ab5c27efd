//! How much a model may send.

use quarterdeck_contracts::{CallArguments, ChatErrorKind, MAX_CALLS_PER_MESSAGE, PartContent};
use serde_json::{Value, json};

use crate::fixtures::{ReadReply, read};

fn stream(provider: &str, events: impl IntoIterator<Item = Value>) -> ReadReply {
    let stream: String = events.into_iter().map(|event| format!("data: {event}\n\n")).collect();
    read(provider, [stream.as_bytes()])
}

/// One event for each call, then the end.
fn calls(provider: &str, count: usize) -> ReadReply {
    let call = |number: usize| match provider {
        "gemini" => json!({"candidates": [{"content": {"parts": [{"functionCall": {"name": "tide"}}]}}]}),
        "openai" => {
            json!({"choices": [{"delta": {"tool_calls": [{"index": number, "function": {"name": "tide"}}]}}]})
        }
        _ => {
            json!({"type": "content_block_start", "index": number, "content_block": {"type": "tool_use", "name": "tide"}})
        }
    };
    let end = match provider {
        "gemini" => json!({"candidates": [{"finishReason": "STOP"}]}),
        "openai" => json!({"choices": [{"finish_reason": "stop"}]}),
        _ => json!({"type": "message_stop"}),
    };
    stream(provider, (0..count).map(call).chain([end]))
}

#[test]
fn a_reply_makes_1024_calls_and_no_more() {
    for provider in ["gemini", "openai", "anthropic"] {
        assert_eq!(
            calls(provider, MAX_CALLS_PER_MESSAGE).1.unwrap().message.calls().count(),
            MAX_CALLS_PER_MESSAGE,
            "{provider}"
        );
        let fault = calls(provider, MAX_CALLS_PER_MESSAGE + 1).1.unwrap_err();
        assert_eq!((fault.kind, fault.is_retryable), (ChatErrorKind::Garbled, false), "{provider}");
    }
}

#[test]
fn a_reply_has_four_thousand_parts_and_not_many_more() {
    let part = json!({"candidates": [{"content": {"parts": [{"text": "a", "thoughtSignature": "b"}]}}]});
    assert_eq!(stream("gemini", vec![part; 5_000]).1.unwrap_err().kind, ChatErrorKind::Garbled);
    let block =
        json!({"type": "content_block_start", "index": 0, "content_block": {"type": "redacted_thinking"}});
    assert_eq!(stream("anthropic", vec![block; 5_000]).1.unwrap_err().kind, ChatErrorKind::Garbled);
}

#[test]
fn a_long_text_of_arguments_is_broken_and_its_rest_is_not_kept() {
    let piece = "x".repeat(300_000);
    let openai = (0..6).map(|_| {
        json!({"choices": [{"delta": {"tool_calls": [{"index": 0, "function": {"name": "tide", "arguments": piece}}]}}]})
    });
    let openai = stream("openai", openai.chain([json!({"choices": [{"finish_reason": "stop"}]})]));
    let start = json!({"type": "content_block_start", "index": 0, "content_block": {"type": "tool_use", "name": "tide"}});
    let delta = json!({"type": "content_block_delta", "index": 0, "delta": {"type": "input_json_delta", "partial_json": piece}});
    let anthropic = [vec![start], vec![delta; 6], vec![json!({"type": "message_stop"})]].concat();
    let args = json!({ "a": "x".repeat(1_100_000) });
    let gemini = json!({"candidates": [{"content": {"parts": [{"functionCall": {"name": "tide", "args": args}}]}, "finishReason": "STOP"}]});
    for (events, end) in [openai, stream("anthropic", anthropic), stream("gemini", [gemini])] {
        assert_eq!(events, []);
        let message = end.unwrap().message;
        let [CallArguments::Broken(text)] =
            message.calls().map(|call| &call.arguments).collect::<Vec<_>>()[..]
        else {
            panic!("one broken call")
        };
        assert!(text.len() < 5_000);
    }
}

#[test]
fn a_reply_has_a_largest_size_however_it_is_made_up() {
    let comment = [b':'; 1 << 20];
    let mut chunks = vec![&comment[..]; 65];
    let end = b"\ndata: {\"choices\": [{\"finish_reason\": \"stop\"}]}\n\n";
    chunks.push(end);
    let fault = read("openai", chunks).1.unwrap_err();
    assert_eq!(fault.kind, ChatErrorKind::Garbled);
}

#[test]
fn arguments_with_a_key_twice_are_broken_in_every_protocol() {
    let args = r#"{"approve":false,"approve":true}"#;
    let gemini = format!(
        r#"data: {{"candidates":[{{"content":{{"parts":[{{"functionCall":{{"name":"tide","args":{args}}}}}]}},"finishReason":"STOP"}}]}}"#
    );
    let text = Value::from(args);
    let openai = format!(
        r#"data: {{"choices":[{{"delta":{{"tool_calls":[{{"index":0,"function":{{"name":"tide","arguments":{text}}}}}]}},"finish_reason":"tool_calls"}}]}}"#
    );
    let anthropic = [
        json!({"type": "content_block_start", "index": 0, "content_block": {"type": "tool_use", "name": "tide", "input": {}}}),
        json!({"type": "content_block_delta", "index": 0, "delta": {"type": "input_json_delta", "partial_json": args}}),
        json!({"type": "message_delta", "delta": {"stop_reason": "tool_use"}}),
        json!({"type": "message_stop"}),
    ];
    let anthropic: Vec<_> = anthropic.iter().map(|event| format!("data: {event}")).collect();
    for (provider, events) in [("gemini", gemini), ("openai", openai), ("anthropic", anthropic.join("\n\n"))]
    {
        let stream = format!("{events}\n\n");
        let message = read(provider, [stream.as_bytes()]).1.unwrap().message;
        let [CallArguments::Broken(text)] =
            message.calls().map(|call| &call.arguments).collect::<Vec<_>>()[..]
        else {
            panic!("{provider}: {message:?}")
        };
        assert!(text.contains(args), "{provider}: {text}");
    }
}

#[test]
fn a_name_has_a_longest_length_and_an_id_is_whole_or_absent() {
    let id = "i".repeat(5_000);
    let name = "é".repeat(5_000);
    let call = json!({"functionCall": {"id": id, "name": name}});
    let chunk = json!({"candidates": [{"content": {"parts": [call]}, "finishReason": "STOP"}]});
    let parts = stream("gemini", [chunk]).1.unwrap().message.parts;
    let [PartContent::Call(call)] = &parts.iter().map(|part| part.content.clone()).collect::<Vec<_>>()[..]
    else {
        panic!("one call")
    };
    assert_eq!((call.id.as_deref(), call.name.len()), (None, 256));
}

#[test]
fn members_of_the_wrong_type_are_as_good_as_absent() {
    for (provider, event) in [
        (
            "gemini",
            json!({"candidates": [{"index": "0", "content": [], "finishReason": 7}], "usageMetadata": 3}),
        ),
        ("gemini", json!({"candidates": {"content": 1}, "promptFeedback": []})),
        (
            "gemini",
            json!({"candidates": [{"content": {"parts": [1, {"text": 2}, {"functionCall": []}, {}]}}]}),
        ),
        (
            "openai",
            json!({"choices": [{"delta": {"content": 1, "tool_calls": {}}, "finish_reason": []}], "usage": []}),
        ),
        (
            "openai",
            json!({"choices": [1, {"delta": {"tool_calls": [1, {"index": "a", "function": 3, "id": 4}]}}]}),
        ),
        ("anthropic", json!({"type": 1})),
        ("anthropic", json!({"type": "content_block_start", "index": {}, "content_block": []})),
        ("anthropic", json!({"type": "content_block_delta", "delta": 5})),
        ("anthropic", json!({"type": "message_delta", "delta": 5, "usage": {"output_tokens": -1}})),
        ("gemini", json!([])),
        ("openai", json!("hello")),
        ("anthropic", Value::Null),
    ] {
        let (events, end) = stream(provider, [event.clone()]);
        assert_eq!((events.len(), end.unwrap_err().kind), (0, ChatErrorKind::Cut), "{event}");
    }
}
