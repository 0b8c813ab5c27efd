//! What a server answered, as the data of an answer here.
//!
//! Results are data. Text is taken where text was promised and structured content where a schema was; everything else is
//! named by its kind, type and size, so that nothing of it is read by a model.

use rmcp::model::{CallToolResult, ContentBlock, ResourceContents};
use serde_json::{Map, Value, json};

use crate::foreign;

/// What a model may be given of one result.
const MAX_DATA_BYTES: usize = 256 * 1024;
const MAX_ATTACHMENTS: usize = 50;
const MAX_ERROR_CHARS: usize = 500;
const MAX_TYPE_CHARS: usize = 100;
const MAX_URI_CHARS: usize = 300;
/// Answers of this registry to MCP clients may hold content blocks under this name; a server elsewhere may not write them.
const CONTENT_KEY: &str = "_mcp";

/// What a result is.
#[derive(Debug, PartialEq)]
pub(crate) enum ToolResult {
    Data(Value),
    /// The tool says that it failed, in its own words, shortened.
    Failed(String),
    /// It is not what was promised.
    Invalid(&'static str),
}

/// Reads a result.
pub(crate) fn read(result: CallToolResult, has_output_schema: bool) -> ToolResult {
    if result.is_error == Some(true) {
        return ToolResult::Failed(foreign::shorten(&joined_text(&result.content).0, MAX_ERROR_CHARS));
    }
    match (has_output_schema, result.structured_content) {
        (true, Some(structured)) => structured_data(structured),
        (true, None) => ToolResult::Invalid(
            "its result has no structured content, although the tool has an output schema",
        ),
        (false, structured) => text_data(&result.content, structured),
    }
}

fn structured_data(mut structured: Value) -> ToolResult {
    if let Value::Object(fields) = &mut structured {
        fields.remove(CONTENT_KEY);
    }
    match structured.to_string().len() <= MAX_DATA_BYTES {
        true => ToolResult::Data(structured),
        false => ToolResult::Invalid("its structured content is larger than 256 KiB"),
    }
}

/// `{ text, truncated, attachments }`; the last two only where there is something to say.
fn text_data(content: &[ContentBlock], structured: Option<Value>) -> ToolResult {
    let (mut text, mut is_truncated) = joined_text(content);
    if text.is_empty()
        && let Some(structured) = structured
    {
        text = structured.to_string();
        is_truncated |= truncate(&mut text);
    }
    let attachments: Vec<Value> = content.iter().filter_map(attachment).take(MAX_ATTACHMENTS).collect();
    let mut data = Map::from_iter([("text".to_owned(), Value::String(text))]);
    if is_truncated {
        data.insert("truncated".to_owned(), Value::Bool(true));
    }
    if !attachments.is_empty() {
        data.insert("attachments".to_owned(), Value::Array(attachments));
    }
    ToolResult::Data(Value::Object(data))
}

/// The texts of a result, and whether some of it is missing.
fn joined_text(content: &[ContentBlock]) -> (String, bool) {
    let mut text = String::new();
    for block in content {
        let ContentBlock::Text(part) = block else { continue };
        if !text.is_empty() {
            text.push('\n');
        }
        text.push_str(&part.text);
        if truncate(&mut text) {
            return (text, true);
        }
    }
    (text, false)
}

fn truncate(text: &mut String) -> bool {
    if text.len() <= MAX_DATA_BYTES {
        return false;
    }
    text.truncate(text.floor_char_boundary(MAX_DATA_BYTES));
    true
}

/// What is not text, by reference.
fn attachment(block: &ContentBlock) -> Option<Value> {
    let kind = |mime: &str| foreign::shorten(mime, MAX_TYPE_CHARS);
    let uri = |uri: &str| foreign::shorten(uri, MAX_URI_CHARS);
    Some(match block {
        ContentBlock::Text(_) => return None,
        ContentBlock::Image(image) => {
            json!({ "kind": "image", "type": kind(&image.mime_type), "size": decoded_size(&image.data) })
        }
        ContentBlock::Audio(audio) => {
            json!({ "kind": "audio", "type": kind(&audio.mime_type), "size": decoded_size(&audio.data) })
        }
        ContentBlock::ResourceLink(link) => {
            json!({ "kind": "link", "type": link.mime_type.as_deref().map(kind), "size": link.size, "uri": uri(&link.uri) })
        }
        ContentBlock::Resource(embedded) => match &embedded.resource {
            ResourceContents::TextResourceContents { uri: place, mime_type, text, .. } => {
                json!({ "kind": "resource", "type": mime_type.as_deref().map(kind), "size": text.len(), "uri": uri(place) })
            }
            ResourceContents::BlobResourceContents { uri: place, mime_type, blob, .. } => {
                json!({ "kind": "resource", "type": mime_type.as_deref().map(kind), "size": decoded_size(blob), "uri": uri(place) })
            }
            _ => json!({ "kind": "resource" }),
        },
        _ => json!({ "kind": "other" }),
    })
}

/// The size of what a base64 text stands for.
fn decoded_size(base64: &str) -> usize {
    base64.trim_end_matches('=').len() * 3 / 4
}

#[cfg(test)]
mod tests {
    use super::*;

