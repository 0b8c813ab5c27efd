//! The envelope of a call as a result of the protocol.
//!
//! A handler that answers with more than data puts the blocks into `data._mcp.content`: text, images, audio and resources
//! as the protocol writes them.

use quarterdeck_contracts::{Outcome, ToolError, ToolResponse};
use rmcp::model::{CallToolResult, ContentBlock};
use serde_json::{Map, Value, json};

/// Where blocks of content stand in a handler's data.
const BLOCKS_KEY: &str = "_mcp";
/// What went wrong, for programs.
const ERROR_KEY: &str = "quarterdeck/error";
/// How many blocks one result may have.
const MAX_BLOCKS: usize = 100;

/// What a call came to. Refusals and failures are results as well: the sentence is for the model.
pub(crate) fn of(response: &ToolResponse) -> CallToolResult {
    match &response.outcome {
        Outcome::Success(Value::Object(data)) => object(data),
        Outcome::Success(Value::String(text)) => {
            CallToolResult::success(vec![ContentBlock::text(text.as_str())])
        }
        Outcome::Success(data) => CallToolResult::success(vec![ContentBlock::text(data.to_string())]),
        Outcome::Failure(error) => failure(error),
    }
}

fn object(data: &Map<String, Value>) -> CallToolResult {
    let Some(blocks) = data.get(BLOCKS_KEY).and_then(|extra| extra.get("content")).and_then(Value::as_array)
    else {
        let data = Value::Object(data.clone());
        let mut result = CallToolResult::success(vec![ContentBlock::text(data.to_string())]);
        result.structured_content = Some(data);
        return result;
    };
    let mut result = CallToolResult::success(blocks.iter().take(MAX_BLOCKS).map(block).collect());
    // What the blocks say is said once; what is beside them is data.
    let rest: Map<_, _> = data
        .iter()
        .filter(|(key, _)| *key != BLOCKS_KEY)
        .map(|(key, value)| (key.clone(), value.clone()))
        .collect();
    if !rest.is_empty() {
        result.structured_content = Some(Value::Object(rest));
    }
    result
}

fn block(block: &Value) -> ContentBlock {
    serde_json::from_value(block.clone()).unwrap_or_else(|error| {
        tracing::warn!(error = %error, "block of a result left out: it is none of the protocol");
        ContentBlock::text("(A part of the answer cannot be shown.)")
    })
}

/// A call that did not do what was asked.
pub(crate) fn failure(error: &ToolError) -> CallToolResult {
    let mut text = error.message.clone();
    if let Some(suggestion) = &error.suggestion {
        text.push(' ');
        text.push_str(suggestion);
    }
    let mut result = CallToolResult::error(vec![ContentBlock::text(text)]);
    // Without the token of a question: a model that reads it could answer.
    result.meta.get_or_insert_default().insert(ERROR_KEY.to_owned(), json!(error.for_model()));
    result
}

#[cfg(test)]
mod tests {
    use quarterdeck_contracts::{ErrorType, Meta};

    use super::*;

    fn result_of(outcome: Outcome) -> Value {
        let meta = Meta {
            tool_id: "probe".into(),
            tool_version: "1.0.0".into(),
            registry_version: "1.0.0".into(),
            response_schema_version: "1.1.0".into(),
            duration: 0,
            timestamp: "2026-01-13T09:00:00Z".into(),
            retry_count: None,
            parent_call_id: None,
            background_task_id: None,
            idempotent_cache_hit: None,
            original_turn: None,
        };
        json!(of(&ToolResponse { outcome, intents: Vec::new(), meta }))
    }

    fn success_of(data: Value) -> Value {
        result_of(Outcome::Success(data))
    }

    #[test]
    fn data_is_structured_content_and_its_text() {
        let result = success_of(json!({ "free": [1, 2] }));
        assert_eq!(result["structuredContent"], json!({ "free": [1, 2] }));
        assert_eq!(result["content"], json!([{ "type": "text", "text": r#"{"free":[1,2]}"# }]));
        assert_eq!(result["isError"], json!(false));
    }

    #[test]
    fn data_that_is_no_object_is_text_alone() {
        let text = |data| success_of(data)["content"][0]["text"].clone();
        assert_eq!(text(json!("hello")), "hello");
        assert_eq!(text(json!([1])), "[1]");
        assert!(success_of(json!([1])).get("structuredContent").is_none());
    }

    #[test]
    fn blocks_of_a_handler_are_passed_on_with_the_data_beside_them() {
        let blocks = json!([
            { "type": "text", "text": "A fox." },
            { "type": "image", "data": "aGk=", "mimeType": "image/png" },
            { "type": "audio", "data": "aGk=", "mimeType": "audio/wav" },
            { "type": "resource", "resource": { "uri": "kb://a/b/c", "mimeType": "text/plain", "text": "hi" } },
        ]);
        let result = success_of(json!({ "_mcp": { "content": blocks }, "id": 7 }));
        assert_eq!(result["content"], blocks);
        assert_eq!(result["structuredContent"], json!({ "id": 7 }));
        assert!(success_of(json!({ "_mcp": { "content": blocks } })).get("structuredContent").is_none());
    }

    #[test]
    fn a_block_that_is_none_is_replaced_and_not_the_whole_answer() {
        let result = success_of(
            json!({ "_mcp": { "content": [{ "type": "video" }, { "type": "text", "text": "x" }] } }),
        );
        assert_eq!(result["content"][0]["text"], "(A part of the answer cannot be shown.)");
        assert_eq!(result["content"][1]["text"], "x");
    }

    #[test]
    fn a_refusal_is_a_result_with_the_sentence_for_the_model() {
        let error = ToolError::new(ErrorType::RateLimit, "Wait a minute.");
        let result = result_of(Outcome::Failure(error));
        assert_eq!(
            (&result["isError"], &result["content"][0]["text"]),
            (&json!(true), &json!("Wait a minute."))
        );
        assert_eq!(result["_meta"][ERROR_KEY]["type"], "RATE_LIMIT");
        assert!(result.get("structuredContent").is_none());
    }
}
