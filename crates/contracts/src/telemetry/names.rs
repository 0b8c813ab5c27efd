//! Names of OpenTelemetry's conventions for generative models and for MCP, and our own beside them.
//!
//! The conventions are still in development, so that a name may change; it does so here alone.

#![expect(
    missing_docs,
    reason = "the conventions say what each name means; our own are in docs/TELEMETRY.md"
)]

pub const ERROR_TYPE: &str = "error.type";

pub const OPERATION_NAME: &str = "gen_ai.operation.name";
pub const PROVIDER_NAME: &str = "gen_ai.provider.name";
pub const AGENT_NAME: &str = "gen_ai.agent.name";
pub const AGENT_VERSION: &str = "gen_ai.agent.version";
pub const CONVERSATION_ID: &str = "gen_ai.conversation.id";
pub const OUTPUT_TYPE: &str = "gen_ai.output.type";
pub const REQUEST_MODEL: &str = "gen_ai.request.model";
pub const REQUEST_STREAM: &str = "gen_ai.request.stream";
pub const RESPONSE_FINISH_REASONS: &str = "gen_ai.response.finish_reasons";
pub const RESPONSE_TIME_TO_FIRST_CHUNK: &str = "gen_ai.response.time_to_first_chunk";
pub const USAGE_INPUT_TOKENS: &str = "gen_ai.usage.input_tokens";
pub const USAGE_OUTPUT_TOKENS: &str = "gen_ai.usage.output_tokens";
pub const USAGE_CACHE_READ_INPUT_TOKENS: &str = "gen_ai.usage.cache_read.input_tokens";
pub const USAGE_CACHE_CREATION_INPUT_TOKENS: &str = "gen_ai.usage.cache_creation.input_tokens";
pub const TOKEN_TYPE: &str = "gen_ai.token.type";
pub const TOOL_NAME: &str = "gen_ai.tool.name";
pub const TOOL_TYPE: &str = "gen_ai.tool.type";
pub const TOOL_CALL_ID: &str = "gen_ai.tool.call.id";
pub const TOOL_CALL_ARGUMENTS: &str = "gen_ai.tool.call.arguments";
pub const TOOL_CALL_RESULT: &str = "gen_ai.tool.call.result";
pub const INPUT_MESSAGES: &str = "gen_ai.input.messages";
pub const OUTPUT_MESSAGES: &str = "gen_ai.output.messages";
pub const DATA_SOURCE_ID: &str = "gen_ai.data_source.id";

pub const MCP_METHOD_NAME: &str = "mcp.method.name";
pub const MCP_PROTOCOL_VERSION: &str = "mcp.protocol.version";
pub const MCP_SESSION_ID: &str = "mcp.session.id";
pub const JSONRPC_REQUEST_ID: &str = "jsonrpc.request.id";
pub const NETWORK_TRANSPORT: &str = "network.transport";

/// The kinds of operations, which are the values of [`OPERATION_NAME`] and the beginnings of span names.
pub mod operation {
    pub const INVOKE_AGENT: &str = "invoke_agent";
    pub const CHAT: &str = "chat";
    pub const GENERATE_CONTENT: &str = "generate_content";
    pub const EXECUTE_TOOL: &str = "execute_tool";
    pub const RETRIEVAL: &str = "retrieval";
    /// Ours: the conventions have no name for an outage of a live model.
    pub const RECONNECT: &str = "reconnect";
}

pub const CHANNEL: &str = "quarterdeck.channel";
pub const TURN: &str = "quarterdeck.turn";
pub const TURN_ENDING: &str = "quarterdeck.turn.ending";
pub const TOOL_VERSION: &str = "quarterdeck.tool.version";
pub const TOOL_RETRIES: &str = "quarterdeck.tool.retries";
pub const POLICY_DECISION: &str = "quarterdeck.policy.decision";
pub const POLICY_RULE: &str = "quarterdeck.policy.rule";
pub const APPROVAL_ID: &str = "quarterdeck.approval.id";
pub const APPROVAL_WAIT: &str = "quarterdeck.approval.wait";
pub const RESULT_COUNT: &str = "quarterdeck.retrieval.results";
pub const FIRST_AUDIO_SECONDS: &str = "quarterdeck.voice.first_audio";

/// The name of the event that a gate's decision is.
pub const GATE_EVENT: &str = "quarterdeck.gate";

/// Gemini, at the endpoint of AI Studio.
pub const GEMINI_PROVIDER: &str = "gcp.gemini";

/// `provider/model` as the conventions have it: the provider's name there, and the model's.
pub fn provider_and_model(name: &str) -> (&str, &str) {
    let (provider, model) = name.split_once('/').unwrap_or(("", name));
    let provider = match provider {
        "gemini" => GEMINI_PROVIDER,
        "" => "_OTHER",
        other => other,
    };
    (provider, model)
}
