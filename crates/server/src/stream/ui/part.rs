//! The parts of the UI message stream, as they are sent and described.

use std::borrow::Cow;

use quarterdeck_contracts::{ToolResponse, Usage};
use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde::Serialize;
use serde_json::Value;

use crate::routes::openapi::envelope::{EnvelopeShape, any};
use crate::routes::openapi::schemas::{one_of, title_by_type};
use crate::stream::data_part::DataPart;

/// Of a record without an address. The SDK's part must have one.
pub(crate) const SOURCE_MEDIA_TYPE: &str = "text/plain";

/// The data of one event. The last is `[DONE]`, which is not JSON; comment lines keep idle connections open.
#[derive(Serialize, JsonSchema)]
#[serde(tag = "type", rename_all = "kebab-case", rename_all_fields = "camelCase")]
#[schemars(rename = "UiStreamPart", deny_unknown_fields, transform = one_of, transform = title_by_type)]
pub(crate) enum StreamPart<'a> {
    Start {
        message_id: &'a str,
        message_metadata: StartMetadata<'a>,
    },
    StartStep,
    FinishStep,
    TextStart {
        id: BlockId,
    },
    TextDelta {
        id: BlockId,
        delta: &'a str,
    },
    TextEnd {
        id: BlockId,
    },
    ReasoningStart {
        id: BlockId,
    },
    ReasoningDelta {
        id: BlockId,
        delta: &'a str,
    },
    ReasoningEnd {
        id: BlockId,
    },
    ToolInputAvailable {
        tool_call_id: &'a str,
        tool_name: &'a str,
        #[schemars(schema_with = "any")]
        input: &'a Value,
        dynamic: bool,
    },
    ToolInputError {
        tool_call_id: &'a str,
        tool_name: &'a str,
        #[schemars(schema_with = "any")]
        input: &'a str,
        error_text: &'a str,
        dynamic: bool,
    },
    ToolApprovalRequest {
        approval_id: &'a str,
        tool_call_id: &'a str,
    },
    ToolOutputAvailable {
        tool_call_id: &'a str,
        #[schemars(with = "EnvelopeShape")]
        output: &'a ToolResponse,
        /// Whether it is a partial result, which the next output replaces.
        #[serde(skip_serializing_if = "std::ops::Not::not")]
        #[schemars(default)]
        preliminary: bool,
        dynamic: bool,
    },
    ToolOutputError {
        tool_call_id: &'a str,
        error_text: &'a str,
        dynamic: bool,
    },
    ToolOutputDenied {
        tool_call_id: &'a str,
    },
    /// A record on the web that the text cites.
    SourceUrl {
        source_id: &'a str,
        url: &'a str,
        title: &'a str,
    },
    /// A record without an address that the text cites.
    SourceDocument {
        source_id: &'a str,
        #[schemars(extend("const" = "text/plain"))]
        media_type: &'static str,
        title: &'a str,
    },
    /// A file that a tool has made; `data-file` tells more about it.
    File {
        url: &'a str,
        media_type: &'a str,
    },
    Error {
        /// JSON: type, message, retryable.
        error_text: String,
    },
    Abort {
        reason: &'a str,
    },
    Finish {
        finish_reason: FinishReason,
        message_metadata: FinishMetadata,
    },
    #[serde(untagged)]
    Data(DataPart<'a>),
}

#[derive(Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(inline)]
pub(crate) struct StartMetadata<'a> {
    pub(super) session_id: &'a str,
    /// For the header `X-Quarterdeck-Session` of further requests, where the client has no other credential. Each answer
    /// brings a new one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) session_token: Option<String>,
}

#[derive(Serialize, JsonSchema)]
#[schemars(inline)]
pub(crate) struct FinishMetadata {
    pub(super) usage: UiUsage,
}

#[derive(Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(inline)]
pub(crate) struct UiUsage {
    input_tokens: u64,
    output_tokens: u64,
    total_tokens: u64,
    /// How much of the input the provider had in its cache.
    cached_input_tokens: u64,
}

impl UiUsage {
    pub(super) fn new(usage: Usage) -> Self {
        let Usage { input_tokens, output_tokens, cached_tokens, .. } = usage;
        let total_tokens = input_tokens.saturating_add(output_tokens);
        Self { input_tokens, output_tokens, total_tokens, cached_input_tokens: cached_tokens }
    }
}

#[derive(Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
#[schemars(inline)]
pub(crate) enum FinishReason {
    Stop,
    Length,
    ContentFilter,
    ToolCalls,
    Error,
}

/// `t1`, `t2` and so on.
#[derive(Clone, Copy)]
pub(crate) struct BlockId(pub(super) u32);

impl JsonSchema for BlockId {
    fn schema_name() -> Cow<'static, str> {
        "BlockId".into()
    }

    fn inline_schema() -> bool {
        true
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        String::json_schema(generator)
    }
}

impl Serialize for BlockId {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(&format_args!("t{}", self.0))
    }
}
