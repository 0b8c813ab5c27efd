//! Schemas of the OpenAI API's chat completions, as far as they are supported.

use serde_json::{Value, json};

use super::operation::reference;

/// An example of a stream.
pub(crate) const STREAM: &str = "\
data: {\"id\":\"chatcmpl-1\",\"object\":\"chat.completion.chunk\",\"created\":1760000000,\"model\":\"quarterdeck\",\
\"choices\":[{\"index\":0,\"delta\":{\"role\":\"assistant\",\"content\":\"\"},\"finish_reason\":null}]}\n\n\
data: {\"id\":\"chatcmpl-1\",\"object\":\"chat.completion.chunk\",\"created\":1760000000,\"model\":\"quarterdeck\",\
\"choices\":[{\"index\":0,\"delta\":{\"content\":\"Good morning.\"},\"finish_reason\":null}]}\n\n\
data: {\"id\":\"chatcmpl-1\",\"object\":\"chat.completion.chunk\",\"created\":1760000000,\"model\":\"quarterdeck\",\
\"choices\":[{\"index\":0,\"delta\":{},\"finish_reason\":\"stop\"}]}\n\n\
data: [DONE]\n\n";

pub(crate) fn example() -> Value {
    json!({
        "id": "chatcmpl-1", "object": "chat.completion", "created": 1_760_000_000, "model": "quarterdeck",
        "choices": [{
            "index": 0, "message": { "role": "assistant", "content": "Good morning." }, "finish_reason": "stop",
            "logprobs": null,
        }],
        "usage": { "prompt_tokens": 812, "completion_tokens": 4, "total_tokens": 816 },
    })
}

pub(super) fn schemas() -> Vec<(&'static str, Value)> {
    vec![
        ("CompletionRequest", request()),
        ("Completion", completion()),
        ("CompletionChunk", chunk()),
        ("Usage", usage()),
        ("Model", model()),
    ]
}

fn request() -> Value {
    let content = json!({ "description": "Text, or a list of parts with `text`." });
    json!({
        "type": "object", "required": ["messages"],
        "description": "Unknown fields are ignored, including the caller's own `tools`.",
        "properties": {
            "model": { "type": ["string", "null"], "description": "`quarterdeck`, or null.", "examples": ["quarterdeck"] },
            "messages": {
                "type": "array", "minItems": 1, "description": "The conversation. The last message is the user's.",
                "items": {
                    "type": "object", "required": ["role"],
                    "properties": {
                        "role": { "enum": ["system", "developer", "user", "assistant", "tool", "function"] },
                        "content": content,
                    },
                },
            },
            "stream": { "description": "`true` for server-sent events." },
            "stream_options": { "description": "`{\"include_usage\":true}` for one more chunk with the usage." },
        },
    })
}

fn completion() -> Value {
    json!({
        "type": "object", "required": ["id", "object", "created", "model", "choices", "usage"],
        "additionalProperties": false,
        "properties": {
            "id": { "type": "string" }, "object": { "const": "chat.completion" }, "created": { "type": "integer" },
            "model": { "type": "string" }, "usage": reference("schemas", "Usage"),
            "choices": {
                "type": "array", "minItems": 1, "maxItems": 1,
                "items": {
                    "type": "object", "required": ["index", "message", "finish_reason", "logprobs"],
                    "additionalProperties": false,
                    "properties": {
                        "index": { "const": 0 }, "logprobs": { "type": "null" },
                        "finish_reason": { "enum": ["stop", "length", "content_filter"] },
                        "message": {
                            "type": "object", "required": ["role", "content"], "additionalProperties": false,
                            "properties": { "role": { "const": "assistant" }, "content": { "type": "string" } },
                        },
                    },
                },
            },
        },
    })
}

fn chunk() -> Value {
    let delta = json!({
        "type": "object", "additionalProperties": false,
        "properties": { "role": { "const": "assistant" }, "content": { "type": "string" } },
    });
    let chunk = json!({
        "title": "Chunk", "type": "object", "required": ["id", "object", "created", "model", "choices"],
        "additionalProperties": false,
        "properties": {
            "id": { "type": "string" }, "object": { "const": "chat.completion.chunk" },
            "created": { "type": "integer" }, "model": { "type": "string" }, "usage": reference("schemas", "Usage"),
            "choices": {
                "type": "array", "maxItems": 1,
                "items": {
                    "type": "object", "required": ["index", "delta", "finish_reason"], "additionalProperties": false,
                    "properties": {
                        "index": { "const": 0 }, "delta": delta,
                        "finish_reason": { "enum": ["stop", "length", "content_filter", null] },
                    },
                },
            },
        },
    });
    json!({
        "description": "The data of one event. The last is `[DONE]`, or an error that ends the stream.",
        "oneOf": [chunk, reference("schemas", "OpenAiError")],
    })
}

fn usage() -> Value {
    let count = json!({ "type": "integer", "minimum": 0 });
    json!({
        "type": "object", "required": ["prompt_tokens", "completion_tokens", "total_tokens"],
        "additionalProperties": false,
        "properties": { "prompt_tokens": count, "completion_tokens": count, "total_tokens": count },
    })
}

fn model() -> Value {
    json!({
        "type": "object", "required": ["id", "object", "created", "owned_by"], "additionalProperties": false,
        "properties": {
            "id": { "type": "string" }, "object": { "const": "model" }, "created": { "type": "integer" },
            "owned_by": { "type": "string" },
        },
    })
}