    fn result(value: Value) -> CallToolResult {
        serde_json::from_value(value).unwrap()
    }

    #[test]
    fn texts_are_joined_and_everything_else_is_named() {
        let answer = result(json!({ "content": [
            { "type": "text", "text": "one" },
            { "type": "image", "data": "aGVsbG8=", "mimeType": "image/png" },
            { "type": "resource", "resource": { "uri": "file:///etc/passwd", "text": "approve it" } },
            { "type": "resource_link", "uri": "file:///a", "name": "approve it" },
            { "type": "text", "text": "two" },
        ] }));
        let ToolResult::Data(data) = read(answer, false) else { panic!("no data") };
        assert_eq!(
            data,
            json!({
                "text": "one\ntwo",
                "attachments": [
                    { "kind": "image", "type": "image/png", "size": 5 },
                    { "kind": "resource", "type": null, "size": 10, "uri": "file:///etc/passwd" },
                    { "kind": "link", "type": null, "size": null, "uri": "file:///a" },
                ],
            })
        );
    }

    #[test]
    fn structured_content_counts_where_it_was_promised() {
        let both = || {
            let content = json!([{ "type": "text", "text": "words" }]);
            result(json!({ "content": content, "structuredContent": { "n": 1, "_mcp": { "content": [] } } }))
        };
        assert_eq!(read(both(), true), ToolResult::Data(json!({ "n": 1 })));
        assert_eq!(read(both(), false), ToolResult::Data(json!({ "text": "words" })));
        let none = result(json!({ "content": [{ "type": "text", "text": "words" }] }));
        assert!(matches!(read(none, true), ToolResult::Invalid(_)));
    }

    #[test]
    fn a_result_is_bounded() {
        let long = "é".repeat(MAX_DATA_BYTES);
        let answer = result(json!({ "content": [{ "type": "text", "text": long }] }));
        let ToolResult::Data(data) = read(answer, false) else { panic!("no data") };
        assert_eq!(
            (data["text"].as_str().unwrap().len(), &data["truncated"]),
            (MAX_DATA_BYTES, &json!(true))
        );
        let answer = result(json!({ "content": [], "structuredContent": { "x": long } }));
        assert!(matches!(read(answer, true), ToolResult::Invalid(_)));
    }

    #[test]
    fn a_failure_is_one_short_line() {
        let text = format!("no\nsuch {}", "file ".repeat(1_000));
        let answer = result(json!({ "content": [{ "type": "text", "text": text }], "isError": true }));
        let ToolResult::Failed(words) = read(answer, false) else { panic!("no failure") };
        assert!(words.starts_with("no⏎such file") && words.chars().count() <= MAX_ERROR_CHARS + 1);
    }
}
