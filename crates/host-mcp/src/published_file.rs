//! `published.json`: a tool as its server published it when it was imported, beside the binding that pins it.
//!
//! The digest alone would say that something has changed; this says what. It is what an author reviews, so everything in it
//! can be seen: a character that cannot is written as its number.

use std::fmt::Write;

use quarterdeck_contracts::visible;
use quarterdeck_json_fields::FieldError;
use serde_json::json;

use crate::published::PublishedTool;

/// Beside `handler.mcp.json`. A folder may be without it; then what has changed at the server cannot be shown.
pub const PUBLISHED_FILE: &str = "published.json";

const FIELDS: [&str; 6] = ["name", "title", "description", "inputSchema", "outputSchema", "annotations"];

/// The file's text. Read again, it is the same tool.
pub fn published_to_text(tool: &PublishedTool) -> String {
    let text = format!("{:#}\n", json!(tool));
    let mut escaped = String::with_capacity(text.len());
    let mut units = [0_u16; 2];
    for character in text.chars() {
        if !is_hidden(character) {
            escaped.push(character);
            continue;
        }
        for unit in character.encode_utf16(&mut units) {
            // Writing to a string cannot fail. Such a character occurs only within a string of the JSON.
            let _ = write!(escaped, "\\u{unit:04x}");
        }
    }
    escaped
}

/// Reads the file.
///
/// # Errors
///
/// The first mistake, with its line.
pub fn parse_published(text: &str) -> Result<PublishedTool, FieldError> {
    quarterdeck_json_fields::read(text, PUBLISHED_FILE, |root| {
        let fields = root.object(&FIELDS)?;
        fields.needed("name")?.string()?;
        for name in ["title", "description"] {
            fields.text(name)?;
        }
        for name in ["inputSchema", "outputSchema", "annotations"] {
            match fields.find(name) {
                Some(field) if !field.value.is_object() => return field.fault("an object"),
                None if name == "inputSchema" => return Err(fields.wrong(name, "is missing")),
                _ => {}
            }
        }
        serde_json::from_value(root.value.clone()).map_err(|error| (root.path.clone(), error.to_string()))
    })
}

fn is_hidden(character: char) -> bool {
    let mut buffer = [0; 4];
    let text: &str = character.encode_utf8(&mut buffer);
    visible(text) != text
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::Map;

    use super::*;

    fn tool(description: &str) -> PublishedTool {
        PublishedTool {
            name: "now".into(),
            title: None,
            description: Some(description.into()),
            input_schema: Map::from_iter([("type".to_owned(), "object".into())]),
            output_schema: None,
            annotations: None,
        }
    }

    #[test]
    fn what_cannot_be_seen_is_written_as_its_number() {
        let text = published_to_text(&tool("a\u{202e}b\u{e0041}c \u{0} é 👩\u{200d}🚀\n"));
        assert!(text.contains(r#""a\u202eb\udb40\udc41c \u0000 é 👩\u200d🚀\n""#), "{text}");
    }

    #[test]
    fn a_mistake_has_its_line() {
        let mistakes = [
            ("{}", "line 1: name: is missing"),
            ("{ \"name\": \"a\" }", "line 1: inputSchema: is missing"),
            (
                "{ \"name\": \"a\",\n\"inputSchema\": [] }",
                "line 2: inputSchema: must be an object, is a list",
            ),
            (
                "{ \"name\": \"a\",\n\"_meta\": {} }",
                "line 2: _meta: is not known; known are name, title, description, inputSchema, outputSchema, annotations",
            ),
        ];
        for (text, expected) in mistakes {
            assert_eq!(parse_published(text).unwrap_err().to_string(), expected);
        }
    }

    proptest! {
        #[test]
        fn every_tool_is_read_as_it_was_written(description in any::<String>(), key in any::<String>()) {
            let mut tool = tool(&description);
            tool.input_schema.insert(key, "x".into());
            let text = published_to_text(&tool);
            prop_assert!(text.lines().all(|line| visible(line) == line));
            prop_assert_eq!(parse_published(&text).unwrap(), tool);
        }
    }
}
