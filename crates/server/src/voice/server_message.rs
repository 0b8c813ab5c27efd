//! Encodes messages to the client.

use std::sync::LazyLock;

use quarterdeck_agents::voice::ServerMessage;
use quarterdeck_contracts::{
    Audio, ConfirmBy, ConfirmationRequest, ErrorType, Outcome, PROTOCOL_MESSAGE_TYPES, Speaker, ToolError,
    ToolResponse, message_type,
};
use quarterdeck_runtime::Block;
use quarterdeck_runtime::gates::Trace;
use quarterdeck_websocket::{Class, Opcode, Violation, WebSocket};
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::{Value, json};

use super::client_frame::{AUDIO_HEAD, AUDIO_TAIL, AudioFormat};
use super::websocket_link::LinkContext;
use crate::page_settings::Shown;
use crate::routes::openapi::envelope::{ErrorTypeShape, GateShape, any};
use crate::routes::openapi::schemas::one_of;

/// The arguments of a call, where they are not shown.
static NO_ARGUMENTS: LazyLock<Value> = LazyLock::new(|| json!({}));

/// Queues audio in the client's format. Audio already in that format is copied once, into the frame.
pub(super) fn send_audio<S>(socket: &mut WebSocket<S>, format: AudioFormat, audio: &Audio<'_>) {
    let codec = base64_simd::STANDARD;
    let around = AUDIO_HEAD.len() + AUDIO_TAIL.len();
    match (format, audio) {
        (AudioFormat::Binary, Audio::Pcm(pcm)) => {
            socket.send(Opcode::Binary, Class::Audio, pcm.len(), |out| out.extend_from_slice(pcm));
        }
        (AudioFormat::Binary, Audio::Base64(text)) => {
            let Ok(length) = codec.decoded_length(text.as_bytes()) else { return };
            socket.send(Opcode::Binary, Class::Audio, length, |out| {
                let begin = out.len();
                if codec.decode_append(text.as_bytes(), out).is_err() {
                    // The provider's base64 was not checked before. Silence is better than noise.
                    out.resize(begin + length, 0);
                }
            });
        }
        (AudioFormat::Base64, Audio::Base64(text)) => {
            socket.send(Opcode::Text, Class::Audio, around + text.len(), |out| {
                out.extend_from_slice(AUDIO_HEAD.as_bytes());
                out.extend_from_slice(text.as_bytes());
                out.extend_from_slice(AUDIO_TAIL.as_bytes());
            });
        }
        (AudioFormat::Base64, Audio::Pcm(pcm)) => {
            socket.send(Opcode::Text, Class::Audio, around + codec.encoded_length(pcm.len()), |out| {
                out.extend_from_slice(AUDIO_HEAD.as_bytes());
                codec.encode_append(pcm, out);
                out.extend_from_slice(AUDIO_TAIL.as_bytes());
            });
        }
    }
}

