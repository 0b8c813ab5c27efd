//! A tool as its server publishes it, and the digest that pins it.

use quarterdeck_contracts::{canonical_json, sha256};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

/// What stands before the hexadecimal digits of a digest.
const ALGORITHM: &str = "sha256:";

/// One entry of a server's `tools/list`, as far as it is read by models or decides what we do.
///
/// Icons and `_meta` are not among it: they reach neither a model nor a gate, and servers change them without notice.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct PublishedTool {
    /// As `tools/call` wants it.
    pub name: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub title: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    pub input_schema: Map<String, Value>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub output_schema: Option<Map<String, Value>>,
    /// Hints of the server about its own tool. They are claims, not facts.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub annotations: Option<Map<String, Value>>,
}

impl PublishedTool {
    /// The pin: `sha256:…` over the one spelling of name, title, description, both schemas and the annotations.
    ///
    /// What is absent is `null`, so that a description that is removed differs from one that is empty. The order of keys and
    /// the spelling of numbers make no difference.
    pub fn digest(&self) -> ToolDigest {
        let content = json!({
            "name": self.name,
            "title": self.title,
            "description": self.description,
            "inputSchema": self.input_schema,
            "outputSchema": self.output_schema,
            "annotations": self.annotations,
        });
        ToolDigest(format!("{ALGORITHM}{}", sha256(canonical_json(&content).as_bytes())))
    }

    /// One hint of the server, `None` where it is silent or says something else than yes or no.
    pub fn hint(&self, name: &str) -> Option<bool> {
        self.annotations.as_ref()?.get(name)?.as_bool()
    }

    /// The title that people are shown: the tool's own, else that of its annotations.
    pub fn shown_title(&self) -> Option<&str> {
        let annotated = || self.annotations.as_ref()?.get("title")?.as_str();
        self.title.as_deref().or_else(annotated)
    }
}

impl From<&rmcp::model::Tool> for PublishedTool {
    fn from(tool: &rmcp::model::Tool) -> Self {
        let annotations = tool.annotations.as_ref().and_then(|hints| serde_json::to_value(hints).ok());
        Self {
            name: tool.name.to_string(),
            title: tool.title.clone(),
            description: tool.description.as_ref().map(ToString::to_string),
            input_schema: tool.input_schema.as_ref().clone(),
            output_schema: tool.output_schema.as_ref().map(|schema| schema.as_ref().clone()),
            annotations: annotations.and_then(|hints| hints.as_object().cloned()),
        }
    }
}

/// The digest of a published tool: `sha256:` and 64 hexadecimal digits in lower case.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct ToolDigest(String);

impl ToolDigest {
    /// Takes a text that is already a digest.
    ///
    /// # Errors
    ///
    /// It is something else.
    pub fn parse(text: &str) -> Result<Self, InvalidDigest> {
        let digits = text.strip_prefix(ALGORITHM).ok_or(InvalidDigest)?;
        let is_digest =
            digits.len() == 64 && digits.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'));
        if is_digest { Ok(Self(text.to_owned())) } else { Err(InvalidDigest) }
    }

    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Enough of it to tell two apart in a table.
    pub fn short(&self) -> &str {
        &self.0[..ALGORITHM.len() + 12]
    }
}

impl std::fmt::Display for ToolDigest {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.0)
    }
}

impl TryFrom<String> for ToolDigest {
    type Error = InvalidDigest;

    fn try_from(text: String) -> Result<Self, InvalidDigest> {
        Self::parse(&text)
    }
}

impl From<ToolDigest> for String {
    fn from(digest: ToolDigest) -> Self {
        digest.0
    }
}

/// Not the digest of a published tool.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("a digest is `sha256:` and 64 hexadecimal digits in lower case")]
pub struct InvalidDigest;

#[cfg(test)]
mod tests;
