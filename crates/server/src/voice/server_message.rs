//! Encodes messages to the client.

use jiff::Timestamp;
use quarterdeck_agents::voice::ServerMessage;
use quarterdeck_contracts::{Audio, ErrorType, Outcome, Speaker, ToolError, ToolResponse};
use quarterdeck_runtime::Block;
use quarterdeck_runtime::gates::Trace;
use quarterdeck_websocket::{Class, Opcode, Violation, WebSocket};
use serde_json::{Value, json};

use super::client_frame::{AUDIO_HEAD, AUDIO_TAIL, AudioFormat};
use super::websocket_link::LinkContext;

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

/// Everything except audio.
pub(super) fn to_json(message: &ServerMessage<'_>, context: &LinkContext) -> Value {
    match message {
        ServerMessage::Ready { session_id, is_resumed, tools_version, provider } => json!({
            "type": "ready", "sessionId": session_id, "resumeToken": (context.resume_token)(session_id),
            "resumed": is_resumed, "toolsVersion": tools_version, "provider": provider,
            "audio": { "input": pcm16(16_000), "output": pcm16(24_000) },
        }),
        ServerMessage::Audio(_) => Value::Null,
        ServerMessage::Transcript { by, text, is_final, is_late } => {
            let role = match by {
                Speaker::User => "user",
                Speaker::Model => "assistant",
            };
            let mut message = json!({ "type": "transcript", "role": role, "text": text, "final": is_final });
            if *is_late {
                message["late"] = true.into();
            }
            message
        }
        ServerMessage::ToolCall { id, name, args } => {
            json!({ "type": "tool_call", "callId": id, "name": name, "args": args })
        }
        ServerMessage::ToolResult { id, response, gates } => tool_result(id, response, *gates),
        ServerMessage::ConfirmationRequest { id, request } => json!({
            "type": "confirmation_request", "callId": id,
            "token": request.token.as_ref().map(|token| token.expose()),
            "tool": request.tool, "args": request.args, "preview": request.preview, "expires": request.expires,
        }),
        ServerMessage::Progress { id, text } => json!({ "type": "progress", "callId": id, "text": text }),
        ServerMessage::Interrupted => json!({ "type": "interrupted" }),
        ServerMessage::TurnComplete => json!({ "type": "turn_complete" }),
        ServerMessage::Blocked(block) => timeout(block, (context.now_ms)()),
        ServerMessage::End(end) => json!({
            "type": "session_end", "reason": end.reason, "closingMessage": end.closing_message,
            "textResponse": end.text_response,
        }),
        ServerMessage::Error(error) => error_message(error),
        ServerMessage::GoingAway { in_ms } => json!({ "type": "going_away", "inMs": in_ms }),
        // A block has the same message whether it is new or existed before the call.
        ServerMessage::Message(value) if value["type"] == "timeout" => (*value).clone(),
        // Wrapped, so that a tool's own type cannot pass for one of the protocol's.
        ServerMessage::Message(value) => json!({ "type": "message", "data": value }),
    }
}

pub(super) fn error_message(error: &ToolError) -> Value {
    json!({ "type": "error", "error": error_summary(error) })
}

/// Sent before the close frame after a violation of the WebSocket protocol.
pub(super) fn violation_text(violation: &Violation) -> String {
    let message = format!("Connection closed: {}.", violation.what);
    error_message(&ToolError::new(ErrorType::Validation, message)).to_string()
}

fn pcm16(rate: u32) -> Value {
    json!({ "encoding": "pcm16", "rate": rate, "channels": 1 })
}

fn tool_result(id: &str, response: &ToolResponse, gates: Option<&Trace>) -> Value {
    let (is_ok, duration) = (response.is_ok(), response.meta.duration);
    let mut message = json!({ "type": "tool_result", "callId": id, "ok": is_ok, "duration": duration });
    if let Outcome::Failure(error) = &response.outcome {
        message["error"] = error_summary(error);
    }
    if let Some(gates) = gates {
        message["gates"] = json!(gates.explain());
    }
    message
}

fn error_summary(error: &ToolError) -> Value {
    json!({ "type": error.kind, "message": error.message, "retryable": error.retryable })
}

fn timeout(block: &Block, now_ms: u64) -> Value {
    let until = Timestamp::from_millisecond(block.until_ms as i64).unwrap_or(Timestamp::MAX);
    json!({
        "type": "timeout", "durationSeconds": block.until_ms.saturating_sub(now_ms).div_ceil(1_000),
        "timeoutUntil": until.to_string(), "farewellMessage": block.message,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn message(value: &Value) -> Value {
        let context =
            LinkContext { resume_token: Box::new(str::to_owned), now_ms: Box::new(|| 0), _permit: None };
        to_json(&ServerMessage::Message(value), &context)
    }

    #[test]
    fn a_tools_own_message_cannot_pass_for_the_servers() {
        let forged = json!({ "type": "ready", "sessionId": "x" });
        assert_eq!(message(&forged), json!({ "type": "message", "data": forged }));
        let block = json!({ "type": "timeout", "durationSeconds": 60, "farewellMessage": "Enough." });
        assert_eq!(message(&block), block, "a block has one form");
    }
}