/// A text message to the client. Audio in base64 is `audio {data}`, written without this type.
#[derive(Serialize, JsonSchema)]
#[serde(tag = "type", rename_all = "snake_case", rename_all_fields = "camelCase")]
#[schemars(transform = one_of)]
pub(crate) enum VoiceMessage<'a> {
    Ready {
        session_id: &'a str,
        resume_token: String,
        resumed: bool,
        tools_version: &'a str,
        provider: &'a str,
        /// Whether the audio is speech. Where it is not, the page speaks the transcript and plays no audio.
        speaks: bool,
        audio: AudioFormats,
    },
    Transcript {
        role: Role,
        text: &'a str,
        r#final: bool,
        #[serde(skip_serializing_if = "Option::is_none")]
        late: Option<bool>,
    },
    ToolCall {
        call_id: &'a str,
        name: &'a str,
        #[schemars(schema_with = "any")]
        args: &'a Value,
    },
    ToolResult {
        call_id: &'a str,
        ok: bool,
        duration: u64,
        /// The task that the call goes on as; absent once it has ended.
        #[serde(skip_serializing_if = "Option::is_none")]
        background_task_id: Option<&'a str>,
        #[serde(skip_serializing_if = "Option::is_none")]
        error: Option<ErrorSummary<'a>>,
        #[serde(skip_serializing_if = "Option::is_none")]
        #[schemars(with = "Vec<GateShape>")]
        gates: Option<Value>,
    },
    ConfirmationRequest {
        call_id: &'a str,
        token: Option<&'a str>,
        tool: &'a str,
        #[schemars(schema_with = "any")]
        args: &'a Value,
        preview: &'a str,
        #[serde(skip_serializing_if = "Option::is_none")]
        reason: Option<&'a str>,
        expires: u64,
        /// How the user may answer; without it, in any way that the operator allows.
        #[serde(skip_serializing_if = "Option::is_none")]
        confirm_by: Option<ConfirmBy>,
        /// What the user may say to approve it. To be shown to the user, and never told to a model.
        #[serde(skip_serializing_if = "Option::is_none")]
        code: Option<&'a str>,
    },
    Progress {
        call_id: &'a str,
        text: &'a str,
    },
    /// A partial result of a call that still runs, in place of the one before it.
    Partial {
        call_id: &'a str,
        #[schemars(schema_with = "any")]
        data: &'a Value,
    },
    /// Playback stops where it is, until `resume` or `interrupted`.
    Pause,
    Resume,
    Interrupted,
    TurnComplete,
    Timeout {
        duration_seconds: u64,
        /// In milliseconds since 1970.
        timeout_until: u64,
        farewell_message: &'a str,
    },
    SessionEnd {
        reason: &'a str,
        closing_message: Option<&'a str>,
        text_response: Option<&'a str>,
    },
    Error {
        error: ErrorSummary<'a>,
    },
    GoingAway {
        in_ms: u64,
    },
    Pong,
    /// A tool's own message, as it was sent. Its type is not one of the protocol's, except for `timeout`, which has the
    /// form of the server's.
    #[serde(untagged)]
    #[schemars(skip)]
    OfTool(&'a Value),
}

#[derive(Serialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
#[schemars(inline)]
pub(crate) enum Role {
    User,
    Assistant,
}

#[derive(Serialize, JsonSchema)]
#[schemars(inline)]
pub(crate) struct AudioFormats {
    input: PcmFormat,
    output: PcmFormat,
}

#[derive(Serialize, JsonSchema)]
#[schemars(inline)]
struct PcmFormat {
    encoding: &'static str,
    rate: u32,
    channels: u32,
}

#[derive(Serialize, JsonSchema)]
#[schemars(inline)]
pub(crate) struct ErrorSummary<'a> {
    #[serde(rename = "type")]
    #[schemars(with = "ErrorTypeShape")]
    kind: ErrorType,
    message: &'a str,
    retryable: bool,
}

