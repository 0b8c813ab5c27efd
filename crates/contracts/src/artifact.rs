//! The compiled registry: `tool_registry.json`.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::fmt;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::Metadata;

/// The format that this version writes, and the only one that it reads.
pub const ARTIFACT_FORMAT_VERSION: u32 = 1;

/// The version of [`crate::ToolResponse`] that this version speaks.
pub const RESPONSE_SCHEMA_VERSION: &str = "1.1.0";

/// The versions that a handler may declare. With 2.0.0 it may send partial results and go on in the background.
pub const RESPONSE_SCHEMA_VERSIONS: [&str; 3] = ["1.0.0", "1.1.0", "2.0.0"];

/// Every tool of a tools folder, compiled.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Artifact {
    /// [`ARTIFACT_FORMAT_VERSION`]; checked before anything else is read.
    pub format_version: u32,
    /// A short label: `1.0.` and the first eight digits of the content hash.
    pub version: String,
    /// SHA-256 over everything that changes behaviour; this is what is compared.
    pub content_hash: String,
    /// The commit that the sources came from, when it is known.
    pub git_commit: Option<String>,
    /// When it was built (RFC 3339, UTC).
    pub build_timestamp: String,
    /// [`RESPONSE_SCHEMA_VERSION`] of the build.
    pub response_schema_version: String,
    /// The tools, sorted by id.
    pub tools: Vec<CompiledTool>,
}

/// One tool of an [`Artifact`].
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct CompiledTool {
    /// Every field of `schema.json` but the parameters.
    #[serde(flatten)]
    pub metadata: Metadata,
    /// The parameters as they were written. Arguments are always checked against these.
    pub json_schema: Value,
    /// The declaration in each provider's form. A provider that cannot take the tool is absent.
    pub provider_schemas: BTreeMap<Provider, Value>,
    /// What each provider's form does not say.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub lossy: BTreeMap<Provider, Vec<Loss>>,
    /// One or two sentences for the model.
    pub summary: String,
    /// The whole guide, as Markdown.
    pub documentation: String,
    /// The code that does the work.
    pub handler: HandlerRef,
    /// Content hash of this tool alone.
    pub hash: String,
}

/// Something that a provider's form of a schema cannot say.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Loss {
    /// What was lost, in a word or two: `format`, `non-string enum`. Authors acknowledge it as `provider: what`.
    pub what: String,
    /// The places in the parameters where it was lost, as JSON pointers.
    pub at: Vec<String>,
    /// Arguments that the provider's form admits and the original refuses. Absent when none was found:
    /// the loss may then be in words only.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub counter_example: Option<Value>,
    /// Property names that the provider refuses, each with the name that is declared in its place. Arguments are mapped
    /// back ([`crate::Renames`]).
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub renamed: BTreeMap<String, String>,
}

/// A form that tool declarations take. The order here is the order in the artifact.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Provider {
    /// OpenAI functions, parameters passed through.
    Openai,
    /// OpenAI functions with `strict: true`, for tools that can be said that way.
    OpenaiStrict,
    /// OpenAI functions as servers of other makers take them.
    OpenaiCompatible,
    /// Gemini's own schema dialect.
    GeminiNative,
    /// Gemini with `parametersJsonSchema`.
    GeminiJsonSchema,
    /// Anthropic's Messages API.
    Anthropic,
    /// The Model Context Protocol.
    Mcp,
}

impl Provider {
    /// Every form, in order.
    pub const ALL: [Self; 7] = [
        Self::Openai,
        Self::OpenaiStrict,
        Self::OpenaiCompatible,
        Self::GeminiNative,
        Self::GeminiJsonSchema,
        Self::Anthropic,
        Self::Mcp,
    ];

    /// The key in the artifact.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Openai => "openai",
            Self::OpenaiStrict => "openaiStrict",
            Self::OpenaiCompatible => "openaiCompatible",
            Self::GeminiNative => "geminiNative",
            Self::GeminiJsonSchema => "geminiJsonSchema",
            Self::Anthropic => "anthropic",
            Self::Mcp => "mcp",
        }
    }
}

impl Provider {
    /// The form that an artifact of an older version has in the place of this one.
    pub fn predecessor(self) -> Option<Self> {
        (self == Self::OpenaiCompatible).then_some(Self::Openai)
    }
}

impl fmt::Display for Provider {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// Where a tool's code is, and what it was when the artifact was built.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct HandlerRef {
    /// Which host runs it.
    pub kind: HandlerKind,
    /// The entry file, relative to the tools folder, with forward slashes.
    pub path: String,
    /// SHA-256 of every file it is made of, the entry included.
    pub files: BTreeMap<String, String>,
}

/// The name of a kind of handlers, as the artifact has it: `js`, `native`.
///
/// The set is open. A kind exists where an inspector is registered under its name for builds, and a host for calls;
/// this crate knows none by name but [`NATIVE_KIND`](crate::handler::NATIVE_KIND).
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(transparent)]
pub struct HandlerKind(Cow<'static, str>);

impl HandlerKind {
    /// A kind by its name, which artifacts keep.
    pub const fn new(name: &'static str) -> Self {
        Self(Cow::Borrowed(name))
    }

    /// The name in the artifact.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for HandlerKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}
