//! `handler.mcp.json`: which tool of which server a folder stands for, and what that tool was when it was imported.

use quarterdeck_json_fields::FieldError;
use serde::Serialize;

use crate::published::ToolDigest;
use crate::server_config::ServerName;

/// The file that gives a folder a handler of the kind `mcp`.
pub const BINDING_FILE: &str = "handler.mcp.json";

/// The longest name of a tool that is taken from a server, in bytes.
pub const MAX_TOOL_NAME_BYTES: usize = 128;

/// What a folder is bound to.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Binding {
    /// The table `[mcp.servers.NAME]` of the configuration.
    pub server: ServerName,
    /// The tool's name at the server, which need not be the folder's.
    pub tool: String,
    /// What the server published when an author last looked.
    pub digest: ToolDigest,
}

impl Binding {
    /// Reads the file. Every field is required, and there are no others.
    ///
    /// # Errors
    ///
    /// The first mistake, with its line.
    pub fn parse(text: &str) -> Result<Self, FieldError> {
        quarterdeck_json_fields::read(text, BINDING_FILE, |root| {
            let fields = root.object(&["server", "tool", "digest"])?;
            let server = fields.needed("server")?.string()?;
            let server =
                ServerName::parse(server).map_err(|error| fields.wrong("server", &error.to_string()))?;
            let tool = fields.needed("tool")?.string()?;
            if !is_tool_name(tool) {
                let problem = format!(
                    "must be the tool's name at the server: 1 to {MAX_TOOL_NAME_BYTES} visible characters"
                );
                return Err(fields.wrong("tool", &problem));
            }
            let digest = ToolDigest::parse(fields.needed("digest")?.string()?).map_err(|error| {
                fields.wrong("digest", &format!("{error}, as `quarterdeck mcp import` writes it"))
            })?;
            Ok(Self { server, tool: tool.to_owned(), digest })
        })
    }

    /// The file's text.
    pub fn to_text(&self) -> String {
        let text = serde_json::to_string_pretty(self).unwrap_or_default();
        format!("{text}\n")
    }
}

/// Whether a server may call a tool so. What is longer, or cannot be seen, is no name that an author can review.
pub fn is_tool_name(name: &str) -> bool {
    (1..=MAX_TOOL_NAME_BYTES).contains(&name.len()) && quarterdeck_contracts::visible_line(name) == name
}

#[cfg(test)]
mod tests {
    use expect_test::{Expect, expect};

    use super::*;

    const DIGEST: &str = "sha256:2c26b46b68ffc68ff99b453c1d30413413422d706483bfa0f98a5e886266e7ae";

    #[test]
    fn a_binding_is_read_as_it_is_written() {
        let binding = Binding {
            server: ServerName::parse("time").unwrap(),
            tool: "get_current_time".into(),
            digest: ToolDigest::parse(DIGEST).unwrap(),
        };
        expect![[r#"
            {
              "server": "time",
              "tool": "get_current_time",
              "digest": "sha256:2c26b46b68ffc68ff99b453c1d30413413422d706483bfa0f98a5e886266e7ae"
            }
        "#]]
        .assert_eq(&binding.to_text());
        assert_eq!(Binding::parse(&binding.to_text()), Ok(binding));
    }

    #[test]
    fn a_mistake_is_reported_with_its_line() {
        let refused = |text: &str, expected: Expect| {
            expected.assert_eq(&Binding::parse(text).unwrap_err().to_string());
        };
        refused(
            "{",
            expect!["line 1: handler.mcp.json: no JSON: EOF while parsing an object at line 1 column 1"],
        );
        refused("[]", expect!["line 1: handler.mcp.json: must be an object, is a list"]);
        refused("{\n  \"server\": \"time\"\n}", expect!["line 1: tool: is missing"]);
        refused(
            "{\n  \"server\": \"time\",\n  \"tool\": \"now\",\n  \"digest\": \"sha256:12\"\n}",
            expect![
                "line 4: digest: a digest is `sha256:` and 64 hexadecimal digits in lower case, as `quarterdeck mcp import` writes it"
            ],
        );
        refused(
            "{\n  \"server\": \"Time!\",\n  \"tool\": \"now\" }",
            expect![
                "line 2: server: a server's name has lower-case letters, digits, `-` and `_`, begins with a letter, and has at most 32 characters"
            ],
        );
        refused(
            "{ \"server\": \"time\",\n\"tool\": \"now\u{202e}\" }",
            expect!["line 2: tool: must be the tool's name at the server: 1 to 128 visible characters"],
        );
        refused(
            "{ \"server\": \"time\",\n\"retries\": 3 }",
            expect!["line 2: retries: is not known; known are server, tool, digest"],
        );
        refused(
            "{ \"server\": \"time\", \"server\": \"files\" }",
            expect!["line 1: handler.mcp.json: no JSON: the key \"server\" stands twice at line 1 column 39"],
        );
    }
}