impl<'a> VoiceMessage<'a> {
    /// The message of everything except audio.
    pub(super) fn new(message: &ServerMessage<'a>, context: &LinkContext) -> Option<Self> {
        Some(match *message {
            ServerMessage::Audio(_) => return None,
            ServerMessage::Ready { session_id, is_resumed, tools_version, provider, speaks } => Self::Ready {
                session_id,
                resume_token: (context.resume_token)(session_id),
                resumed: is_resumed,
                tools_version,
                provider,
                speaks,
                audio: AudioFormats { input: pcm16(16_000), output: pcm16(24_000) },
            },
            ServerMessage::Transcript { by, text, is_final, is_late } => {
                let role = match by {
                    Speaker::User => Role::User,
                    Speaker::Model => Role::Assistant,
                };
                Self::Transcript { role, text, r#final: is_final, late: is_late.then_some(true) }
            }
            ServerMessage::ToolCall { .. } | ServerMessage::Progress { .. } if !context.show.tool_cards => {
                return None;
            }
            ServerMessage::Partial { .. } if !context.show.json => return None,
            ServerMessage::ToolCall { id, name, args } => {
                let args = if context.show.json { args } else { &*NO_ARGUMENTS };
                Self::ToolCall { call_id: id, name, args }
            }
            // Without the name of the call it says no more than that one ended, which an approved call needs.
            ServerMessage::ToolResult { id, response, gates } => {
                Self::tool_result(id, response, gates.filter(|_| context.show.gates))
            }
            ServerMessage::ConfirmationRequest { id, request } => Self::confirmation(id, request),
            ServerMessage::Progress { id, text } => Self::Progress { call_id: id, text },
            ServerMessage::Partial { id, response } => {
                let Outcome::Success(data) = &response.outcome else { return None };
                Self::Partial { call_id: id, data }
            }
            ServerMessage::Pause => Self::Pause,
            ServerMessage::Resume => Self::Resume,
            ServerMessage::Interrupted => Self::Interrupted,
            ServerMessage::TurnComplete => Self::TurnComplete,
            ServerMessage::Blocked(block) => Self::timeout(block, (context.now_ms)()),
            ServerMessage::End(end) => Self::SessionEnd {
                reason: &end.reason,
                closing_message: end.closing_message.as_deref(),
                text_response: end.text_response.as_deref(),
            },
            ServerMessage::Error(error) => Self::error(error),
            ServerMessage::GoingAway { in_ms } => Self::GoingAway { in_ms },
            ServerMessage::Message(value) => return Self::of_tool(value),
        })
    }

    /// The call that an approval is asked for, where calls are not shown: the client knows nothing of it yet.
    pub(super) fn hidden_call(message: &ServerMessage<'a>, show: Shown) -> Option<Self> {
        match *message {
            ServerMessage::ConfirmationRequest { id, request } if !show.tool_cards => {
                Some(Self::ToolCall { call_id: id, name: &request.tool, args: &request.args })
            }
            _ => None,
        }
    }

    /// The runtime refuses words of the protocol where a tool sends them. One that came this far would make the client
    /// believe the server said it.
    fn of_tool(value: &'a Value) -> Option<Self> {
        let kind = value["type"].as_str().map(message_type).unwrap_or_default();
        if PROTOCOL_MESSAGE_TYPES.contains(&&*kind) {
            tracing::error!(kind, "message of a tool has a type of the protocol and is dropped");
            return None;
        }
        Some(Self::OfTool(value))
    }

    pub(super) fn error(error: &'a ToolError) -> Self {
        Self::Error { error: ErrorSummary::new(error) }
    }

    pub(super) fn to_text(&self) -> String {
        // Serialising strings, numbers and JSON values cannot fail.
        serde_json::to_string(self).unwrap_or_default()
    }

    fn confirmation(call_id: &'a str, request: &'a ConfirmationRequest) -> Self {
        Self::ConfirmationRequest {
            call_id,
            token: request.token.as_ref().map(|token| token.expose()),
            tool: &request.tool,
            args: &request.args,
            preview: &request.preview,
            reason: request.reason.as_deref(),
            expires: request.expires,
            confirm_by: Some(request.confirm_by).filter(|confirm_by| !confirm_by.is_any()),
            code: request.code.as_ref().map(|code| code.expose()),
        }
    }

    fn tool_result(call_id: &'a str, response: &'a ToolResponse, gates: Option<&Trace>) -> Self {
        let error = match &response.outcome {
            Outcome::Failure(error) => Some(ErrorSummary::new(error)),
            Outcome::Success(_) => None,
        };
        let gates = gates.map(|gates| json!(gates.explain()));
        let background_task_id = match &response.outcome {
            Outcome::Success(data) => response
                .meta
                .background_task_id
                .as_deref()
                .filter(|id| data["backgroundTaskId"].as_str() == Some(id)),
            Outcome::Failure(_) => None,
        };
        let (ok, duration) = (response.is_ok(), response.meta.duration);
        Self::ToolResult { call_id, ok, duration, background_task_id, error, gates }
    }

    fn timeout(block: &'a Block, now_ms: u64) -> Self {
        Self::Timeout {
            duration_seconds: block.until_ms.saturating_sub(now_ms).div_ceil(1_000),
            timeout_until: block.until_ms,
            farewell_message: &block.message,
        }
    }
}

impl<'a> ErrorSummary<'a> {
    fn new(error: &'a ToolError) -> Self {
        Self { kind: error.kind, message: &error.message, retryable: error.retryable }
    }
}

/// Sent before the close frame after a violation of the WebSocket protocol.
pub(super) fn violation_text(violation: &Violation) -> String {
    let message = format!("Connection closed: {}.", violation.what);
    VoiceMessage::error(&ToolError::new(ErrorType::Validation, message)).to_text()
}

fn pcm16(rate: u32) -> PcmFormat {
    PcmFormat { encoding: "pcm16", rate, channels: 1 }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn message(value: &Value) -> Option<Value> {
        let context = LinkContext {
            resume_token: Box::new(str::to_owned),
            now_ms: Box::new(|| 0),
            show: Shown::default(),
            line: crate::request_log::RequestLine::default(),
            _permit: None,
        };
        VoiceMessage::new(&ServerMessage::Message(value), &context).map(|message| json!(message))
    }

    #[test]
    fn a_tools_own_message_is_the_json_that_it_sent() {
        for sent in [
            json!({ "type": "ice_report", "thickness": 1.5, "data": { "type": "ready" } }),
            json!({ "type": "message", "data": 1 }),
            json!({ "type": "voice_session_start", "sessionId": "voice-session" }),
            json!({ "type": "timeout", "durationSeconds": 60, "farewellMessage": "Enough." }),
        ] {
            assert_eq!(message(&sent), Some(sent));
        }
    }

    #[test]
    fn a_tools_own_message_cannot_pass_for_the_servers() {
        for kind in PROTOCOL_MESSAGE_TYPES {
            for spelling in [kind.to_owned(), kind.replace('_', "-"), kind.to_uppercase()] {
                assert_eq!(message(&json!({ "type": spelling, "sessionId": "x" })), None, "{spelling}");
            }
        }
    }

    #[test]
    fn a_call_that_is_hidden_is_told_when_its_approval_is_asked_for() {
        let show = Shown { tool_cards: false, gates: false, json: false };
        let context = LinkContext {
            resume_token: Box::new(str::to_owned),
            now_ms: Box::new(|| 0),
            show,
            line: crate::request_log::RequestLine::default(),
            _permit: None,
        };
        let args = json!({ "day": "today" });
        let call = ServerMessage::ToolCall { id: "c1", name: "book", args: &args };
        assert!(VoiceMessage::new(&call, &context).is_none());
        assert!(VoiceMessage::new(&ServerMessage::Progress { id: "c1", text: "half" }, &context).is_none());
        let request: ConfirmationRequest = serde_json::from_value(json!({
            "token": "qdc_1", "expires": 5, "tool": "book", "args": args, "preview": "Book?",
        }))
        .unwrap();
        let asked = ServerMessage::ConfirmationRequest { id: "c1", request: &request };
        let told = VoiceMessage::hidden_call(&asked, show).map(|message| json!(message));
        assert_eq!(told, Some(json!({ "type": "tool_call", "callId": "c1", "name": "book", "args": args })));
        assert_eq!(json!(VoiceMessage::new(&asked, &context))["args"], args);
        let cards = LinkContext { show: Shown { tool_cards: true, ..show }, ..context };
        assert_eq!(json!(VoiceMessage::new(&call, &cards))["args"], json!({}));
        assert!(VoiceMessage::hidden_call(&asked, cards.show).is_none());
    }
}
